// Faults of time: errors that come late, slow disks, sleeps that are skipped, calls that are held, services that are
// stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

using std::chrono::steady_clock;

struct Timed {
  Outcome outcome;
  std::chrono::nanoseconds took{0};
};

Timed timed(const std::vector<std::string>& argv, const Setting& setting) {
  const auto begin = steady_clock::now();
  Timed out{run(argv, setting), {}};
  out.took = steady_clock::now() - begin;
  return out;
}

Setting on(const ScratchFolder& folder, std::vector<std::string> families, std::vector<scenarios::Fault> faults) {
  return {.families = std::move(families),
          .data_folder = folder.path(),
          .faults = std::move(faults),
          .working_folder = folder.path()};
}

using namespace std::chrono_literals;

TEST(LateErrno, FailsAfterItsTime) {
  const ScratchFolder folder;
  const auto [outcome, took] =
      timed({program("steps"), "write,a,one", "write,b,two"},
            on(folder, {"write"}, {fault("errno", "write", "data:a", 1, {{"error", "ETIMEDOUT"}, {"late", "120ms"}})}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.output, "write -1 110\nwrite 3 0\n");
  EXPECT_GE(took, 120ms);
  EXPECT_GE(outcome.fired()["evidence"]["late_ms"].get<int>(), 120);
  EXPECT_EQ(contents(folder / "a"), "");
}

TEST(LateErrno, OfATaskThatIsKilledMeanwhileDoesNotFire) {
  const ScratchFolder folder;
  const auto outcome =
      run({"sh", "-c", "\"$0\" write,a,one & sleep 0.1; kill -9 $!; wait", program("steps")},
          on(folder, {"write"}, {fault("errno", "write", "data:a", 1, {{"error", "EIO"}, {"late", "5s"}})}));
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_TRUE(outcome.of_kind("fault.fired").empty()) << "it never failed a call";
}

TEST(Slow, CallsTakeTheTimeOfTheirBytes) {
  const ScratchFolder folder;
  const std::string bytes(50, 'x');
  const auto write = "write,a," + bytes;
  const auto [outcome, took] =
      timed({program("steps"), write, write, write, write},
            on(folder, {"write"}, {fault("slow", "write", "data:a", 2, {{"bytes-per-second", 1000}})}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.output, "write 50 0\nwrite 50 0\nwrite 50 0\nwrite 50 0\n");
  EXPECT_GE(took, 140ms) << "three calls of 50 ms, less what a slow disk may catch up on";
  const auto fired = outcome.fired();
  ASSERT_FALSE(fired.is_null());
  EXPECT_EQ(fired["evidence"]["bytes"], 50);
  EXPECT_EQ(outcome.undone()["strikes"], 3);
  EXPECT_EQ(contents(folder / "a").size(), 200u);
}

/// One disk: two who write to it share its rate, however short each call is.
TEST(Slow, ManySmallCallsOfTwoAddUp) {
  const ScratchFolder folder;
  const auto script = "w() { dd if=/dev/zero of=a bs=100 count=500 status=none conv=notrunc; }; w & w; wait";
  const auto [outcome, took] =
      timed({"sh", "-c", script},
            on(folder, {"write"}, {fault("slow", "write", "data:a", 1, {{"bytes-per-second", 500'000}})}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_GE(took, 190ms);
  EXPECT_EQ(outcome.undone()["strikes"], 1000);
  EXPECT_EQ(outcome.of_kind("syscall").size(), 128u) << "64 of the waits, 64 of the calls: the rest is counted";
}

TEST(Slow, CallsWithoutBytesAndOtherFilesAreNotHeld) {
  const ScratchFolder folder;
  const auto [outcome, took] = timed({program("steps"), "readn,a,50", "write,b,0123456789"},
                                     on(folder, {"read", "write"},
                                        {fault("slow", "read", "data:a", 1, {{"bytes-per-second", 1}}),
                                         fault("slow", "write", "data:a", 1, {{"bytes-per-second", 1}})}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
  EXPECT_LT(took, 5s);
}

class Skip : public testing::TestWithParam<const char*> {};

TEST_P(Skip, ReturnsAtOnce) {
  const ScratchFolder folder;
  const auto [outcome, took] = timed({program("steps"), std::string(GetParam()) + ",3600000"},
                                     on(folder, {"sleep"}, {rule("skip", "sleep", Value::object())}));
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure;
  EXPECT_EQ(outcome.output, std::string(GetParam()) + " 0 0\n");
  EXPECT_LT(took, 10s);
  const auto skipped = outcome.fired()["evidence"]["skipped_ms"].get<int>();
  EXPECT_GT(skipped, 3'500'000);
  EXPECT_LE(skipped, 3'600'000);
  EXPECT_EQ(outcome.count("sleep", std::string(GetParam()) == "sleep" ? "nanosleep" : "CLOCK_MONOTONIC"), 1u);
}

TEST_P(Skip, OfOneSleepLeavesTheOthersAlone) {
  const ScratchFolder folder;
  scenarios::Aim second;
  second.occurrences = {scenarios::Occurrences::Which::nth, 2};
  const auto sleep = std::string(GetParam()) + ",60";
  const auto [outcome, took] = timed({program("steps"), sleep, std::string(GetParam()) + ",3600000", sleep},
                                     on(folder, {"sleep"}, {rule("skip", "sleep", Value::object(), second)}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_GE(took, 120ms);
  EXPECT_EQ(outcome.of_kind("fault.fired").size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Calls, Skip, testing::Values("sleep", "clock-sleep", "sleep-until"));

TEST(Skip, OfATimeThatIsNoneFailsAsItWould) {
  const ScratchFolder folder;
  const auto outcome =
      run({program("steps"), "sleep,-1000"}, on(folder, {"sleep"}, {rule("skip", "sleep", Value::object())}));
  EXPECT_EQ(outcome.output, "sleep -1 22\n");
  EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
}

TEST(Observed, ClocksAndRandomnessAreSites) {
  const ScratchFolder folder;
  const auto outcome = run({program("steps"), "random", "clock"}, on(folder, {"random", "clock"}, {}));
  EXPECT_GE(outcome.count("random", "getrandom"), 1u);
  EXPECT_EQ(outcome.count("clock", "CLOCK_BOOTTIME"), 1u);
}

TEST(Hold, EndsAtItsLimit) {
  const ScratchFolder folder;
  const auto [outcome, took] =
      timed({program("steps"), "write,a,one"},
            on(folder, {"write"}, {fault("hold", "write", "data:a", 1, {{"at-most", "100ms"}})}));
  EXPECT_EQ(outcome.output, "write 3 0\n");
  EXPECT_GE(took, 100ms);
  EXPECT_FALSE(outcome.fired().is_null());
  EXPECT_THAT(outcome.undone()["how"].get<std::string>(), testing::StartsWith("the call went on after "));
}

TEST(Hold, EndsWithItsEvent) {
  const ScratchFolder folder;
  // The other process waits until the write is held: nothing but its own mkdir may release it.
  const auto script =
      "\"$0\" write,a,one & until [ -e held ]; do [ -s a ] && exit 1; [ -e a ] && touch held; done; "
      "\"$0\" mkdir,b,0755; wait";
  const auto [outcome, took] =
      timed({"sh", "-c", script, program("steps")},
            on(folder, {"write", "mkdir"},
               {fault("hold", "write", "data:a", 1, {{"at-most", "1h"}, {"until", "syscall family=mkdir"}})}));
  ASSERT_TRUE(outcome.exited_well()) << outcome.output << outcome.failure;
  EXPECT_LT(took, 15s);
  EXPECT_EQ(contents(folder / "a"), "one");
  EXPECT_THAT(outcome.undone()["how"].get<std::string>(), testing::StartsWith("its event was seen after "));
  std::vector<std::string> order;
  for (const auto& event : outcome.events)
    if (event.kind == "fault.fired" || event.kind == "fault.undone" || event.attrs.value("family", "") == "mkdir")
      order.push_back(event.kind);
  EXPECT_EQ(order, (std::vector<std::string>{"fault.fired", "syscall", "fault.undone"}));
}

TEST(Hold, IsNotReleasedByAnEventBeforeIt) {
  const ScratchFolder folder;
  const auto [outcome, took] =
      timed({program("steps"), "mkdir,b,0755", "write,a,one"},
            on(folder, {"write", "mkdir"},
               {fault("hold", "write", "data:a", 1, {{"at-most", "150ms"}, {"until", "syscall family=mkdir"}})}));
  EXPECT_EQ(outcome.output, "mkdir 0 0\nwrite 3 0\n");
  EXPECT_GE(took, 150ms);
}

TEST(PauseAt, StopsTheServiceForItsTime) {
  const ScratchFolder folder;
  const auto [outcome, took] =
      timed({program("steps"), "write,a,one", "write,a,two"},
            on(folder, {"write"}, {fault("pause-at", "write", "data:a", 1, {{"for", "120ms"}})}));
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure;
  EXPECT_EQ(outcome.output, "write 3 0\nwrite 3 0\n");
  EXPECT_GE(took, 120ms);
  EXPECT_EQ(outcome.stops, 1);
  EXPECT_EQ(outcome.goings_on, 1);
  EXPECT_EQ(outcome.fired()["evidence"]["processes"], 1);
}

TEST(PauseAt, OfAServiceThatCannotBeStoppedDoesNotFire) {
  const ScratchFolder folder;
  auto setting = on(folder, {"write"}, {fault("pause-at", "write", "data:a", 1, {{"for", "1h"}})});
  setting.can_stop = false;
  const auto outcome = run({program("steps"), "write,a,one"}, setting);
  EXPECT_EQ(outcome.output, "write 3 0\n");
  EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
  EXPECT_EQ(outcome.of_kind("syscall").at(0).attrs["detail"],
            "pause-at not possible: no process of the service could be stopped");
}

TEST(SeveralFaults, WaitsAddUpAndOneEnds) {
  const ScratchFolder folder;
  const auto [outcome, took] =
      timed({program("steps"), "write,a,one"},
            on(folder, {"write"},
               {fault("delay", "write", "data:a", 1, {{"for", "60ms"}}),
                fault("errno", "write", "data:a", 1, {{"error", "EIO"}}),
                fault("hold", "write", "data:a", 1, {{"at-most", "60ms"}}),
                fault("torn", "write", "data:a", 1, {{"bytes", 1}}), fault("crash-before", "write", "data:a", 1)}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.output, "write -1 5\n");
  EXPECT_GE(took, 120ms);
  std::vector<std::string> fired;
  for (const auto& event : outcome.of_kind("fault.fired")) fired.push_back(event.attrs["kind"]);
  EXPECT_EQ(fired, (std::vector<std::string>{"delay", "hold", "errno"}));
  const auto calls = outcome.of_kind("syscall");
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(calls.back().attrs["detail"],
            "torn was planned here, too, and not carried out; crash-before was planned here, too, and not carried out");
}

TEST(SeveralFaults, AnEndingThatCannotStrikeLeavesTheCallToTheNext) {
  const ScratchFolder folder;
  const auto outcome =
      run({program("steps"), "write,a,one"}, on(folder, {"write"},
                                                {fault("short", "write", "data:a", 1, {{"bytes", 100}}),
                                                 fault("errno", "write", "data:a", 1, {{"error", "EIO"}})}));
  EXPECT_EQ(outcome.output, "write -1 5\n");
  EXPECT_EQ(outcome.fired()["kind"], "errno");
}

}  // namespace
}  // namespace leafcutter::node::tests
