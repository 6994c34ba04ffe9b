// The point of the campaign's design: what it runs and what it finds does not depend on the order in which results
// arrive, on how many run at a time, or on how often the coordinator is killed in between.
#include <gtest/gtest.h>

#include <set>

#include "coordinator/campaign/findings.hpp"
#include "tests/coordinator/campaign/world.hpp"

namespace leafcutter::coordinator {
namespace {

using synthetic::Keeper;
using synthetic::World;

World wild() {
  World world;
  world.lost_percent = 12;
  world.flaky_percent = 70;
  world.once = world.two_at_once = true;
  return world;
}

// Everything that must be the same.
struct Outcome {
  std::vector<Finding> findings;
  std::map<std::string, std::string> executed;  ///< execution -> plan digest
  std::vector<std::string> epochs, leaves;
  std::string state, detail;
};

Outcome outcome_of(const Keeper& keeper) {
  Outcome o;
  o.findings = keeper.campaign.findings();
  for (const auto& [execution, plan] : keeper.executed) o.executed[execution] = scenarios::digest(plan);
  for (const auto& epoch : keeper.epochs) o.epochs.push_back(epoch.digest());
  for (const auto& r : keeper.campaign.resolved())
    o.leaves.push_back(r.address + " " + std::string(scenarios::name(r.verdict)) + " " +
                       std::string(scenarios::name(r.reason)));
  o.state = keeper.state;
  o.detail = keeper.detail;
  return o;
}

void expect_same(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.epochs, b.epochs);
  EXPECT_EQ(a.leaves, b.leaves);
  EXPECT_EQ(a.executed, b.executed);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.detail, b.detail);
  ASSERT_EQ(a.findings.size(), b.findings.size());
  for (std::size_t i = 0; i < a.findings.size(); ++i)
    EXPECT_TRUE(same_finding(a.findings[i], b.findings[i]))
        << a.findings[i].signature << " / " << b.findings[i].signature;
}

// A fleet of `slots`: any of the first `slots` orders of the queue may finish next. A casebook that is not prompt
// answers at some time or other.
void run_fleet(Keeper& keeper, std::size_t slots, std::uint64_t seed) {
  base::Stream stream(seed, "fleet", 0);
  for (int steps = 0; !keeper.queue.empty() || !keeper.unanswered.empty(); ++steps) {
    ASSERT_LT(steps, 100000);
    if (keeper.queue.empty() || (!keeper.unanswered.empty() && stream.below(4) == 0))
      keeper.answer();
    else
      keeper.run(static_cast<std::size_t>(stream.below(std::min(slots, keeper.queue.size()))));
  }
  EXPECT_TRUE(keeper.finished);
}

Scenario small() { return synthetic::scenario(2, 2, 400); }

TEST(Determinism, NeitherArrivalNorSlotsMatter) {
  Keeper one(small(), wild());
  run_fleet(one, 1, 0);
  const auto expected = outcome_of(one);
  ASSERT_GE(expected.findings.size(), 5u);
  for (const std::size_t slots : {2, 5, 8, 400})
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      Keeper many(small(), wild());
      run_fleet(many, slots, seed);
      expect_same(expected, outcome_of(many));
    }
}

TEST(Determinism, ALateCasebookComesToTheSame) {
  Keeper prompt(small(), wild());
  run_fleet(prompt, 1, 0);
  const auto expected = outcome_of(prompt);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Keeper late(small(), wild());
    late.prompt = false;
    run_fleet(late, 5, seed);
    expect_same(expected, outcome_of(late));
  }
}

TEST(Determinism, KilledWhileTheCasebookIsLateItGoesOnWhereItStood) {
  const auto scenario = synthetic::scenario(2, 1, 120);
  Keeper whole(scenario, wild());
  run_fleet(whole, 3, 1);
  const auto expected = outcome_of(whole);
  base::Stream stream(5, "late kills", 0);
  Keeper killed(scenario, wild());
  killed.prompt = false;
  for (int life = 0; !killed.finished; ++life) {
    ASSERT_LT(life, 1000);
    for (auto steps = 1 + stream.below(9); steps > 0 && !killed.finished; --steps) {
      if (killed.queue.empty() || (!killed.unanswered.empty() && stream.below(4) == 0)) {
        ASSERT_FALSE(killed.unanswered.empty()) << "nothing is under way, and it is not over";
        killed.answer();
      } else {
        killed.run(static_cast<std::size_t>(stream.below(std::min<std::size_t>(8, killed.queue.size()))));
      }
    }
    if (!killed.finished) killed.restart();
  }
  expect_same(expected, outcome_of(killed));
}

TEST(Determinism, AKilledCoordinatorGoesOnWhereItStood) {
  const auto scenario = synthetic::scenario(2, 1, 120);
  Keeper whole(scenario, wild());
  run_fleet(whole, 3, 1);
  const auto expected = outcome_of(whole);
  base::Stream stream(3, "kills", 0);
  Keeper killed(scenario, wild());
  for (int steps = 0; !killed.queue.empty(); ++steps) {
    ASSERT_LT(steps, 100000);
    killed.run(static_cast<std::size_t>(stream.below(std::min<std::size_t>(8, killed.queue.size()))));
    std::set<std::string> before, after;
    for (const auto& order : killed.queue) before.insert(order.execution);
    const auto epochs = killed.epochs.size();
    const auto progress = killed.campaign.progress();
    const bool was_finished = killed.finished;
    for (auto& [of, finding] : killed.findings) finding.explanation = {"kept by the caller"};
    killed.restart();  // at every single step
    for (const auto& order : killed.queue) after.insert(order.execution);
    ASSERT_EQ(before, after);
    ASSERT_EQ(killed.epochs.size(), epochs) << "an epoch was announced twice";
    ASSERT_EQ(killed.finished, was_finished);
    ASSERT_EQ(killed.campaign.progress().done, progress.done);
    ASSERT_EQ(killed.campaign.progress().executions, progress.executions);
    ASSERT_EQ(killed.campaign.progress().phase, progress.phase);
    for (const auto& [of, finding] : killed.findings)
      ASSERT_FALSE(finding.explanation.empty()) << of << " was handed out again unchanged";
  }
  EXPECT_TRUE(killed.finished);
  expect_same(expected, outcome_of(killed));
}

TEST(Determinism, ResultsAreReadBackInAnyOrder) {
  Keeper keeper(small(), wild());
  base::Stream stream(4, "half", 0);
  for (int i = 0; i < 150; ++i)
    keeper.run(static_cast<std::size_t>(stream.below(std::min<std::size_t>(8, keeper.queue.size()))));
  std::set<std::string> before, after;
  for (const auto& order : keeper.queue) before.insert(order.execution);
  std::reverse(keeper.results.begin(), keeper.results.end());
  keeper.restart();
  for (const auto& order : keeper.queue) after.insert(order.execution);
  EXPECT_EQ(before, after);
}

// The check itself can fail: another seed of the world gives another outcome.
TEST(Determinism, IsNotVacuous) {
  auto other = wild();
  other.seed = 2;
  Keeper a(small(), wild()), b(small(), other);
  run_fleet(a, 1, 0);
  run_fleet(b, 1, 0);
  EXPECT_NE(outcome_of(a).executed, outcome_of(b).executed);
}

}  // namespace
}  // namespace leafcutter::coordinator
