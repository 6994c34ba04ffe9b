// Each effect with its evidence, and beside it the case that must not be struck.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

using scenarios::Fault;

Setting on(const ScratchFolder& folder, std::vector<std::string> families, std::vector<Fault> faults = {}) {
  return {.families = std::move(families), .data_folder = folder.path(), .faults = std::move(faults)};
}

TEST(Errno, FailsTheNamedOccurrenceAndNoOther) {
  const ScratchFolder folder;
  const auto log = folder / "orders.log";
  const auto outcome =
      run({program("steps"), "write," + log + ",one", "write," + log + ",two", "write," + log + ",three"},
          on(folder, {"write"}, {fault("errno", "write", "data:orders.log", 2, {{"error", "ENOSPC"}})}));
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure << outcome.output;
  EXPECT_EQ(outcome.output, "write 3 0\nwrite -1 28\nwrite 5 0\n");
  EXPECT_EQ(contents(log), "onethree");
  const auto fired = outcome.fired();
  ASSERT_FALSE(fired.is_null());
  EXPECT_EQ(fired["evidence"]["call"], "write");
  EXPECT_EQ(fired["evidence"]["path"], log);
  EXPECT_EQ(fired["evidence"]["errno"], ENOSPC);
  EXPECT_EQ(fired["evidence"]["errno_name"], "ENOSPC");
  EXPECT_GT(fired["evidence"]["pid"].get<int>(), 0);
  EXPECT_EQ(outcome.undone()["how"], "the call returned");
  EXPECT_EQ(outcome.count("write", "data:orders.log"), 3u);
}

TEST(Errno, AnOccurrenceThatIsNeverReachedDoesNotFire) {
  const ScratchFolder folder;
  const auto outcome = run({program("steps"), "write," + (folder / "a") + ",one"},
                           on(folder, {"write"}, {fault("errno", "write", "data:a", 2, {{"error", "EIO"}})}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_TRUE(outcome.fired().is_null());
  EXPECT_EQ(contents(folder / "a"), "one");
}

TEST(Errno, ARuleForAFileStrikesNoPipeAndNoOtherFile) {
  const ScratchFolder folder, elsewhere;
  const auto outcome =
      run({program("steps"), "pipe,text", "write," + (elsewhere / "a") + ",text", "write," + (folder / "b") + ",text"},
          on(folder, {"write"}, {fault("errno", "write", "data:a", 1, {{"error", "EIO"}})}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.output, "pipe 4 0\nwrite 4 0\nwrite 4 0\n");
  EXPECT_TRUE(outcome.fired().is_null());
  EXPECT_EQ(outcome.sites(), 1u) << "only data:b is a site: pipes, standard output and other folders are none";
}

TEST(Errno, TwoFaultsOfAPlanStrikeBoth) {
  const ScratchFolder folder;
  const auto a = folder / "a";
  const auto outcome = run({program("steps"), "write," + a + ",one", "fsync," + a},
                           on(folder, {"write", "fsync"},
                              {fault("errno", "write", "data:a", 1, {{"error", "EIO"}}),
                               fault("errno", "fsync", "data:a", 1, {{"error", "EDQUOT"}})}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.output, "write -1 5\nfsync -1 122\n");
  EXPECT_EQ(outcome.of_kind("fault.fired").size(), 2u);
  EXPECT_EQ(outcome.of_kind("fault.undone").size(), 2u);
}

TEST(Delay, HoldsTheCallAndLetsItThrough) {
  const ScratchFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = run({program("steps"), "write," + (folder / "a") + ",one"},
                           on(folder, {"write"}, {fault("delay", "write", "data:a", 1, {{"for", "150ms"}})}));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(150));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_EQ(contents(folder / "a"), "one");
  EXPECT_EQ(outcome.fired()["evidence"]["delayed_ms"], 150);
  EXPECT_THAT(outcome.undone()["how"].get<std::string>(), testing::StartsWith("the call went on after 1"));
}

TEST(Delay, AndErrnoAtOneOccurrenceBothStrike) {
  const ScratchFolder folder;
  const auto outcome = run({program("steps"), "write," + (folder / "a") + ",one"},
                           on(folder, {"write"},
                              {fault("delay", "write", "data:a", 1, {{"for", "30ms"}}),
                               fault("errno", "write", "data:a", 1, {{"error", "EIO"}})}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.output, "write -1 5\n");
  EXPECT_EQ(outcome.of_kind("fault.fired").size(), 2u);
}

TEST(CrashBefore, KillsTheServiceAndNothingIsWritten) {
  const ScratchFolder folder;
  const auto outcome = run({program("steps"), "write," + (folder / "a") + ",one", "write," + (folder / "a") + ",two"},
                           on(folder, {"write"}, {fault("crash-before", "write", "data:a", 2)}));
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGKILL);
  EXPECT_EQ(outcome.crashes, 1);
  EXPECT_EQ(contents(folder / "a"), "one");
  EXPECT_EQ(outcome.fired()["evidence"]["before"], true);
  EXPECT_EQ(outcome.output, "write 3 0\n");
}

TEST(CrashAfter, LeavesExactlyTheBytesWritten) {
  const ScratchFolder folder;
  const auto outcome = run({program("steps"), "write," + (folder / "a") + ",one", "write," + (folder / "a") + ",two"},
                           on(folder, {"write"}, {fault("crash-after", "write", "data:a", 2)}));
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGKILL);
  EXPECT_EQ(outcome.crashes, 1);
  EXPECT_EQ(contents(folder / "a"), "onetwo");
  EXPECT_EQ(outcome.fired()["evidence"]["after"], true);
  EXPECT_EQ(outcome.fired()["evidence"]["result"], 3);
  EXPECT_EQ(outcome.output, "write 3 0\n") << "the service never learns that its second write went through";
}

TEST(CrashAfter, OfACallThatCannotBeCarriedOutDoesNotFire) {
  const ScratchFolder folder;
  const auto outcome = run({program("steps"), "bad-write," + (folder / "a")},
                           on(folder, {"write"}, {fault("crash-after", "write", "data:a")}));
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.output, "bad-write -1 14\n");
  EXPECT_EQ(outcome.crashes, 0);
  EXPECT_TRUE(outcome.fired().is_null());
  const auto calls = outcome.of_kind("syscall");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_THAT(calls[0].attrs["detail"].get<std::string>(), testing::StartsWith("crash-after not possible: "));
}

TEST(Events, AreBoundedWhileTheCountGoesOn) {
  const ScratchFolder folder;
  auto setting = on(folder, {"write"}, {fault("errno", "write", "data:a", 4, {{"error", "EIO"}})});
  setting.event_limit = 2;
  const auto step = "write," + (folder / "a") + ",x";
  const auto outcome = run({program("steps"), step, step, step, step, step}, setting);
  ASSERT_TRUE(outcome.exited_well());
  const auto calls = outcome.of_kind("syscall");
  ASSERT_EQ(calls.size(), 3u) << "two within the limit, and the one that was struck";
  EXPECT_EQ(calls[0].attrs, (Value{{"call", "write"},
                                   {"family", "write"},
                                   {"resource", "data:a"},
                                   {"path", folder / "a"},
                                   {"n", 1},
                                   {"injected", false}}));
  EXPECT_EQ(calls[2].attrs["injected"], true);
  EXPECT_EQ(calls[2].attrs["errno"], "EIO");
  EXPECT_EQ(calls[2].attrs["n"], 4);
  EXPECT_EQ(outcome.count("write", "data:a"), 5u);
}

TEST(Events, OfAFaultComeBeforeWhatTheServiceDoesNext) {
  const ScratchFolder folder;
  const auto outcome = run({program("steps"), "write," + (folder / "a") + ",x", "write," + (folder / "b") + ",x"},
                           on(folder, {"write"}, {fault("errno", "write", "data:a", 1, {{"error", "EIO"}})}));
  std::vector<std::string> order;
  for (const auto& event : outcome.events)
    if (event.lane == "shop" && event.kind != "fault.undone")
      order.push_back(event.kind + event.attrs.value("resource", ""));
  EXPECT_EQ(order, (std::vector<std::string>{"syscalldata:a", "fault.fired", "syscalldata:b"}));
}

}  // namespace
}  // namespace leafcutter::node::tests
