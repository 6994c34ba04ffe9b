// The campaign actor with its minimizer and judges, beside a dispatcher that only notes its orders: the test decides in
// which order they come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "coordinator/actors/campaign_actor.hpp"
#include "coordinator/actors/coordinator.hpp"
#include "coordinator/actors/judge_actor.hpp"
#include "coordinator/actors/minimizer_actor.hpp"
#include "tests/actors/office.hpp"
#include "tests/actors/stream_peers.hpp"

using namespace leafcutter;
using namespace leafcutter::tests;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace {

coordinator::SubmissionPtr submission(std::uint64_t seed) {
  auto text = toy_scenario();
  auto loaded = scenarios::load_text(text.text, text.file, {"", false});
  auto scenario = std::make_shared<scenarios::Scenario>(*loaded.scenario);
  scenario->explore.seed = seed;
  return std::make_shared<const coordinator::Submission>(
      coordinator::Submission{std::move(scenario), std::move(text), seed});
}

/// As by an exception; a kill would go through every link.
template <class Handle>
void break_down(Sim& sim, const Handle& handle) {
  sim.self->send_exit(handle, caf::exit_reason::unhandled_exception);
  sim.run();
}

class Campaigning {
 public:
  explicit Campaigning(std::uint64_t seed) : rng(seed) {
    sim.rng = &rng;
    dispatcher = notes.spawn(sim);
    open();
  }
  ~Campaigning() {
    close();
    sim.kill(dispatcher);
  }

  /// A coordinator's life begins: the ledger, and as many campaign actors.
  void open(std::size_t count = 1) {
    auto opened = coordinator::Ledger::open(folder.path());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    std::shared_ptr<coordinator::Ledger> ledger = std::move(*opened);
    kept = ledger;
    parent = spawn_parent(
        sim,
        [&, this](caf::local_actor& self) {
          judges = {coordinator::spawn_judge(self), coordinator::spawn_judge(self)};
          for (std::size_t i = 0; i < count; ++i)
            campaigns.push_back(coordinator::spawn_campaign(self, {ledger, dispatcher, judges}));
        },
        &ended);
  }
  /// It ends, whatever is under way.
  void close() {
    if (!parent) return;
    sim.kill(parent);
    parent = nullptr;
    campaigns.clear();
    judges.clear();
    notes.clients.clear();
    notes.orders.clear();
  }

  std::string submit(std::uint64_t seed = 7, std::size_t which = 0) {
    std::string name;
    auto answer = sim.self->request(campaigns.at(which), caf::infinite, actors::submit_atom_v, submission(seed));
    sim.run();
    answer.receive([&](std::string& given) { name = std::move(given); },
                   [&](caf::error& error) { ADD_FAILURE() << sim.sys.render(error); });
    return name;
  }
  actors::Progress watch(std::size_t which = 0) {
    actors::Progress progress;
    auto answer = sim.self->request(campaigns.at(which), caf::infinite, actors::watch_atom_v);
    sim.run();
    answer.receive([&](actors::Progress& now) { progress = std::move(now); },
                   [&](caf::error& error) { ADD_FAILURE() << sim.sys.render(error); });
    return progress;
  }

  static coordinator::ExecutionPtr execution_of(const actors::LeafOrder& order, std::uint64_t run) {
    coordinator::Execution execution;
    execution.run = run;
    execution.order = order;
    execution.report.execution = order.execution;
    execution.report.slot = "n/0";
    execution.report.clean = true;
    const auto events = toy_events(*scenarios::plan_from(*protocols::unpack(order.plan)));
    execution.report.events = events.size();
    execution.trace = std::make_shared<const coordinator::FinishedTrace>(
        coordinator::FinishedTrace{order.execution, events.size(), true, protocols::encode_chunk(events)});
    return std::make_shared<const coordinator::Execution>(std::move(execution));
  }
  actors::LeafOrder take_order() {
    const auto at = notes.orders.begin() + static_cast<std::ptrdiff_t>(rng() % notes.orders.size());
    auto order = *at;
    notes.orders.erase(at);
    return order;
  }
  coordinator::EnlistmentPtr client_of(const actors::LeafOrder& order) {
    return notes.clients.at(order.address.substr(0, order.address.find('/')));
  }
  /// One of the orders is carried out. Its actors need not have come to rest when `rest` is false.
  void run_one(bool rest = true) {
    const auto order = take_order();
    ran.push_back(order.execution);
    const auto client = client_of(order);
    sim.self->send(client->handle, actors::done_atom_v, execution_of(order, client->run));
    if (rest) sim.run();
  }
  void run_all() {
    for (int i = 0; i < 5000 && !notes.orders.empty(); ++i) run_one();
    EXPECT_THAT(notes.orders, IsEmpty());
  }

  struct Memory {
    std::string digest, state;
    std::vector<std::string> findings;
    std::vector<coordinator::Result> results;
  };
  Memory memory(const std::string& campaign) {
    close();
    Memory out;
    auto ledger = coordinator::Ledger::open(folder.path());
    EXPECT_TRUE(ledger.ok()) << "something still holds the ledger: " << ledger.error().message;
    out.results = *(*ledger)->results(campaign);
    out.digest = coordinator::result_digest(out.results);
    out.state = (**(*ledger)->campaign(campaign)).state;
    const auto findings = *(*ledger)->findings(campaign);
    for (const auto& finding : findings)
      out.findings.push_back(finding.signature + " " + std::to_string(finding.runs) + " " +
                             std::to_string(finding.seen) + " " + finding.failing_execution + " " +
                             finding.passing_execution + (finding.explanation.empty() ? " unexplained" : ""));
    return out;
  }

  Folder folder;
  std::mt19937_64 rng;
  Sim sim;
  NoteDispatcher notes;
  coordinator::dispatcher_actor dispatcher;
  caf::actor parent;
  std::vector<coordinator::judge_actor> judges;
  std::vector<coordinator::campaign_actor> campaigns;
  std::vector<caf::actor_addr> ended;
  std::weak_ptr<coordinator::Ledger> kept;
  std::vector<std::string> ran;
};

Campaigning::Memory undisturbed(std::uint64_t order_seed, std::uint64_t seed = 7) {
  Campaigning office(order_seed);
  const auto name = office.submit(seed);
  office.run_all();
  EXPECT_TRUE(office.watch().finished);
  return office.memory(name);
}

TEST(CampaignActor, FindsTheSameInWhateverOrderResultsCome) {
  const auto right = undisturbed(1);
  EXPECT_EQ(right.state, "complete");
  EXPECT_THAT(right.findings, SizeIs(testing::Ge(2u)));
  for (const auto& finding : right.findings) EXPECT_EQ(finding.find("unexplained"), std::string::npos);
  for (std::uint64_t seed = 2; seed < 6; ++seed) {
    const auto other = undisturbed(seed);
    EXPECT_EQ(other.digest, right.digest) << seed;
    EXPECT_EQ(other.findings, right.findings) << seed;
    EXPECT_EQ(other.results.size(), right.results.size()) << seed;
  }
  EXPECT_NE(undisturbed(1, 8).results.front().address, right.results.front().address)
      << "another seed, another campaign";
}

TEST(CampaignActor, WhatItOrdersIsDurableFirst) {
  Campaigning office(1);
  std::string name;
  int orders = 0;
  office.notes.on_order = [&] {
    ++orders;
    const auto ledger = office.kept.lock();
    const auto rows = *ledger->campaigns();
    ASSERT_THAT(rows, SizeIs(1));
    EXPECT_FALSE(ledger->epochs(rows[0].name)->empty());
    // Whatever was carried out and is not being judged any more is remembered.
    EXPECT_EQ(ledger->results(rows[0].name)->size(), office.ran.size());
  };
  office.submit();
  office.run_all();
  EXPECT_GT(orders, 3);
}

TEST(CampaignActor, KilledAtAnyInstantItGoesOnFromItsLedger) {
  const auto right = undisturbed(1);
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    Campaigning office(seed);
    auto name = office.submit();
    int lives = 1;
    for (int step = 0; !office.notes.orders.empty(); ++step) {
      ASSERT_LT(step, 5000);
      office.run_one(false);
      // Anywhere on the way from the execution to what follows from it.
      for (auto jobs = office.rng() % 12; jobs > 0 && !office.sim.sched.jobs.empty(); --jobs)
        office.sim.sched.run_once();
      if (office.rng() % 4 != 0) {
        office.sim.run();
        continue;
      }
      office.close();
      office.open();
      ++lives;
      std::set<std::string> remembered;
      const auto results = *office.kept.lock()->results(name);
      for (const auto& result : results) remembered.insert(result.execution);
      name = office.submit();
      for (const auto& order : office.notes.orders) EXPECT_FALSE(remembered.contains(order.execution));
    }
    EXPECT_GT(lives, 3);
    const auto memory = office.memory(name);
    EXPECT_EQ(memory.state, "complete");
    EXPECT_EQ(memory.digest, right.digest);
    EXPECT_EQ(memory.findings, right.findings);
    EXPECT_EQ(memory.results.size(), right.results.size());
  }
}

TEST(CampaignActor, CancelledItTakesNothingMoreAndIsResumed) {
  Campaigning office(1);
  const auto name = office.submit();
  for (int i = 0; i < 6; ++i) office.run_one();
  const auto late = office.take_order();
  const auto first = office.client_of(late);
  office.sim.self->send(office.campaigns[0], actors::cancel_atom_v);
  office.sim.run();
  EXPECT_THAT(office.notes.closed, ElementsAre(name));
  EXPECT_TRUE(office.watch().finished);
  office.sim.self->send(first->handle, actors::done_atom_v, Campaigning::execution_of(late, first->run));
  office.sim.run();
  EXPECT_EQ(office.watch().executions, 6u);

  office.notes.orders.clear();
  EXPECT_EQ(office.submit(), name);
  EXPECT_GT(office.notes.clients.at(name)->run, first->run);
  EXPECT_THAT(office.watch().note, HasSubstr("resumed"));
  office.sim.self->send(first->handle, actors::done_atom_v, Campaigning::execution_of(late, first->run));
  office.sim.run();
  EXPECT_EQ(office.watch().executions, 6u) << "it was meant for the earlier submission";
  office.run_all();
  const auto right = undisturbed(1);
  const auto memory = office.memory(name);
  EXPECT_EQ(memory.digest, right.digest);
  EXPECT_EQ(memory.findings, right.findings);
}

TEST(CampaignActor, SubmittedTwiceItGoesOn) {
  Campaigning office(1);
  const auto name = office.submit();
  office.run_one();
  const auto orders = office.notes.orders.size();
  EXPECT_EQ(office.submit(), name);
  EXPECT_EQ(office.notes.orders.size(), orders);
  EXPECT_EQ(office.notes.clients.at(name)->run, 1u);
}

TEST(CampaignActor, AnOrderThatIsLostIsTriedAgainUnderAnotherName) {
  Campaigning office(1);
  office.submit();
  auto lost = office.take_order();
  const auto client = office.client_of(lost);
  office.sim.self->send(client->handle, coordinator::lost_atom::value,
                        std::make_shared<const coordinator::Loss>(coordinator::Loss{client->run, lost}));
  office.sim.run();
  EXPECT_EQ(office.watch().executions, 1u);
  std::vector<std::string> names;
  for (const auto& order : office.notes.orders) names.push_back(order.execution);
  EXPECT_THAT(names, Contains(lost.address + "#1"));
}

TEST(CampaignActor, TheTimeBudgetEndsTheSearch) {
  Campaigning office(1);
  const auto name = office.submit();
  for (int i = 0; i < 6; ++i) office.run_one();
  const auto explored = office.watch().done;
  office.sim.advance(301s);
  for (const auto& order : office.notes.orders) EXPECT_NE(order.purpose, "explore");
  office.run_all();
  EXPECT_EQ(office.watch().done, explored);
  EXPECT_TRUE(office.watch().finished);
  EXPECT_THAT(office.notes.closed, ElementsAre(name));
  EXPECT_EQ(office.memory(name).state, "cut");
}

TEST(CampaignActor, SeveralShareALedger) {
  Campaigning office(3);
  office.close();
  office.open(3);
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < 3; ++i) names.push_back(office.submit(7 + i, i));
  office.run_all();
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(office.watch(i).finished);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto right = undisturbed(1, 7 + i);
    const auto memory = office.memory(names[i]);
    EXPECT_EQ(memory.digest, right.digest);
    EXPECT_EQ(memory.findings, right.findings);
  }
}

TEST(CampaignActor, EndsWithItsParentAndLetsGoOfTheLedger) {
  Campaigning office(1);
  office.submit();
  office.run_one();
  EXPECT_FALSE(office.kept.expired());
  office.close();
  EXPECT_TRUE(office.kept.expired());
}

TEST(CampaignActor, ItsParentHearsOfItsEnd) {
  Campaigning office(1);
  office.submit();
  const auto address = office.campaigns[0].address();
  break_down(office.sim, office.campaigns[0]);
  EXPECT_THAT(office.ended, ElementsAre(address)) << "and the judges live";
}

TEST(MinimizerActor, BeginsAnewWithWhatIsKnown) {
  Sim sim;
  coordinator::minimizer_actor minimizer;
  auto parent = spawn_parent(sim, [&](caf::local_actor& self) { minimizer = coordinator::spawn_minimizer(self); });
  coordinator::CaseFile file;
  file.name = "case";
  auto& suspect = file.suspects.emplace_back();
  suspect.failure = {{"toy", 1, 0}, "p", {}};
  suspect.failure.plan.faults.emplace_back().kind = "crash-before";
  const auto cases = std::make_shared<const coordinator::Cases>(
      coordinator::Cases{std::make_shared<const coordinator::CaseFile>(file)});
  const auto ask = [&] {
    coordinator::InquiredPtr inquired;
    auto answer = sim.self->request(minimizer, caf::infinite, coordinator::case_atom::value, cases);
    sim.run();
    answer.receive([&](const coordinator::InquiredPtr& given) { inquired = given; }, [](caf::error&) { FAIL(); });
    std::vector<std::string> names;
    for (const auto& order : inquired->orders) names.push_back(order.execution);
    return names;
  };
  EXPECT_THAT(ask(), ElementsAre("toy/1/0#k1", "toy/1/0#c1", "toy/1/0#c2"));
  EXPECT_THAT(ask(), IsEmpty()) << "it is open already";
  coordinator::Result known;
  known.execution = "toy/1/0#k1";
  known.address = "toy/1/0";
  known.purpose = coordinator::Purpose::control;
  sim.self->send(minimizer, coordinator::begin_atom::value,
                 std::make_shared<const std::vector<coordinator::Result>>(1, known));
  EXPECT_THAT(ask(), ElementsAre("toy/1/0#c1", "toy/1/0#c2"));
  sim.kill(parent);
}

// The coordinator outlives a campaign that breaks down, says so, and takes it up again.
TEST(Supervision, ACampaignThatEndsDoesNotTakeTheOthersAlong) {
  Folder folder;
  Sim sim;
  ToyStream stream;
  coordinator::CoordinatorOptions options;
  options.folder = folder.path();
  options.intake =
      [&](coordinator::Intake::OnFinished on_finished) -> base::Expected<std::unique_ptr<coordinator::Intake>> {
    return stream.intake(std::move(on_finished));
  };
  auto boss = *coordinator::spawn_coordinator(sim.sys, options);
  sim.run();
  // The first actor of that name to run after a submission is its campaign.
  const auto submit = [&](std::uint64_t seed) {
    actors::CampaignRequest request;
    request.scenario = toy_scenario();
    request.seed = seed;
    auto answer = sim.self->request(boss, caf::infinite, actors::submit_atom_v, request);
    caf::actor found;
    while (!sim.sched.jobs.empty()) {
      auto& next = sim.sched.next_job<caf::local_actor>();
      if (!found && next.name() == std::string("campaign")) found = caf::actor_cast<caf::actor>(next.address());
      sim.sched.run_once();
    }
    std::string name;
    answer.receive([&](std::string& given) { name = std::move(given); }, [](caf::error&) { FAIL(); });
    return std::pair(name, found);
  };
  const auto watch = [&](const std::string& campaign) {
    std::string failure;
    auto answer = sim.self->request(boss, caf::infinite, actors::watch_atom_v, campaign);
    sim.run();
    answer.receive([](actors::Progress&) {}, [&](caf::error& error) { failure = sim.sys.render(error); });
    return failure;
  };
  const auto [one, broken] = submit(7);
  const auto [two, sound] = submit(8);
  ASSERT_TRUE(broken && sound && broken != sound);
  EXPECT_EQ(watch(one), "");
  break_down(sim, broken);
  EXPECT_THAT(watch(one), HasSubstr("campaign " + one + " ended"));
  EXPECT_EQ(watch(two), "");
  EXPECT_EQ(submit(7).first, one);
  EXPECT_EQ(watch(one), "");
  sim.kill(boss);
  EXPECT_TRUE(coordinator::Ledger::open(folder.path()).ok()) << "everything is let go of";
}

}  // namespace
