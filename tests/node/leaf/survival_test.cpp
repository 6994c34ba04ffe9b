// Whoever is killed, and whenever: a service under a system call filter neither outlives its supervisor nor learns that
// it has none.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/unique_fd.hpp"
#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

using namespace std::chrono_literals;

/// What the program counts; the file stays readable when its leaf has gone.
class Counters {
 public:
  explicit Counters(pid_t program)
      : file_(::open(("/proc/" + std::to_string(program) + "/cwd/counters").c_str(), O_RDONLY | O_CLOEXEC)) {}
  std::uint64_t calls() const { return numbers()[0]; }
  std::uint64_t unanswered() const { return numbers()[1]; }
  bool readable() const { return file_.get() >= 0; }

 private:
  std::array<std::uint64_t, 2> numbers() const {
    std::array<std::uint64_t, 2> out{};
    return ::pread(file_.get(), out.data(), sizeof out, 0) == sizeof out ? out : std::array<std::uint64_t, 2>{};
  }
  base::UniqueFd file_;
};

std::string scenario(const std::string& marker) {
  return "leafcutter: 1\nname: relentless\nservices:\n  shop:\n    run: [bin/relentless, " + marker +
         ", \"4\"]\nworkload:\n  - run: [/bin/sh, -c, \"sleep 100\"]\n    within: 90s\n"
         "explore: { observe: { shop: [write] } }\n";
}

class Killed : public ::testing::TestWithParam<const char*> {};

TEST_P(Killed, InTheMiddleOfAStormTheServiceGoesAndSeesNothing) {
  const std::string who = GetParam();
  for (int round = 0; round < 5; ++round) {
    const auto marker = "relentless-" + who + "-" + std::to_string(::getpid()) + "-" + std::to_string(round);
    Nest nest;
    std::filesystem::copy_file(RELENTLESS_PROGRAM, nest.folder() + "/bin/relentless");
    nest.give(scenario(marker));
    const auto execution = nest.start(nest.job());
    ASSERT_TRUE(eventually([&] { return processes_with(marker).size() == 1; }, 20s));
    const auto program = processes_with(marker).front();
    // Its parent is the init of its own pid namespace, and that one's parent the leaf, which supervises.
    const auto init = parent_of(program), leaf = parent_of(init);
    ASSERT_TRUE(eventually([&] { return Counters(program).calls() > 500; }, 20s));
    const Counters counters(program);
    ASSERT_TRUE(counters.readable());
    ASSERT_EQ(::kill(who == "leaf" ? leaf : parent_of(leaf), SIGKILL), 0);
    EXPECT_TRUE(eventually([&] { return processes_with(marker).empty(); }, 2s)) << "it outlived its " << who;
    EXPECT_EQ(counters.unanswered(), 0u) << "calls failed with ENOSYS in round " << round;
    EXPECT_FALSE(nest.wait(execution, 5s).exit.clean);
  }
}

INSTANTIATE_TEST_SUITE_P(With, Killed, ::testing::Values("leaf", "nursery"));

}  // namespace
}  // namespace leafcutter::node::testing
