// The filter itself: what it kills, what it refuses, that it can be handed over whatever it catches, and that nothing
// of it is left in the service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.hpp"
#include "node/syscalls/filter.hpp"

namespace leafcutter::node::tests {
namespace {

TEST(Filter, OfNoFamiliesIsEmpty) {
  const auto program = build_filter({});
  ASSERT_TRUE(program);
  EXPECT_TRUE(program->empty());
  EXPECT_EQ(install_filter(*program, -1), 0);
}

TEST(Filter, RefusesAnUnknownFamily) {
  const auto program = build_filter({.families = {"write", "wrte"}});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, base::ErrorCode::bad_input);
  EXPECT_THAT(program.error().message, testing::HasSubstr("\"wrte\""));
}

TEST(Filter, LetsWhatIsNoCallPass) {
  const auto outcome = run({program("foreign"), "none"}, {.families = {"write"}, .data_folder = "/nowhere"});
  EXPECT_EQ(outcome.output, "error 38\n");
}

TEST(Handover, WorksForEachFamilyAloneAndForAll) {
  auto sets = std::vector<std::vector<std::string>>{all_families()};
  for (const auto& name : all_families()) sets.push_back({name});
  for (const auto& families : sets) {
    const auto outcome = run({"true"}, {.families = families, .data_folder = "/nowhere"});
    EXPECT_TRUE(outcome.exited_well()) << families.front() << ": " << outcome.failure;
  }
}

TEST(Handover, LeavesNoListenerInTheService) {
  const auto outcome = run({program("descriptors")}, {.families = all_families(), .data_folder = "/nowhere"});
  ASSERT_TRUE(outcome.exited_well());
  EXPECT_THAT(outcome.output, testing::HasSubstr("1 pipe:"));
  EXPECT_THAT(outcome.output, testing::Not(testing::HasSubstr("seccomp")));
}

TEST(Handover, OfAChildThatDiesIsAnError) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  ::close(pair[1]);
  const auto listener = receive_listener(pair[0]);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, base::ErrorCode::unavailable);
  ::close(pair[0]);
}

TEST(Handover, SaysWhyTheKernelRefused) {
  const auto broken = std::vector<sock_filter>{{0xffff, 0, 0, 0}};
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const auto pid = ::fork();
  if (pid == 0) ::_exit(install_filter(broken, pair[1]));
  ::close(pair[1]);
  const auto listener = receive_listener(pair[0]);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, base::ErrorCode::unavailable);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), EINVAL);
  ::close(pair[0]);
}

TEST(Handover, ASecondListenerInOneTreeIsRefusedAndSaid) {
  int outer[2], inner[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, outer), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, inner), 0);
  const auto filter = build_filter({.families = {"mkdir"}});
  ASSERT_TRUE(filter);
  const auto pid = ::fork();
  if (pid == 0) ::_exit(install_filter(*filter, outer[1]) == 0 ? install_filter(*filter, inner[1]) : 1);
  ::close(outer[1]);
  ::close(inner[1]);
  const auto first = receive_listener(outer[0]);
  const auto second = receive_listener(inner[0]);
  EXPECT_TRUE(first);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, testing::HasSubstr("already has a seccomp listener"));
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), EBUSY);
  if (first) ::close(*first);
  ::close(outer[0]);
  ::close(inner[0]);
}

}  // namespace
}  // namespace leafcutter::node::tests
