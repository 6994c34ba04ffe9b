// Coordinator and nodes together, in virtual time and with a seeded order of everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <caf/typed_event_based_actor.hpp>

#include "coordinator/actors/coordinator.hpp"
#include "coordinator/ledger/ledger.hpp"
#include "node/actors/node.hpp"
#include "tests/actors/stream_peers.hpp"
#include "tests/actors/toy.hpp"

using namespace leafcutter;
using namespace leafcutter::tests;
using testing::HasSubstr;

namespace {

class Fleet {
 public:
  explicit Fleet(std::uint64_t seed = 1) : rng(seed) { sim.rng = &rng; }
  ~Fleet() {
    for (auto& [name, member] : members) sim.kill(member.handle);
    stop_coordinator();
  }

  void start_coordinator() {
    coordinator::CoordinatorOptions options;
    options.folder = folder.path();
    options.intake =
        [this](coordinator::Intake::OnFinished on_finished) -> base::Expected<std::unique_ptr<coordinator::Intake>> {
      return stream.intake(std::move(on_finished));
    };
    auto spawned = coordinator::spawn_coordinator(sim.sys, options);
    ASSERT_TRUE(spawned.ok()) << spawned.error().message;
    boss = std::move(*spawned);
    sim.run();
  }
  void stop_coordinator() {
    if (!boss) return;
    sim.kill(boss);
    boss = nullptr;
    sim.run();
  }

  void join(const std::string& name, std::uint32_t slots) {
    ToyNode parts(stream);
    node::NodeOptions options;
    options.name = name;
    options.slots = slots;
    auto handle = node::spawn_node(sim.sys, options, parts.launcher, parts.courier, boss);
    members.insert_or_assign(name, Member{std::move(parts), std::move(handle)});
    sim.run();
  }
  void kill(const std::string& name) {
    sim.kill(members.at(name).handle);
    members.erase(name);
  }

  void submit(const std::string& text = toy_text) {
    actors::CampaignRequest request;
    request.scenario = toy_scenario(text);
    request.seed = 7;
    auto answer = sim.self->request(boss, caf::infinite, actors::submit_atom_v, request);
    sim.run();
    answer.receive([&](std::string& name) { campaign = std::move(name); },
                   [&](caf::error& error) { ADD_FAILURE() << sim.sys.render(error); });
  }
  actors::Progress watch() {
    actors::Progress progress;
    auto answer = sim.self->request(boss, caf::infinite, actors::watch_atom_v, campaign);
    sim.run();
    answer.receive([&](actors::Progress& now) { progress = std::move(now); },
                   [&](caf::error& error) { ADD_FAILURE() << sim.sys.render(error); });
    return progress;
  }

  std::size_t running() const {
    std::size_t sum = 0;
    for (const auto& [name, member] : members) sum += member.parts.launcher->running.size();
    return sum;
  }
  /// Some leaf ends; false: none runs.
  bool finish_one() {
    std::vector<ToyLauncher*> busy;
    for (auto& [name, member] : members) {
      if (!member.parts.launcher->running.empty()) busy.push_back(member.parts.launcher.get());
    }
    if (busy.empty()) return false;
    auto& launcher = *busy[rng() % busy.size()];
    launcher.finish(rng() % launcher.running.size());
    sim.run();
    return true;
  }
  /// Until the campaign is over.
  void complete() {
    for (int i = 0; i < 20000; ++i) {
      if (finish_one()) continue;
      if (watch().finished) return;
      sim.advance(1s);
    }
    ADD_FAILURE() << "the campaign does not end: " << watch().done << " of " << watch().known << " leaves, "
                  << running() << " running";
  }

  struct Memory {
    std::string digest;
    std::vector<coordinator::Result> results;
    std::vector<coordinator::Finding> findings;
    coordinator::CampaignRow row;
  };
  /// What the ledger holds; the coordinator is stopped for it.
  Memory memory() {
    stop_coordinator();
    Memory out;
    auto ledger = coordinator::Ledger::open(folder.path());
    EXPECT_TRUE(ledger.ok()) << ledger.error().message;
    out.results = *(*ledger)->results(campaign);
    out.findings = *(*ledger)->findings(campaign);
    out.row = **(*ledger)->campaign(campaign);
    out.digest = coordinator::result_digest(out.results);
    return out;
  }

  struct Member {
    ToyNode parts;
    actors::node_actor handle;
  };
  Folder folder;
  std::mt19937_64 rng;
  Sim sim;
  ToyStream stream;
  std::map<std::string, Member> members;
  actors::coordinator_actor boss;
  std::string campaign;
};

/// The campaign on one node with one slot, undisturbed: what every other fleet is to find as well.
Fleet::Memory undisturbed() {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 1);
  fleet.submit();
  fleet.complete();
  return fleet.memory();
}

void expect_the_same(const Fleet::Memory& memory, const Fleet::Memory& right, const std::string& what) {
  EXPECT_EQ(memory.digest, right.digest) << what;
  EXPECT_EQ(coordinator::explored_leaves(memory.results).size(), coordinator::explored_leaves(right.results).size())
      << what;
  ASSERT_EQ(memory.findings.size(), right.findings.size()) << what;
  for (std::size_t i = 0; i < right.findings.size(); ++i) {
    EXPECT_EQ(memory.findings[i].signature, right.findings[i].signature) << what;
    EXPECT_EQ(memory.findings[i].plan, right.findings[i].plan) << what;
    EXPECT_TRUE(memory.findings[i].confirmed) << what;
  }
}

}  // namespace

TEST(Fleet, CompletesACampaignAndFindsWhatIsWrong) {
  const auto memory = undisturbed();
  EXPECT_EQ(memory.row.state, "complete");
  ASSERT_FALSE(memory.findings.empty());
  bool found = false;
  for (const auto& finding : memory.findings) {
    EXPECT_TRUE(finding.confirmed);
    EXPECT_FALSE(finding.explanation.empty());
    if (finding.plan.faults.size() == 1) found |= finding.plan.faults[0].text().find("write") != std::string::npos;
  }
  EXPECT_TRUE(found) << "the single fault that loses an order";
  EXPECT_GT(coordinator::explored_leaves(memory.results).size(), 11u) << "baseline, singles and some pairs";
}

TEST(Fleet, FourSlotsFindTheSame) {
  const auto right = undisturbed();
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Fleet fleet(seed);
    fleet.start_coordinator();
    fleet.join("n", 4);
    fleet.submit();
    fleet.complete();
    expect_the_same(fleet.memory(), right, "seed " + std::to_string(seed));
  }
}

TEST(Fleet, NodesThatComeAndGoFindTheSame) {
  const auto right = undisturbed();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Fleet fleet(seed);
    fleet.start_coordinator();
    fleet.submit();
    int killed = 0;
    for (int i = 0; i < 100; ++i) {
      const auto name = "n" + std::to_string(fleet.rng() % 3);
      if (!fleet.members.contains(name)) {
        fleet.join(name, 1 + static_cast<std::uint32_t>(fleet.rng() % 3));
      } else if (fleet.rng() % 8 == 0) {
        fleet.kill(name);
        ++killed;
      }
      fleet.finish_one();
    }
    if (fleet.members.empty()) fleet.join("n0", 2);
    fleet.complete();
    EXPECT_GT(killed, 2) << "seed " << seed;
    expect_the_same(fleet.memory(), right, "seed " + std::to_string(seed));
  }
}

TEST(Fleet, ALostNodesLeavesRunElsewhereAtOnce) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("a", 1);
  fleet.submit();
  ASSERT_EQ(fleet.running(), 1u);
  const auto address = fleet.members.at("a").parts.launcher->running[0].job.address;
  fleet.join("b", 2);
  fleet.kill("a");
  std::set<std::string> addresses;
  for (const auto& leaf : fleet.members.at("b").parts.launcher->running) addresses.insert(leaf.job.address);
  EXPECT_TRUE(addresses.contains(address)) << "no time had to pass";
}

TEST(Fleet, ASilentNodesLeavesRunElsewhereOnceItsLeaseIsOver) {
  Fleet fleet;
  fleet.start_coordinator();
  // A node that takes a lease and is never heard of again.
  std::vector<actors::Lease> leases;
  auto silent = fleet.sim.sys.spawn([&leases]() -> actors::node_actor::behavior_type {
    return {[](actors::learn_atom, const actors::ScenarioText&) {},
            [&leases](actors::lease_atom, const actors::Lease& lease) { leases.push_back(lease); },
            [](actors::cancel_atom, std::uint64_t) {}, [](actors::drain_atom) {}};
  });
  actors::NodeInfo info;
  info.name = "silent";
  info.slots = 3;
  auto hello = fleet.sim.self->request(fleet.boss, caf::infinite, actors::hello_atom_v, info, silent);
  fleet.sim.run();
  std::uint64_t session = 0;
  hello.receive([&](const actors::Welcome& welcome) { session = welcome.session; }, [](caf::error&) { FAIL(); });
  fleet.submit();
  fleet.sim.self->send(fleet.boss, actors::want_atom_v, session, std::uint32_t{3});
  fleet.sim.run();
  ASSERT_FALSE(leases.empty());
  std::size_t held = 0;
  for (const auto& lease : leases) held += lease.orders.size();
  ASSERT_EQ(held, 3u) << "all of the baseline";
  fleet.join("live", 3);
  EXPECT_EQ(fleet.running(), 0u);
  fleet.sim.advance(19s);
  EXPECT_EQ(fleet.running(), 0u) << "its lease still holds";
  fleet.sim.advance(6s);
  EXPECT_EQ(fleet.running(), 3u);

  // It wakes up: what it says under its old fence about a leaf that is resolved changes nothing.
  while (fleet.watch().executions < 3) ASSERT_TRUE(fleet.finish_one());
  const auto before = fleet.watch();
  actors::LeafReport late;
  late.session = session;
  late.fence = leases[0].fence;
  late.execution = leases[0].orders[0].execution;
  late.clean = true;
  fleet.sim.self->send(fleet.boss, actors::done_atom_v, late);
  fleet.sim.run();
  EXPECT_EQ(fleet.watch().executions, before.executions);
  fleet.sim.kill(silent);
  fleet.complete();
  expect_the_same(fleet.memory(), undisturbed(), "after a silent node");
}

TEST(Fleet, AnotherVersionIsRefusedAndToldWhy) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 1);
  actors::NodeInfo info;
  info.protocol = actors::protocol_version + 1;
  info.name = "future";
  info.slots = 1;
  auto hello =
      fleet.sim.self->request(fleet.boss, caf::infinite, actors::hello_atom_v, info, fleet.members.at("n").handle);
  fleet.sim.run();
  hello.receive(
      [&](const actors::Welcome& welcome) {
        EXPECT_FALSE(welcome.admitted);
        EXPECT_THAT(welcome.refusal, HasSubstr("version " + std::to_string(actors::protocol_version + 1)));
      },
      [](caf::error&) { FAIL(); });
}

TEST(Fleet, ANodeOfTheSameNameTakesOver) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 2);
  fleet.submit();
  const auto old = fleet.members.at("n").handle;
  auto old_launcher = fleet.members.at("n").parts.launcher;
  fleet.join("n", 2);
  EXPECT_GT(fleet.running(), 0u) << "the newer one has the work";
  // The older one was told to stop: it ends when its leaves have.
  while (!old_launcher->running.empty()) old_launcher->finish(0), fleet.sim.run();
  fleet.sim.advance(1s);
  bool ended = false;
  fleet.sim.self->monitor(old);
  fleet.sim.run();
  fleet.sim.self->receive([&](const caf::down_msg&) { ended = true; },
                          caf::after(std::chrono::milliseconds(0)) >> [] {});
  EXPECT_TRUE(ended);
  fleet.complete();
  expect_the_same(fleet.memory(), undisturbed(), "after a takeover");
}

TEST(Fleet, ALeafWithoutAnEndIsTheRunnersFailureAndIsTriedAgain) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 2);
  fleet.submit();
  fleet.members.at("n").parts.launcher->crash(0);  // it said nothing at all
  fleet.sim.run();
  fleet.members.at("n").parts.launcher->crash(0, 4);  // it died on the way
  fleet.sim.run();
  fleet.complete();
  const auto memory = fleet.memory();
  std::size_t infra = 0;
  for (const auto& result : memory.results) {
    if (result.verdict != scenarios::Verdict::infra) continue;
    ++infra;
    EXPECT_EQ(result.reason, scenarios::Reason::runner_failed);
    EXPECT_THAT(result.detail, HasSubstr("out of luck"));
  }
  EXPECT_EQ(infra, 2u);
  expect_the_same(memory, undisturbed(), "after two crashes of leaves");
}

TEST(Fleet, ALeafThatDoesNotEndIsKilled) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 1);
  fleet.submit();
  const auto& launcher = *fleet.members.at("n").parts.launcher;
  const auto execution = launcher.running.at(0).job.execution;
  for (int second = 0; second < 14; ++second) fleet.sim.advance(1s);
  EXPECT_TRUE(launcher.killed.empty()) << "10 s and a grace of 5 s";
  fleet.sim.advance(2s);
  EXPECT_THAT(launcher.killed, testing::ElementsAre(execution));
  fleet.complete();
  const auto memory = fleet.memory();
  const auto timed_out = std::count_if(memory.results.begin(), memory.results.end(), [](const auto& result) {
    return result.detail.find("timed out") != std::string::npos && result.verdict == scenarios::Verdict::infra;
  });
  EXPECT_EQ(timed_out, 1);
}

TEST(Fleet, ALeafThatCannotBeKilledDoesNotHoldItsSlotForEver) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 1);
  fleet.submit();
  auto& launcher = *fleet.members.at("n").parts.launcher;
  launcher.immortal = true;
  for (int second = 0; second < 21; ++second) fleet.sim.advance(1s);
  EXPECT_EQ(launcher.running.size(), 2u) << "the next leaf runs beside the one that is stuck";
  launcher.immortal = false;
  launcher.running.pop_front();
  fleet.complete();
}

TEST(Fleet, AConfirmationRunsInAnotherSlot) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 2);
  fleet.submit();
  fleet.complete();
  const auto memory = fleet.memory();
  std::map<std::string, std::string> ran;
  for (const auto& result : memory.results) {
    if (result.purpose == coordinator::Purpose::explore) ran[result.address] = result.node;
  }
  int confirmations = 0;
  for (const auto& result : memory.results) {
    if (result.purpose != coordinator::Purpose::confirm || result.execution.find("#c1") == std::string::npos) continue;
    ++confirmations;
    EXPECT_NE(result.node, ran[result.address]) << result.execution;
  }
  EXPECT_GT(confirmations, 0);
}

TEST(Fleet, AnInterruptedCampaignIsResumed) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 2);
  fleet.submit();
  while (fleet.watch().executions < 10) ASSERT_TRUE(fleet.finish_one());
  fleet.sim.self->send(fleet.boss, actors::cancel_atom_v, fleet.campaign);
  fleet.sim.run();
  EXPECT_TRUE(fleet.watch().finished);
  EXPECT_EQ(fleet.running(), 0u) << "what ran was killed";
  EXPECT_EQ(fleet.stream.expected(), 0u);
  fleet.submit();
  EXPECT_THAT(fleet.watch().note, HasSubstr("resumed"));
  EXPECT_GE(fleet.watch().executions, 10u);
  fleet.complete();
  expect_the_same(fleet.memory(), undisturbed(), "after an interruption");
}

TEST(Fleet, ACoordinatorThatIsKilledGoesOnWhereItStood) {
  const auto right = undisturbed();
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Fleet fleet(seed);
    for (int life = 0; life < 6; ++life) {
      fleet.start_coordinator();
      fleet.join("n", 3);
      fleet.submit();
      for (auto leaves = 1 + fleet.rng() % 20; leaves > 0 && fleet.finish_one(); --leaves) {
      }
      fleet.stop_coordinator();
      fleet.members.clear();  // its node ended with it
    }
    fleet.start_coordinator();
    fleet.join("n", 3);
    fleet.submit();
    fleet.complete();
    expect_the_same(fleet.memory(), right, "seed " + std::to_string(seed));
  }
}

TEST(Fleet, ACompleteCampaignIsRunAfresh) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 2);
  fleet.submit();
  fleet.complete();
  fleet.submit();
  EXPECT_EQ(fleet.watch().executions, 0u);
  EXPECT_FALSE(fleet.watch().finished);
  fleet.complete();
  expect_the_same(fleet.memory(), undisturbed(), "the second time");
}

TEST(Fleet, TheTimeBudgetEndsTheSearch) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 1);
  std::string text = toy_text;
  text.replace(text.find("time: 5m"), 8, "time: 40s");
  fleet.submit(text);
  for (int second = 1; second <= 41; ++second) {
    fleet.sim.advance(1s);
    if (second % 4 == 0) fleet.finish_one();
  }
  fleet.complete();
  const auto memory = fleet.memory();
  EXPECT_EQ(memory.row.state, "cut");
  EXPECT_LT(coordinator::explored_leaves(memory.results).size(),
            coordinator::explored_leaves(undisturbed().results).size());
}

TEST(Fleet, ADrainedNodeEndsItsLeavesAndGoes) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 2);
  fleet.submit();
  const auto before = fleet.watch().executions;
  fleet.sim.self->send(fleet.members.at("n").handle, actors::drain_atom_v);
  fleet.sim.run();
  ASSERT_EQ(fleet.running(), 2u);
  while (fleet.finish_one()) {
  }
  EXPECT_EQ(fleet.watch().executions, before + 2) << "their results counted";
  EXPECT_EQ(fleet.watch().slots, 0u);
  fleet.members.clear();
  fleet.join("m", 2);
  fleet.complete();
  expect_the_same(fleet.memory(), undisturbed(), "after a drain");
}

TEST(Fleet, AScenarioThatIsNotTheCoordinatorsIsNotRun) {
  Fleet fleet;
  fleet.start_coordinator();
  fleet.join("n", 1);
  actors::CampaignRequest request;
  request.scenario = toy_scenario();
  request.scenario.identity = std::string(64, '0');
  request.seed = 7;
  auto answer = fleet.sim.self->request(fleet.boss, caf::infinite, actors::submit_atom_v, request);
  fleet.sim.run();
  answer.receive([&](std::string& name) { fleet.campaign = name; }, [](caf::error&) { FAIL(); });
  fleet.complete();
  const auto memory = fleet.memory();
  ASSERT_FALSE(memory.results.empty());
  EXPECT_EQ(memory.results[0].verdict, scenarios::Verdict::infra);
  EXPECT_THAT(memory.results[0].detail, HasSubstr("not those of the coordinator"));
}

TEST(Fleet, AScenarioThatCannotBeReadIsRefused) {
  Fleet fleet;
  fleet.start_coordinator();
  actors::CampaignRequest request;
  request.scenario = {"x", "/toy/scenario.yaml", "leafcutter: 1\nname: [", ""};
  auto answer = fleet.sim.self->request(fleet.boss, caf::infinite, actors::submit_atom_v, request);
  fleet.sim.run();
  answer.receive([](std::string&) { FAIL(); },
                 [&](caf::error& error) { EXPECT_THAT(fleet.sim.sys.render(error), HasSubstr("/toy/scenario.yaml")); });
}
