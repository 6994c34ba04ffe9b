// The same scenario and seed give the same leaves, verdicts and findings: in two runs, with one slot or four, and when
// the coordinator and its node are two processes.
#include <gtest/gtest.h>

#include <csignal>

#include "support.hpp"

namespace {

using acceptance::document;
using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter;
using acceptance::leafcutter_command;
using acceptance::Program;
using std::chrono::seconds;

/// What two runs must agree on.
Json essence(const Json& json) {
  Json findings = Json::array();
  for (const auto& finding : json.value("findings", Json::array()))
    findings.push_back({finding["signature"], finding["property"], finding["leaf"], finding["plan"]});
  return {{"campaign", json.value("campaign", "")},
          {"leaves", json.value("leaves", Json())},
          {"digest", json.value("result_digest", "")},
          {"findings", findings}};
}

Json run(const Folder& folder, const std::string& scenario, const std::string& out, const std::string& slots) {
  const auto outcome =
      leafcutter({"run", scenario, "--slots", slots, "--format", "json", "--out", folder / out}, folder.path());
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  return essence(document(outcome));
}

TEST(SameResult, TwoRunsAndAnyNumberOfSlots) {
  const Folder folder;
  const auto scenario = folder.copy_scenario("outbox", "leaves: 400", "leaves: 100");
  const auto first = run(folder, scenario, "a", "4");
  EXPECT_FALSE(first["findings"].empty());
  EXPECT_EQ(run(folder, scenario, "b", "4"), first);
  EXPECT_EQ(run(folder, scenario, "c", "1"), first);
}

TEST(SameResult, WhenTheProcessThatStartsTheLeavesIsKilled) {
  const Folder folder;
  const auto scenario = folder.copy_scenario("outbox", "leaves: 400", "leaves: 100");
  const auto whole = run(folder, scenario, "a", "4");
  Program killed(leafcutter_command({"run", scenario, "--slots", "4", "--format", "json", "--out", folder / "b"}),
                 folder.path());
  // Twice: while it tries single faults, and among the pairs.
  for (const auto* phase : {"singles", "pairs"}) {
    ASSERT_TRUE(killed.wait_for_error_text(phase, seconds(120)));
    const auto nursery = acceptance::child_with(killed.pid(), "leaf-nursery");
    ASSERT_GT(nursery, 0);
    ASSERT_EQ(::kill(nursery, SIGKILL), 0);
  }
  const auto outcome = killed.wait(seconds(240));
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  EXPECT_EQ(essence(document(outcome)), whole);
}

TEST(SameResult, AnotherSeedIsAnotherCampaign) {
  const Folder folder;
  const auto scenario = folder.copy_scenario("double-charge", "leaves: 200", "leaves: 10");
  const auto one =
      document(leafcutter({"run", scenario, "--seed", "1", "--format", "json", "--out", folder / "a"}, folder.path()));
  const auto two =
      document(leafcutter({"run", scenario, "--seed", "2", "--format", "json", "--out", folder / "b"}, folder.path()));
  EXPECT_NE(one["campaign"], two["campaign"]);
}

TEST(SameResult, CoordinatorAndNodeAsTwoProcesses) {
  const Folder folder;
  const auto scenario = folder.copy_scenario("outbox", "leaves: 400", "leaves: 60");
  const auto whole = run(folder, scenario, "whole", "2");

  // Ports that no connection of another program is given: those begin at 32768.
  Program coordinator(leafcutter_command({"coordinator", scenario, "--listen", "127.0.0.1:24730", "--events",
                                          "127.0.0.1:24731", "--format", "json", "--out", folder / "fleet"}),
                      folder.path());
  Program node(leafcutter_command({"node", "--join", "127.0.0.1:24730", "--events", "127.0.0.1:24731", "--slots", "2",
                                   "--name", "one", "--out", folder / "node"}),
               folder.path());
  const auto outcome = coordinator.wait(seconds(240));
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  EXPECT_EQ(essence(document(outcome)), whole);
  node.signal_alone(SIGTERM);
  EXPECT_EQ(node.wait(seconds(30)).exit, 0);
  EXPECT_EQ(acceptance::left_behind(folder.path().string()), "");
}

}  // namespace
