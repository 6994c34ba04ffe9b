// No call passes the filter unseen, and what is stopped is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harness.hpp"
#include "node/syscalls/gate.hpp"

namespace leafcutter::node::tests {
namespace {

Outcome foreign(const std::string& how, std::vector<std::string> families = {"write"}) {
  return run({program("foreign"), how}, {.families = std::move(families), .data_folder = "/nowhere"});
}

class OtherInterface : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(OtherInterface, IsKilledAndNamed) {
  const auto& [how, name] = GetParam();
  const auto outcome = foreign(how);
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGKILL) << outcome.output;
  EXPECT_EQ(outcome.output, "");
  const auto events = outcome.of_kind("syscall");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].attrs["call"], name);
  EXPECT_THAT(events[0].attrs["detail"].get<std::string>(), testing::HasSubstr("its process was killed"));
  EXPECT_THAT(outcome.failure, testing::StartsWith("shop called " + std::string(name) + ": its process was killed"));
}

TEST_P(OtherInterface, IsNotTouchedWithoutAFilter) {
  const auto outcome = foreign(GetParam().first, {});
  EXPECT_TRUE(outcome.exited_well()) << "this kernel has no such interface: the case above proves nothing";
  EXPECT_EQ(outcome.failure, "");
}

INSTANTIATE_TEST_SUITE_P(Gate, OtherInterface,
                         testing::Values(std::pair{"i386", "getpid of the 32-bit (i386) interface"},
                                         std::pair{"x32", "getpid of the x32 interface"}));

TEST(Gate, KillsTheWholeProcessOfAThread) {
  const auto outcome = foreign("i386-thread");
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGKILL) << outcome.output;
  EXPECT_THAT(outcome.failure, testing::HasSubstr("getpid of the 32-bit"));
}

TEST(Gate, LetsWhatIsNoCallPass) {
  const auto outcome = foreign("none");
  EXPECT_EQ(outcome.output, "error 38\n");
  EXPECT_EQ(outcome.failure, "");
}

TEST(Gate, SaysOnceThatThereIsNoIoUring) {
  const auto outcome = foreign("io-uring");
  EXPECT_EQ(outcome.output, "error 38\n");
  EXPECT_TRUE(outcome.exited_well());
  EXPECT_EQ(outcome.failure, "") << "a program that asks does without";
  const auto events = outcome.of_kind("syscall");
  ASSERT_EQ(events.size(), 1u) << "the program asked three times";
  EXPECT_EQ(events[0].attrs["call"], "io_uring_setup");
  EXPECT_THAT(events[0].attrs["detail"].get<std::string>(), testing::StartsWith("answered ENOSYS"));
  EXPECT_NE(foreign("io-uring", {}).output, "error 38\n")
      << "this kernel has no io_uring: the case above proves nothing";
}

TEST(Gate, NamesWhatItDoesNotKnow) {
  const auto named = [](std::uint32_t arch, int number) {
    seccomp_data call{};
    call.arch = arch;
    call.nr = number;
    return foreign_call(call);
  };
  EXPECT_EQ(named(AUDIT_ARCH_X86_64, SYS_write), "");
  EXPECT_EQ(named(AUDIT_ARCH_I386, 99999), "call number 99999 of the 32-bit (i386) interface");
  EXPECT_EQ(named(AUDIT_ARCH_ARM, 4), "number 4 of an unknown interface");
}

}  // namespace
}  // namespace leafcutter::node::tests
