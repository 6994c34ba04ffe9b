// Stopped in mid-campaign, politely or not, Leafcutter loses nothing that it has accepted, leaves nothing behind, and
// goes on when it is started again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "support.hpp"

namespace {

using acceptance::document;
using acceptance::Folder;
using acceptance::leafcutter;
using acceptance::leafcutter_command;
using acceptance::left_behind;
using acceptance::Outcome;
using acceptance::Program;
using std::chrono::seconds;

class Interruption : public testing::Test {
 protected:
  Interruption() : scenario_(folder_.copy_scenario("config-save", "leaves: 300", "leaves: 60")) {}

  std::vector<std::string> command(const std::string& out) const {
    return {"run", scenario_, "--slots", "2", "--format", "json", "--out", folder_ / out};
  }

  std::string undisturbed_digest() const {
    return document(leafcutter(command("undisturbed"), folder_.path()))["result_digest"];
  }

  Folder folder_;
  std::string scenario_;
};

TEST_F(Interruption, ControlCKeepsStateAndTheSameCommandGoesOn) {
  Program first(leafcutter_command(command("out")), folder_.path());
  ASSERT_TRUE(first.wait_for_error_text("singles", seconds(60)));
  first.signal_group(SIGINT);
  const auto stopped = first.wait(seconds(30));
  EXPECT_EQ(stopped.exit, 130) << stopped.err;
  EXPECT_EQ(left_behind(folder_.path().string()), "");

  const auto resumed = leafcutter(command("out"), folder_.path());
  EXPECT_EQ(resumed.exit, 1) << resumed.err;
  EXPECT_EQ(document(resumed)["result_digest"], undisturbed_digest());
}

TEST_F(Interruption, KilledInTheMiddleItLeavesNothingBehindAndGoesOn) {
  for (int times = 0; times < 3; ++times) {
    Program victim(leafcutter_command(command("out")), folder_.path());
    ASSERT_TRUE(victim.wait_for_error_text("singles", seconds(60)));
    victim.signal_alone(SIGKILL);  // nobody is left to clean up: everything must die with it
    EXPECT_EQ(victim.wait(seconds(30)).exit, 128 + SIGKILL);
    EXPECT_EQ(left_behind(folder_.path().string()), "");
  }
  const auto resumed = leafcutter(command("out"), folder_.path());
  EXPECT_EQ(resumed.exit, 1) << resumed.err;
  EXPECT_EQ(document(resumed)["result_digest"], undisturbed_digest());
}

TEST_F(Interruption, ACampaignThatIsDoneIsRunAnewWithTheSameResult) {
  const auto first = document(leafcutter(command("out"), folder_.path()));
  const auto again = document(leafcutter(command("out"), folder_.path()));
  EXPECT_EQ(again["result_digest"], first["result_digest"]);
  EXPECT_EQ(again["executions"], first["executions"]) << "nothing is counted twice";
}

TEST_F(Interruption, ALookAtProcSeesAProcessThatIsThere) {
  // The negative twin of the checks above: something of ours runs, so something is found.
  Program running(leafcutter_command(command("out")), folder_.path());
  ASSERT_TRUE(running.wait_for_error_text("baseline", seconds(60)));
  EXPECT_THAT(left_behind(folder_.path().string(), seconds(0)), testing::HasSubstr("leafcutter run"));
}

}  // namespace
