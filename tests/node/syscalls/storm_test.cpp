// Counts are exact while signals, threads and processes storm.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

class Storm : public testing::TestWithParam<const char*> {};

TEST_P(Storm, OfSignalsNeitherLosesNorRepeatsACall) {
  const ScratchFolder folder;
  const auto outcome = run({program("storm"), folder / "a", GetParam(), "24", "100"},
                           {.families = {"write"}, .data_folder = folder.path()});
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_EQ(outcome.count("write", "data:a"), 2400u);
  EXPECT_EQ(std::filesystem::file_size(folder / "a"), 2400u);
  EXPECT_EQ(outcome.of_kind("syscall").size(), 64u);
}

TEST_P(Storm, StrikesTheOneWriteThatIsMeant) {
  const ScratchFolder folder;
  const auto outcome = run({program("storm"), folder / "a", GetParam(), "8", "50"},
                           {.families = {"write"},
                            .data_folder = folder.path(),
                            .faults = {fault("errno", "write", "data:a", 200, {{"error", "EIO"}})}});
  EXPECT_FALSE(outcome.exited_well());
  EXPECT_FALSE(outcome.fired().is_null());
  const auto made = outcome.count("write", "data:a");
  EXPECT_GE(made, 350u) << "one of eight threads gives up";
  EXPECT_EQ(std::filesystem::file_size(folder / "a"), made - 1);
}

INSTANTIATE_TEST_SUITE_P(Handlers, Storm, testing::Values("restart", "repeat"));

class Preempted : public testing::TestWithParam<std::pair<std::string, int>> {};

TEST_P(Preempted, ThreadsAsInGoLoseAndRepeatNothing) {
  const auto& [name, threads] = GetParam();
  const ScratchFolder folder;
  const auto outcome = run({program(name), folder / "a", "preempt", std::to_string(threads), "50"},
                           {.families = {"write"}, .data_folder = folder.path()});
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_EQ(outcome.count("write", "data:a"), static_cast<std::uint32_t>(threads) * 50);
  EXPECT_EQ(std::filesystem::file_size(folder / "a"), static_cast<std::uint64_t>(threads) * 50);
}

std::vector<std::pair<std::string, int>> preempted_programs() {
  return {{"storm", 24}, {"storm", 64}, {"storm_static", 24}};
}

INSTANTIATE_TEST_SUITE_P(Storms, Preempted, testing::ValuesIn(preempted_programs()));

TEST(Storms, ProgramsComeThroughOnAKernelWhereSignalsAbortNotifications) {
  const ScratchFolder folder;
  const auto outcome = run({program("storm"), folder / "a", "preempt-slowly", "8", "30"},
                           {.families = {"write"}, .data_folder = folder.path(), .old_kernel = true});
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(std::filesystem::file_size(folder / "a"), 240u);
  EXPECT_EQ(outcome.count("write", "data:a"), 240u) << "an aborted call comes again, and is the same call";
}

class OldKernel : public testing::TestWithParam<const char*> {};

/// Each write waits for several milliseconds, and every one of them brings a signal to some thread.
TEST_P(OldKernel, ACallThatSignalsAbortIsCountedOnceAndStruckOnce) {
  const ScratchFolder folder;
  scenarios::Aim tenth;
  tenth.occurrences = {scenarios::Occurrences::Which::every, 10};
  const auto outcome =
      run({program("storm"), folder / "a", GetParam(), "4", "25", "tally"},
          {.families = {"write"},
           .data_folder = folder.path(),
           .faults = {rule("delay", "write", {{"for", "4ms"}}), rule("errno", "write", {{"error", "EIO"}}, tenth)},
           .old_kernel = true});
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure << outcome.output;
  EXPECT_EQ(outcome.failure, "");
  const auto said = results(outcome.output);
  EXPECT_EQ(said.at("failed"), "10");
  const auto told = std::stoi(said.at("interrupted"));
  EXPECT_TRUE(std::string(GetParam()) == "restart" ? told == 0 : told > 0) << told << " interruptions";
  EXPECT_EQ(outcome.count("write", "data:a"), 100u);
  EXPECT_EQ(std::filesystem::file_size(folder / "a"), 90u);
  std::map<std::string, int> strikes;
  for (const auto& event : outcome.of_kind("fault.undone")) strikes[event.attrs["kind"]] = event.attrs["strikes"];
  EXPECT_EQ(strikes, (std::map<std::string, int>{{"delay", 100}, {"errno", 10}}));
}

/// The calls before it have passed at a glance, and it comes again while it is held.
TEST(OldKernels, ACallAmongManyIsHeldForItsWholeTime) {
  const ScratchFolder folder;
  const auto outcome = run({program("storm"), folder / "a", "restart", "1", "40"},
                           {.families = {"write"},
                            .data_folder = folder.path(),
                            .faults = {fault("delay", "write", "data:a", 30, {{"for", "40ms"}})},
                            .event_limit = 2,
                            .old_kernel = true});
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_EQ(outcome.count("write", "data:a"), 40u);
  static constexpr std::string_view held = "the call went on after ";
  const auto how = outcome.undone()["how"].get<std::string>();
  ASSERT_TRUE(how.starts_with(held)) << how;
  EXPECT_GE(std::stoi(how.substr(held.size())), 40) << how;
}

INSTANTIATE_TEST_SUITE_P(Handlers, OldKernel, testing::Values("restart", "repeat"));

TEST(Storms, AHeldCallStaysHeldWhileSignalsArrive) {
  const ScratchFolder folder;
  const auto outcome = run({program("storm"), folder / "a", "restart", "2", "20"},
                           {.families = {"write"},
                            .data_folder = folder.path(),
                            .faults = {fault("delay", "write", "data:a", 3, {{"for", "50ms"}})}});
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_EQ(outcome.count("write", "data:a"), 40u);
  EXPECT_TRUE(outcome.undone()["how"].get<std::string>().starts_with("the call went on after ")) << outcome.undone();
}

TEST(Storms, ForkedProcessesAreSeenToo) {
  const ScratchFolder folder;
  const auto outcome =
      run({program("storm"), folder / "a", "fork", "60", "10"}, {.families = {"write"}, .data_folder = folder.path()});
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_EQ(outcome.count("write", "data:a"), 600u);
}

class Spawned : public testing::TestWithParam<const char*> {};

TEST_P(Spawned, ProgramsAreSeenAndStruck) {
  const ScratchFolder folder;
  const auto outcome = run({program("spawner"), GetParam(), program("steps"), "write," + (folder / "a") + ",one"},
                           {.families = {"write", "open"},
                            .data_folder = folder.path(),
                            .faults = {fault("errno", "write", "data:a", 1, {{"error", "EIO"}})}});
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_EQ(outcome.output, "write -1 5\n");
  EXPECT_EQ(outcome.count("open", "data:a"), 1u);
}

INSTANTIATE_TEST_SUITE_P(By, Spawned, testing::Values("vfork", "posix_spawn"));

TEST(Storms, AChainOfProgramsIsSeenAndStruck) {
  const ScratchFolder folder;
  const auto last = "write," + (folder / "a") + ",one";
  const auto outcome = run({"env", "env", "A=1", "sh", "-c", "exec \"$@\"", "sh", program("spawner"), "vfork",
                            program("spawner"), "posix_spawn", "/usr/bin/env", program("steps"), last},
                           {.families = all_families(),
                            .data_folder = folder.path(),
                            .faults = {fault("errno", "write", "data:a", 1, {{"error", "EIO"}})}});
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_EQ(outcome.output, "write -1 5\n");
  EXPECT_EQ(outcome.count("write", "data:a"), 1u);
}

}  // namespace
}  // namespace leafcutter::node::tests
