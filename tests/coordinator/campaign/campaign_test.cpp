#include "coordinator/campaign/campaign.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/coordinator/campaign/world.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Reason;
using scenarios::Verdict;
using synthetic::Keeper;
using synthetic::World;

std::set<std::string> names(const std::vector<Order>& orders) {
  std::set<std::string> found;
  for (const auto& order : orders) found.insert(order.execution);
  return found;
}

Keeper finished(Scenario scenario, World world = {}) {
  Keeper keeper(std::move(scenario), std::move(world));
  keeper.run_all();
  EXPECT_TRUE(keeper.finished);
  return keeper;
}

TEST(Campaign, BeginsWithThreeFaultFreeLeaves) {
  Keeper keeper(synthetic::scenario(), {});
  const auto& name = keeper.campaign.name();
  EXPECT_EQ(names(keeper.queue), (std::set<std::string>{name + "/0/0#0", name + "/0/1#0", name + "/0/2#0"}));
  EXPECT_EQ(keeper.epochs.size(), 1u);
  EXPECT_EQ(keeper.campaign.progress().phase, "baseline");
  EXPECT_EQ(keeper.campaign.progress().known, 3u);
}

TEST(Campaign, ConfirmsMinimizesAndMergesWhatOneFaultShows) {
  const auto keeper = finished(synthetic::scenario(1));
  ASSERT_EQ(keeper.findings.size(), 1u);
  const auto& f = *keeper.of(synthetic::lost);
  EXPECT_TRUE(f.confirmed);
  EXPECT_TRUE(f.control_passed);
  EXPECT_TRUE(f.one_minimal);
  EXPECT_EQ(f.runs, 2u);
  EXPECT_EQ(f.fails, 2u);
  EXPECT_EQ(f.seen, 3u);  // at three occurrences
  EXPECT_EQ(f.exemplars.size(), 3u);
  EXPECT_EQ(f.leaf.text(), f.exemplars.front());
  ASSERT_EQ(f.plan.faults.size(), 1u);
  EXPECT_EQ(f.plan.faults[0].kind, "crash-after");  // crash-before is simpler, but passes
  EXPECT_EQ(f.message, synthetic::lost + " is broken in " + f.failing_execution);
  EXPECT_EQ(f.passing_execution, f.leaf.text() + "#k1");
  EXPECT_TRUE(f.explanation.empty());
  EXPECT_EQ(keeper.state, "complete");
  EXPECT_EQ(keeper.detail, "");
}

TEST(Campaign, ConfirmsOneRepresentativeAndNoOther) {
  const auto keeper = finished(synthetic::scenario(1));
  std::set<std::string> addresses;
  for (const auto& r : keeper.results)
    if (r.purpose != Purpose::explore) addresses.insert(r.address);
  EXPECT_EQ(addresses, (std::set<std::string>{keeper.of(synthetic::lost)->leaf.text()}));
}

TEST(Campaign, NeverRunsWhatExploringShowedAlready) {
  const auto keeper = finished(synthetic::scenario(1));
  std::set<std::string> explored;
  for (const auto& r : keeper.results)
    if (r.purpose == Purpose::explore) explored.insert(scenarios::digest(r.plan));
  for (const auto& r : keeper.results)
    EXPECT_FALSE(r.purpose == Purpose::minimize && explored.contains(scenarios::digest(r.plan))) << r.execution;
}

TEST(Campaign, FindsWhatTakesTwoFaultsTheSecondOnARetry) {
  const auto keeper = finished(synthetic::scenario());
  const auto* f = keeper.of(synthetic::twice);
  ASSERT_NE(f, nullptr);
  EXPECT_TRUE(f->confirmed);
  EXPECT_TRUE(f->one_minimal);
  ASSERT_EQ(f->plan.faults.size(), 2u);
  EXPECT_EQ(f->plan.faults[1].occurrence, 6u);
  EXPECT_EQ(f->leaf.epoch, 2u);
  // The neighbour is the first fault alone, which was explored.
  const auto passing = std::find_if(keeper.results.begin(), keeper.results.end(),
                                    [&](const auto& r) { return r.execution == f->passing_execution; });
  ASSERT_NE(passing, keeper.results.end());
  ASSERT_EQ(passing->plan.faults.size(), 1u);
  EXPECT_EQ(passing->plan.faults[0], f->plan.faults[0]);
}

TEST(Campaign, OrdersConfirmationsAwayFromWhereTheFailureWasSeen) {
  Keeper keeper(synthetic::scenario(1), {});
  std::map<std::string, std::string> node_of;
  bool saw = false;
  while (!keeper.queue.empty()) {
    const auto order = keeper.queue.front();
    if (order.purpose == Purpose::confirm || order.purpose == Purpose::control) {
      EXPECT_EQ(order.avoid_slot, node_of.at(order.address.text()));
      saw = true;
    } else if (order.purpose == Purpose::explore) {
      EXPECT_EQ(order.avoid_slot, "");
    }
    keeper.run(0);
    if (order.purpose == Purpose::explore) node_of[order.address.text()] = keeper.results.back().node;
  }
  EXPECT_TRUE(saw);
}

TEST(Campaign, HandsOutUrgentOrdersFirst) {
  Keeper keeper(synthetic::scenario(), {});
  while (keeper.epochs.size() < 3)
    keeper.run(0);  // pairs are ordered together with the confirmations of what singles showed
  ASSERT_EQ(keeper.queue.front().purpose, Purpose::control);
  const auto first_explored = std::find_if(keeper.queue.begin(), keeper.queue.end(),
                                           [](const auto& o) { return o.purpose == Purpose::explore; });
  EXPECT_TRUE(
      std::all_of(first_explored, keeper.queue.end(), [](const auto& o) { return o.purpose == Purpose::explore; }));
  EXPECT_GT(first_explored - keeper.queue.begin(), 2);
}

TEST(Campaign, ConfirmsTwoPropertiesOfOneLeafFromTheSameRuns) {
  World world;
  world.two_at_once = true;
  const auto keeper = finished(synthetic::scenario(1), world);
  const auto *first = keeper.of("first"), *second = keeper.of("second");
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->confirmed && second->confirmed);
  EXPECT_EQ(first->leaf, second->leaf);
  EXPECT_NE(first->signature, second->signature);
  std::uint64_t confirms = 0;
  for (const auto& r : keeper.results) confirms += r.address == first->leaf.text() && r.purpose == Purpose::confirm;
  EXPECT_EQ(confirms, 2u);
}

TEST(Campaign, KeepsWhatItCannotConfirmAsSuch) {
  World world;
  world.once = true;
  const auto keeper = finished(synthetic::scenario(1), world);
  const auto* f = keeper.of("once");
  ASSERT_NE(f, nullptr);
  EXPECT_FALSE(f->confirmed);
  EXPECT_TRUE(f->control_passed);
  EXPECT_EQ(f->fails, 0u);
  EXPECT_EQ(f->runs, 8u);  // seven passes reject; they come by twos
  EXPECT_EQ(f->failing_execution, f->leaf.text() + "#0");
}

TEST(Campaign, TriesAnotherMemberWhenTheFirstDoesNotFailAgain) {
  World world;  // a broker crash at its second step fails always; at its first, only while exploring
  world.also = [](const Order& order, Result& r) {
    if (order.plan.faults.size() != 1 || order.plan.faults[0].site.lane != "broker") return;
    const bool once = order.plan.faults[0].occurrence == 1 && order.purpose == Purpose::explore;
    if (!once && order.plan.faults[0].occurrence != 2) return;
    r.verdict = Verdict::fail;
    r.violations = {{"p", "m", "", {}}};
  };
  const auto keeper = finished(synthetic::scenario(1), world);
  const auto* f = keeper.of("p");
  ASSERT_NE(f, nullptr);
  EXPECT_TRUE(f->confirmed);
  EXPECT_EQ(f->plan.faults[0].occurrence, 2u);
  EXPECT_EQ(f->seen, 2u);
}

TEST(Campaign, DoesNotConfirmBesideAControlThatFails) {
  World world;
  world.also = [](const Order& order, Result& r) {
    if (order.purpose != Purpose::control) return;
    r.verdict = Verdict::fail;
    r.reason = Reason::property_violated;
    r.violations = {{synthetic::lost, "without any fault", "", {}}};
  };
  const auto keeper = finished(synthetic::scenario(1), world);
  const auto* f = keeper.of(synthetic::lost);
  ASSERT_NE(f, nullptr);
  EXPECT_FALSE(f->confirmed);
  EXPECT_FALSE(f->control_passed);
}

TEST(Campaign, MinimizesAFlakyFailureWithSeveralRunsAPlan) {
  const auto flaky_world = [](std::uint64_t seed) {
    World world;  // a blackholed first request fails in 6 of 10 runs; a reset one, which is simpler, never
    world.also = [seed](const Order& order, Result& r) {
      const auto& faults = order.plan.faults;
      if (faults.size() != 1 || faults[0].kind != "blackhole" || faults[0].occurrence != 1) return;
      if (order.purpose != Purpose::explore && base::split_mix(seed ^ base::fnv1a(order.execution)) % 10 >= 6) return;
      r.verdict = Verdict::fail;
      r.violations = {{"p", "m", "", {}}};
    };
    return world;
  };
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    const auto keeper = finished(synthetic::scenario(1), flaky_world(seed));
    const auto* f = keeper.of("p");
    ASSERT_NE(f, nullptr);
    if (!f->confirmed || f->runs == f->fails) continue;  // not this one: it failed every time, or too rarely
    std::uint64_t smaller = 0;
    for (const auto& r : keeper.results) smaller += r.purpose == Purpose::minimize && r.plan.faults[0].kind == "reset";
    EXPECT_GT(smaller, 1u);
    EXPECT_EQ(f->plan.faults[0].kind, "blackhole");
    return;
  }
  FAIL() << "no seed gave a confirmed failure that comes and goes";
}

TEST(Campaign, StopsAtABaselineThatFails) {
  World world;
  world.also = [](const Order&, Result& r) {
    r.verdict = Verdict::fail;
    r.reason = Reason::property_violated;
    r.violations = {{"p", "it is broken", "", {}}};
  };
  const auto keeper = finished(synthetic::scenario(), world);
  EXPECT_EQ(keeper.results.size(), 3u);
  const auto* f = keeper.of("p");
  ASSERT_NE(f, nullptr);
  EXPECT_TRUE(f->plan.faults.empty());
  EXPECT_TRUE(f->confirmed);
  EXPECT_EQ(f->runs, 3u);
  EXPECT_EQ(f->fails, 3u);
  EXPECT_EQ(f->seen, 3u);
  EXPECT_EQ(f->message, "it is broken");
  EXPECT_EQ(keeper.state, "complete");
  EXPECT_NE(keeper.detail.find("without any fault"), std::string::npos);
}

TEST(Campaign, SaysThatABaselineFailsOnlySometimes) {
  World world;
  world.also = [](const Order& order, Result& r) {
    if (order.address.index != 1) return;
    r.verdict = Verdict::fail;
    r.violations = {{"p", "m", "", {}}};
  };
  const auto keeper = finished(synthetic::scenario(), world);
  const auto* f = keeper.of("p");
  ASSERT_NE(f, nullptr);
  EXPECT_FALSE(f->confirmed);
  EXPECT_EQ(f->fails, 1u);
  EXPECT_EQ(f->passing_execution, keeper.campaign.name() + "/0/0#0");
}

TEST(Campaign, StopsAtABaselineThatComesToNothing) {
  World world;
  world.also = [](const Order& order, Result& r) {
    if (order.address.index != 2) return;
    r.verdict = Verdict::inconclusive;
    r.reason = Reason::timed_out;
    r.detail = "the leaf ran for 30s";
  };
  const auto keeper = finished(synthetic::scenario(), world);
  EXPECT_TRUE(keeper.findings.empty());
  EXPECT_EQ(keeper.state, "cut");
  EXPECT_EQ(keeper.detail, "the fault-free leaf " + keeper.campaign.name() +
                               "/0/2 came to INCONCLUSIVE (timed-out): the leaf ran for 30s");
}

TEST(Campaign, DoesNotWaitThreeTimesForAServiceThatIsNeverReady) {
  World world;
  world.also = [](const Order&, Result& r) {
    r.verdict = Verdict::infra;
    r.reason = Reason::not_ready;
  };
  EXPECT_EQ(finished(synthetic::scenario(), world).results.size(), 3u);
}

TEST(Campaign, TriesAgainWhatTheRunnerLostAndGivesUpAfterTwice) {
  World world;
  world.also = [](const Order& order, Result& r) {
    const bool always = order.address.epoch == 1 && order.address.index == 0;
    const bool first = order.address.epoch == 1 && order.address.index == 1 && order.execution.ends_with("#0");
    if (!always && !first) return;
    r.verdict = Verdict::infra;
    r.reason = Reason::node_lost;
    r.violations.clear();
  };
  const auto keeper = finished(synthetic::scenario(1), world);
  const auto leaf = [&](int i) { return keeper.campaign.name() + "/1/" + std::to_string(i); };
  const auto ran = [&](const std::string& execution) { return keeper.executed.contains(execution); };
  EXPECT_TRUE(ran(leaf(0) + "#0") && ran(leaf(0) + "#1") && ran(leaf(0) + "#2"));
  EXPECT_FALSE(ran(leaf(0) + "#3"));
  EXPECT_TRUE(ran(leaf(1) + "#1"));
  EXPECT_FALSE(ran(leaf(1) + "#2"));
  const auto outcomes = keeper.campaign.outcomes();
  EXPECT_EQ(outcomes.at({keeper.campaign.name(), 1, 0}).reason, Reason::node_lost);
  EXPECT_NE(outcomes.at({keeper.campaign.name(), 1, 1}).verdict, Verdict::infra);
  // One result a leaf stands, whatever the number of attempts.
  EXPECT_EQ(keeper.campaign.resolved().size(), outcomes.size());
}

TEST(Campaign, TakesAResultUnderALaterAttemptsName) {
  Keeper keeper(synthetic::scenario(), {});
  auto order = keeper.queue.front();
  const auto first = order.execution;
  order.execution = next_attempt(order.execution);  // the dispatcher lost the first
  EXPECT_TRUE(keeper.campaign.wants(order.execution));
  keeper.campaign.accepted(keeper.world.result(order));
  EXPECT_EQ(keeper.campaign.progress().done, 1u);
  EXPECT_FALSE(keeper.campaign.wants(first));
  EXPECT_FALSE(keeper.campaign.wants(order.execution));
}

TEST(Campaign, WantsNothingItDidNotAskFor) {
  Keeper keeper(synthetic::scenario(), {});
  const auto& name = keeper.campaign.name();
  for (const auto& execution :
       {name + "/0/3#0", name + "/1/0#0", name + "/0/0#c1", name + "/0/0", std::string("#0"), std::string()})
    EXPECT_FALSE(keeper.campaign.wants(execution)) << execution;
  EXPECT_TRUE(keeper.campaign.wants(name + "/0/0#0"));
  Result stray;
  stray.execution = name + "/1/0#0";
  EXPECT_TRUE(keeper.campaign.accepted(stray).orders.empty());
  EXPECT_EQ(keeper.campaign.progress().executions, 0u);
}

TEST(Campaign, EndsCutWhenTheBudgetWasTooSmall) {
  const auto keeper = finished(synthetic::scenario(2, 3, 3 + 47 + 10));
  EXPECT_EQ(keeper.state, "cut");
  EXPECT_EQ(keeper.campaign.resolved().size(), 60u);
  EXPECT_EQ(keeper.detail.find("the budget of 60 leaves left "), 0u) << keeper.detail;
}

TEST(Campaign, PairsOnlyWhenTwoFaultsAtOnceAreAskedFor) {
  EXPECT_EQ(finished(synthetic::scenario(1)).epochs.size(), 2u);
  EXPECT_EQ(finished(synthetic::scenario(2)).epochs.size(), 3u);
}

TEST(Campaign, WithoutCandidatesEndsAfterTheBaseline) {
  auto scenario = synthetic::scenario();
  scenario.explore.faults.clear();
  const auto keeper = finished(scenario);
  EXPECT_EQ(keeper.campaign.resolved().size(), 3u);
  EXPECT_EQ(keeper.state, "complete");
}

TEST(CampaignStopped, ConfirmsWhatItFoundAndExploresNoFurther) {
  Keeper keeper(synthetic::scenario(), {});
  while (!keeper.of(synthetic::lost) && keeper.campaign.progress().failing < 2) keeper.run(0);
  const auto explored = keeper.campaign.progress().done;
  const auto under_way = names(keeper.queue);
  keeper.follow(keeper.campaign.stop_exploring("the time budget of 5m is over"));
  EXPECT_EQ(std::set<std::string>(keeper.dropped.begin(), keeper.dropped.end()), under_way);
  for (const auto& execution : keeper.dropped) EXPECT_FALSE(keeper.campaign.wants(execution));
  EXPECT_EQ(keeper.campaign.progress().phase, "confirm");
  keeper.run_all();
  EXPECT_TRUE(keeper.finished);
  EXPECT_EQ(keeper.state, "cut");
  EXPECT_EQ(keeper.detail, "the time budget of 5m is over");
  EXPECT_EQ(keeper.campaign.progress().done, explored);
  ASSERT_NE(keeper.of(synthetic::lost), nullptr);
  EXPECT_TRUE(keeper.of(synthetic::lost)->confirmed);
}

TEST(CampaignStopped, InItsBaselineEndsAtOnce) {
  Keeper keeper(synthetic::scenario(), {});
  keeper.run(0);
  keeper.follow(keeper.campaign.stop_exploring("interrupted"));
  EXPECT_TRUE(keeper.finished);
  EXPECT_EQ(keeper.state, "cut");
}

TEST(CampaignStopped, AfterExploringChangesNothing) {
  auto keeper = finished(synthetic::scenario(1));
  keeper.follow(keeper.campaign.stop_exploring("too late"));
  EXPECT_EQ(keeper.state, "complete");
  EXPECT_EQ(keeper.detail, "");
}

TEST(CampaignStopped, GoesOnWhenRestoredAndComesToTheSameEnd) {
  const auto whole = finished(synthetic::scenario());
  Keeper keeper(synthetic::scenario(), {});
  for (int i = 0; i < 60; ++i) keeper.run(0);
  keeper.follow(keeper.campaign.stop_exploring("the time budget is over"));
  keeper.run_all();
  keeper.restart();
  EXPECT_FALSE(keeper.finished);
  keeper.run_all();
  EXPECT_EQ(keeper.state, whole.state);
  EXPECT_EQ(keeper.campaign.resolved().size(), whole.campaign.resolved().size());
  for (const auto& [of, finding] : whole.findings) {
    ASSERT_TRUE(keeper.findings.contains(of));
    EXPECT_EQ(keeper.findings.at(of).seen, finding.seen);
    EXPECT_EQ(keeper.findings.at(of).plan, finding.plan);
  }
}

TEST(Campaign, ProgressCounts) {
  const auto keeper = finished(synthetic::scenario());
  const auto p = keeper.campaign.progress();
  EXPECT_EQ(p.phase, "done");
  EXPECT_EQ(p.done, p.known);
  EXPECT_EQ(p.executions, keeper.results.size());
  EXPECT_EQ(p.findings, keeper.findings.size());
  std::uint64_t failing = 0;
  for (const auto& r : keeper.results) failing += r.purpose == Purpose::explore && r.verdict == Verdict::fail;
  EXPECT_EQ(p.failing, failing);
  EXPECT_EQ(keeper.campaign.findings().size(), keeper.findings.size());
}

TEST(Campaign, NamesItselfByTheSeedInEffect) {
  const auto scenario = synthetic::scenario();
  EXPECT_NE(Campaign(scenario, "identity", 7).name(), Campaign(scenario, "identity", 8).name());
  EXPECT_EQ(Campaign(scenario, "identity", 8).scenario().explore.seed, 8u);
}

}  // namespace
}  // namespace leafcutter::coordinator
