// Counts are exact while signals, threads and processes storm.
#include <gtest/gtest.h>

#include <filesystem>

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

}  // namespace
}  // namespace leafcutter::node::tests
