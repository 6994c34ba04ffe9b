// One action, from request to outcome: it comes into force, and nothing is left of it.
#include "node/host/actions/action.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "base/random.hpp"
#include "base/text.hpp"
#include "node/host/actions/execute.hpp"
#include "node/host/actions/keeper.hpp"
#include "node/host/actions/processes.hpp"
#include "support.hpp"

namespace leafcutter::node::host {
namespace {

using protocols::Outcome;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::Host;
using testing::options_of_test;

constexpr auto short_time = milliseconds(300);

Request pressure_request() { return {"cpu", {{"workers", "2"}}, {}, short_time}; }
Request fill_request(const Host& host) {
  return {"disk", {{"megabytes", "1"}, {"folder", host / "room"}}, {}, short_time};
}
Request variant_request() { return {"configure", {{"name", "app"}, {"variant", "low"}}, {}, short_time}; }

/// What is seen once it is in force, and that the same is seen before and after.
void expect_in_force(const Host& host, const Request& request, const std::string& seen) {
  const auto before = host.snapshot();
  std::string during;
  auto options = options_of_test();
  options.at = [&](Step step) {
    if (step == Step::checked) during = host.snapshot();
  };
  const auto result = host.run(request, options);
  EXPECT_EQ(result.outcome, Outcome::success) << result.detail;
  EXPECT_THAT(during, HasSubstr(seen));
  EXPECT_THAT(before, Not(HasSubstr(seen))) << "a test that cannot fail";
  EXPECT_EQ(host.snapshot(), before);
  EXPECT_EQ(host.audit_flaw(), "");
}

TEST(HostAction, CpuPressureIsProcessesOfOurs) {
  const Host host;
  expect_in_force(host, pressure_request(), "workers: 2");
}

TEST(HostAction, MemoryPressureIsHeld) {
  const Host host;
  expect_in_force(host, {"memory", {{"megabytes", "8"}}, {}, short_time}, "workers: 1");
}

TEST(HostAction, DiskPressureTakesRoom) {
  const Host host;
  expect_in_force(host, fill_request(host), ".leafcutter-fill-");
}

TEST(HostAction, AConfigurationBecomesAVariantAndComesBack) {
  const Host host;
  ASSERT_EQ(::chmod((host / "app.conf").c_str(), 0640), 0);
  expect_in_force(host, variant_request(), "app.conf: low mode 416");
}

TEST(HostAction, AConfigurationThatWasNotThereIsNotThereAgain) {
  const Host host;
  ASSERT_EQ(::unlink((host / "app.conf").c_str()), 0);
  expect_in_force(host, variant_request(), "app.conf: low");
}

TEST(HostAction, AStoppedProcessGoesOn) {
  const Host host;
  host.start_sleeper();
  expect_in_force(host, {"signal", {{"target", "sleeper"}, {"signal", "STOP"}}, {}, short_time}, "sleeper: T");
}

/// Somebody else's change meanwhile is kept.
TEST(HostAction, SomebodyElsesContentIsNotClobbered) {
  const Host host;
  auto options = options_of_test();
  options.at = [&](Step step) {
    if (step == Step::checked) {
      ASSERT_TRUE(base::write_file_atomically(host / "app.conf", "theirs"));
    }
  };
  const auto result = host.run(variant_request(), options);
  EXPECT_EQ(result.outcome, Outcome::failure);
  EXPECT_THAT(result.detail, HasSubstr("did not stay in force"));
  EXPECT_EQ(*base::read_file(host / "app.conf"), "theirs");
}

TEST(HostAction, DeniedMeansThatNothingRan) {
  const Host host;
  const auto before = host.snapshot();
  const auto denied = [&](const Request& request, const std::string& why) {
    const auto result = host.run(request);
    EXPECT_EQ(result.outcome, Outcome::denied) << result.detail;
    EXPECT_THAT(result.detail, HasSubstr(why));
    EXPECT_EQ(host.snapshot(), before);
    EXPECT_FALSE(host.keeper_runs());
  };
  denied({"cpu", {{"workers", "3"}}, {}, short_time}, "workers \"3\"");
  denied({"memory", {{"megabytes", "9"}}, {}, short_time}, "megabytes \"9\"");
  denied({"configure", {{"name", "app"}, {"variant", "stale"}}, {}, short_time}, "the profile pins");
  denied({"signal", {{"target", "sleeper"}, {"signal", "HUP"}}, {}, {}}, "pid file");
  denied({"command", {}, {"/bin/true"}, {}}, "\"/bin/true\"");
  const auto records = host.audit();
  EXPECT_EQ(records.back().stage, "outcome");
  EXPECT_EQ(records.back().outcome, Outcome::denied);
}

TEST(HostAction, ASecondOneOnTheSameResourceIsDenied) {
  const Host host;
  auto options = options_of_test();
  ActionResult second;
  options.at = [&](Step step) {
    if (step == Step::checked) second = host.run(variant_request());
  };
  const auto before = host.snapshot();
  EXPECT_EQ(host.run(variant_request(), options).outcome, Outcome::success);
  EXPECT_EQ(second.outcome, Outcome::denied);
  EXPECT_THAT(second.detail, HasSubstr("is held by another action"));
  EXPECT_EQ(host.snapshot(), before);
}

TEST(HostAction, TwoOnDifferentResourcesGoTogether) {
  const Host host;
  const auto before = host.snapshot();
  auto options = options_of_test();
  ActionResult second;
  options.at = [&](Step step) {
    if (step == Step::checked) second = host.run(fill_request(host));
  };
  EXPECT_EQ(host.run({"cpu", {{"workers", "1"}}, {}, std::chrono::seconds(2)}, options).outcome, Outcome::success);
  EXPECT_EQ(second.outcome, Outcome::success) << second.detail;
  EXPECT_EQ(host.snapshot(), before);
}

TEST(HostAction, AWorkerThatIsKilledIsNoticed) {
  const Host host;
  auto options = options_of_test();
  options.at = [&](Step step) {
    if (step != Step::checked) return;
    for (const auto& worker : workers_of(host.state_folder(), host.state().list().intents.at(0).id, std::nullopt))
      signal_process_of(worker.pid, worker.started, SIGKILL);
  };
  const auto result = host.run({"cpu", {{"workers", "2"}}, {}, milliseconds(800)}, options);
  EXPECT_EQ(result.outcome, Outcome::failure);
  EXPECT_THAT(result.detail, HasSubstr("of 2 workers are there"));
}

// --- processes ---

TEST(HostProcesses, APidFileOfAnEarlierProcessIsRefused) {
  const Host host;
  const auto pid = host.start_sleeper();
  ASSERT_TRUE(held_process(host / "sleeper.pid", "sleep").ok());
  EXPECT_THAT(held_process(host / "sleeper.pid", "postgres").error().message, HasSubstr("is called \"sleep\""));
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (host / "sleeper.pid").c_str(), long_ago, 0), 0);
  EXPECT_THAT(held_process(host / "sleeper.pid", "sleep").error().message, HasSubstr("was started after the file"));
  EXPECT_FALSE(signal_process_of(pid, 1, SIGKILL)) << "another process that had its number";
  EXPECT_TRUE(host_process(pid).has_value());
}

TEST(HostProcesses, APidFileThatHoldsNoNumberIsRefused) {
  const tests::Folder folder;
  for (const auto* text : {"", "x", "1", "0", "-1", "12 34", "99999999999"})
    EXPECT_FALSE(held_process(folder.write("p", text), "sleep").ok()) << text;
  EXPECT_FALSE(held_process(folder / "none", "sleep").ok());
  EXPECT_FALSE(held_process("/dev/zero", "sleep").ok());
}

// --- commands ---

std::string commands_profile(const std::string& script) {
  return "commands:\n  shell:\n    program: /bin/sh\n    arguments: [-c, '" + script +
         "', { matches: '.*' }]\n    within: 2s\n" +
         "    environment: { ONLY: this }\n  pinned: { program: /bin/true, sha256: " + std::string(64, '0') +
         " }\n  missing: { program: /nowhere/at-all }\n";
}

Request command_request(const std::string& script, const std::string& argument = "x") {
  return {"command", {}, {"/bin/sh", "-c", script, argument}, {}};
}

TEST(HostCommand, ItsEndIsItsOutcome) {
  const std::string script = "echo \"$0\"; exit 3";
  const Host host(commands_profile(script));
  const auto result = host.run(command_request(script, "said"));
  EXPECT_EQ(result.outcome, Outcome::failure);
  EXPECT_EQ(result.detail, "exit status 3");
  EXPECT_EQ(result.output, "said\n");
}

TEST(HostCommand, ItHasTheEnvironmentOfTheProfileAndNoOther) {
  const std::string script = "/usr/bin/env";
  const Host host(commands_profile(script));
  const auto result = host.run(command_request(script));
  EXPECT_EQ(result.outcome, Outcome::success) << result.detail;
  EXPECT_THAT(result.output, HasSubstr("ONLY=this"));
  EXPECT_THAT(result.output, Not(HasSubstr("HOME=")));
}

TEST(HostCommand, WhatCannotBeExecutedIsDenied) {
  const Host host(commands_profile("true"));
  const auto pinned = host.run({"command", {}, {"/bin/true"}, {}});
  EXPECT_EQ(pinned.outcome, Outcome::denied);
  EXPECT_THAT(pinned.detail, HasSubstr("has the digest"));
  const auto missing = host.run({"command", {}, {"/nowhere/at-all"}, {}});
  EXPECT_EQ(missing.outcome, Outcome::denied);
  EXPECT_THAT(missing.detail, HasSubstr("No such file"));
}

TEST(HostCommand, AtItsDeadlineEverythingItStartedIsKilled) {
  const std::string script = "sleep 300 & sleep 300";
  const Host host(commands_profile(script));
  const auto result = host.run(command_request(script));
  EXPECT_EQ(result.outcome, Outcome::timed_out) << result.detail;
  EXPECT_EQ(host.wait_for_snapshot(host.snapshot(), milliseconds(1)), "");
  EXPECT_THAT(host.snapshot(), HasSubstr("workers: 0"));
}

/// Whatever a command prints, its outcome is how it ended.
TEST(HostCommand, NoOutputChangesAnOutcome) {
  const std::vector<std::string> words = {"denied",
                                          "success",
                                          "command \"x\" is not in the approved allowlist",
                                          "\n",
                                          "does not allow arguments",
                                          "{\"outcome\":\"success\"}",
                                          "lost",
                                          "\x01\xff"};
  for (std::uint64_t i = 0; i < 400; ++i) {
    base::Stream random(11, "output", i);
    std::string text;
    for (auto n = random.below(9); n > 0; --n) text += words[random.below(words.size())];
    const auto status = static_cast<int>(random.below(3));
    const bool killed = random.below(4) == 0;
    const auto end = execute({{"/bin/sh", "-c", killed ? "printf %s \"$0\"; kill -9 $$" : "printf %s \"$0\"; exit $1",
                               text, std::to_string(status)},
                              "",
                              {},
                              "/",
                              std::chrono::seconds(20)});
    EXPECT_EQ(end.output, text);
    EXPECT_EQ(end.how, killed ? CommandEnd::How::killed : CommandEnd::How::exited);
    EXPECT_EQ(end.status, killed ? SIGKILL : status);
  }
}

}  // namespace
}  // namespace leafcutter::node::host
