#include "node/observe/thread_states.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

namespace leafcutter::node {
namespace {

ThreadStates states_of_process(pid_t pid) {
  return thread_states(folder_at(AT_FDCWD, "/proc/" + std::to_string(pid)).get());
}

bool comes_to(pid_t pid, const std::function<bool(const ThreadStates&)>& wanted) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!wanted(states_of_process(pid)))
    if (std::chrono::steady_clock::now() > deadline) return false;
  return true;
}

int pause_for_ever(void*) {
  for (;;) ::pause();
}

class ThreadStatesTest : public testing::Test {
 protected:
#ifdef __SANITIZE_THREAD__
  void SetUp() override { GTEST_SKIP() << "ThreadSanitizer's library has a thread of its own in every process"; }
#endif
  /// A child with two threads, or one whose parent of vfork it is.
  void start(bool with_vfork) {
    child_ = ::fork();
    if (child_ != 0) return;
    if (with_vfork) {
      // What vfork() does; ThreadSanitizer makes a fork of it, which holds nobody.
      alignas(16) static char stack[64 * 1024];
      ::clone(pause_for_ever, stack + sizeof stack, CLONE_VFORK | SIGCHLD, nullptr);
      ::_exit(0);
    }
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    for (;;) ::pause();
  }
  ~ThreadStatesTest() override {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  pid_t child_ = -1;
};

TEST_F(ThreadStatesTest, EveryThreadIsLookedAt) {
  start(false);
  EXPECT_TRUE(comes_to(child_, [](const auto& s) { return s.alive == 2 && s.moving == 2 && s.stopped == 0; }));
  ::kill(child_, SIGSTOP);
  EXPECT_TRUE(comes_to(child_, [](const auto& s) { return s.alive == 2 && s.moving == 0 && s.stopped == 2; }));
}

TEST_F(ThreadStatesTest, WhatIsHeldInTheKernelDoesNotMove) {
  start(true);
  EXPECT_TRUE(comes_to(child_, [](const auto& s) { return s.alive == 1 && s.moving == 0 && s.stopped == 0; }));
  const auto folder = folder_at(AT_FDCWD, "/proc/" + std::to_string(child_) + "/task/" + std::to_string(child_));
  char children[64] = {};
  const base::UniqueFd file(::openat(folder.get(), "children", O_RDONLY | O_CLOEXEC));
  if (::read(file.get(), children, sizeof children - 1) > 0) ::kill(std::atoi(children), SIGKILL);
}

TEST_F(ThreadStatesTest, OfAProcessThatHasGoneAreNone) {
  start(false);
  ::kill(child_, SIGKILL);
  EXPECT_TRUE(comes_to(child_, [](const auto& s) { return s.alive == 0; }));
  EXPECT_EQ(thread_states(-1).alive, 0u);
}

}  // namespace
}  // namespace leafcutter::node
