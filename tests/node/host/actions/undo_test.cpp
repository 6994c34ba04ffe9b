// Whoever is killed, and whenever: the host is as it was before the action within its time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/text.hpp"
#include "node/host/actions/action.hpp"
#include "node/host/actions/execute.hpp"
#include "node/host/actions/keeper.hpp"
#include "node/host/actions/processes.hpp"
#include "support.hpp"

namespace leafcutter::node::host {
namespace {

using protocols::Outcome;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::Host;
using testing::in_own_network;
using testing::options_of_test;

constexpr auto undo_time = milliseconds(400);
constexpr auto undo_patience = seconds(20);  ///< of a machine with much else to do; what is waited for is named

std::vector<Request> every_request(const Host& host) {
  return {{"cpu", {{"workers", "1"}}, {}, undo_time},
          {"memory", {{"megabytes", "2"}}, {}, undo_time},
          {"disk", {{"megabytes", "1"}, {"folder", host / "room"}}, {}, undo_time},
          {"configure", {{"name", "app"}, {"variant", "low"}}, {}, undo_time},
          {"signal", {{"target", "sleeper"}, {"signal", "STOP"}}, {}, undo_time}};
}

/// The actor is killed at each step: its keeper undoes.
TEST(HostUndo, TheActorIsKilledAtEachStep) {
  const Host host;
  host.start_sleeper();
  const auto before = host.snapshot();
  for (const auto& request : every_request(host))
    for (int step = 0; step < step_count; ++step) {
      ASSERT_TRUE(host.run_and_die(request, static_cast<Step>(step))) << request.action << " step " << step;
      if (static_cast<Step>(step) == Step::prepared)
        // No keeper was there yet: the next start undoes, at the latest when its time is over.
        wait_for(undo_patience, [&]() -> base::Status {
          recover(host.state(), testing::program(), false);
          return host.state().list().intents.empty() ? base::ok() : base::Status(base::Error{});
        }).ok();
      EXPECT_EQ(host.wait_for_snapshot(before, undo_patience), "") << request.action << " step " << step;
    }
  EXPECT_EQ(host.audit_flaw(), "");
}

/// Both are: whatever is started next undoes it.
TEST(HostUndo, TheActorAndItsKeeperAreKilledAtEachStep) {
  const Host host;
  host.start_sleeper();
  const auto before = host.snapshot();
  for (const auto& request : every_request(host))
    for (int step = 0; step < step_count; ++step) {
      ASSERT_TRUE(host.run_and_die(request, static_cast<Step>(step)));
      host.kill_keeper();
      const auto done = recover(host.state(), testing::program(), true);
      EXPECT_TRUE(done.left.empty());
      EXPECT_EQ(host.wait_for_snapshot(before, undo_patience), "") << request.action << " step " << step;
    }
}

/// The keeper alone is: its actor starts another, and undoes.
TEST(HostUndo, TheKeeperIsKilledAtEachStep) {
  const Host host;
  const auto before = host.snapshot();
  for (const auto step : {Step::kept, Step::applied, Step::checked, Step::undone, Step::gone}) {
    auto options = options_of_test();
    options.at = [&](Step reached) {
      if (reached == step) host.kill_keeper();
    };
    const auto result = host.run({"configure", {{"name", "app"}, {"variant", "low"}}, {}, undo_time}, options);
    EXPECT_EQ(result.outcome, Outcome::success) << static_cast<int>(step) << ": " << result.detail;
    EXPECT_EQ(host.snapshot(), before);
  }
}

/// A node that stands still, holding everything, keeps nothing in force.
TEST(HostUndo, TheActorStandsStillBeyondItsTime) {
  const Host host;
  const pid_t child = ::fork();
  if (child == 0) {
    auto options = options_of_test();
    options.at = [](Step reached) {
      if (reached == Step::checked) ::raise(SIGSTOP);
    };
    host.run({"configure", {{"name", "app"}, {"variant", "low"}}, {}, undo_time}, options);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  const auto undone = wait_for(undo_patience, [&]() -> base::Status {
    const auto now = base::read_file(host / "app.conf");
    if (now && *now == "as it was") return base::ok();
    return base::Error{base::ErrorCode::timeout, "app.conf still is the variant", {}};
  });
  EXPECT_TRUE(undone.ok());
  EXPECT_EQ(host.state().list().intents.size(), 1U) << "it may still do something: its intent stays";
  ::kill(child, SIGCONT);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(host.wait_for_snapshot(host.snapshot(), milliseconds(1)), "");
  EXPECT_EQ(*base::read_file(host / "app.conf"), "as it was");
  const auto gone = wait_for(undo_patience, [&]() -> base::Status {
    if (host.state().list().intents.empty()) return base::ok();
    return base::Error{base::ErrorCode::timeout, "the intent is still there", {}};
  });
  EXPECT_TRUE(gone.ok());
}

/// After a reboot no time of the earlier boot counts: what was left is undone at once.
TEST(HostUndo, WhatAnEarlierBootLeftIsUndone) {
  const Host host;
  const auto before = host.snapshot();
  ASSERT_TRUE(host.run_and_die({"configure", {{"name", "app"}, {"variant", "low"}}, {}, seconds(50)}, Step::checked));
  host.kill_keeper();
  auto intent = host.state().list().intents.at(0);
  intent.boot = "an earlier one";
  ASSERT_TRUE(write_durably(host.state().intent_path(intent.id), to_json(intent).dump()));
  ASSERT_EQ(*base::read_file(host / "app.conf"), "low");
  const auto actions = HostActions::open(host.state_folder(), host.profile(), options_of_test());
  ASSERT_TRUE(actions.ok());
  EXPECT_EQ(host.snapshot(), before);
}

/// A start in the middle of somebody else's action neither undoes nor disturbs it.
TEST(HostUndo, WhatIsInForceIsLeftInForce) {
  const Host host;
  ASSERT_TRUE(host.run_and_die({"configure", {{"name", "app"}, {"variant", "low"}}, {}, seconds(50)}, Step::checked));
  const auto actions = HostActions::open(host.state_folder(), host.profile(), options_of_test());
  ASSERT_TRUE(actions.ok());
  EXPECT_EQ(*base::read_file(host / "app.conf"), "low");
  EXPECT_TRUE(host.keeper_runs());
  EXPECT_EQ(actions->situation().running.size(), 1U);
}

TEST(HostUndo, ATerminatedKeeperUndoesEverythingFirst) {
  const Host host;
  ASSERT_TRUE(host.run_and_die({"configure", {{"name", "app"}, {"variant", "low"}}, {}, seconds(50)}, Step::checked));
  const auto keeper = keeper_of(host.state());
  ASSERT_EQ(::syscall(SYS_pidfd_send_signal, keeper.get(), SIGTERM, nullptr, 0U), 0);
  const auto undone = wait_for(undo_patience, [&]() -> base::Status {
    if (!host.keeper_runs()) return base::ok();
    return base::Error{base::ErrorCode::timeout, "the keeper does not end", {}};
  });
  EXPECT_TRUE(undone.ok());
  EXPECT_EQ(*base::read_file(host / "app.conf"), "as it was");
}

/// What was kept is not what it should be: the variant is not taken for undone, and nothing wrong is put in its place.
TEST(HostUndo, ADamagedCopyIsNotPutBack) {
  const Host host;
  ASSERT_TRUE(host.run_and_die({"configure", {{"name", "app"}, {"variant", "low"}}, {}, seconds(50)}, Step::checked));
  host.kill_keeper();
  const auto id = host.state().list().intents.at(0).id;
  const auto kept = host.state().path("kept/" + id + ".before");
  ASSERT_TRUE(base::write_file_atomically(kept, "damaged"));
  const auto done = recover(host.state(), testing::program(), true);
  ASSERT_EQ(done.left.size(), 1U);
  EXPECT_THAT(done.left[0], HasSubstr("is damaged"));
  EXPECT_EQ(*base::read_file(host / "app.conf"), "low");
  ASSERT_TRUE(base::write_file_atomically(kept, "as it was"));
  EXPECT_EQ(recover(host.state(), testing::program(), true).undone.size(), 1U);
  EXPECT_EQ(*base::read_file(host / "app.conf"), "as it was");
}

// --- services ---

std::string service_profile(const Host& host, const std::string& recovery) {
  return "services:\n  shop: { restart: restart, recover: recover, healthy: healthy, within: 1s }\ncommands:\n"
         "  restart: { program: /usr/bin/touch, arguments: [" +
         host / "restarted" +
         "] }\n"
         "  recover: { program: " +
         recovery + ", arguments: [" + host / "well" +
         "] }\n"
         "  healthy: { program: /usr/bin/test, arguments: [-e, " +
         host / "well" + "] }\n";
}

TEST(HostService, RestartWaitsForARecoveryThatWorked) {
  const Host place;
  const Host host(service_profile(place, "/usr/bin/touch"));
  const Request restart{"restart", {{"service", "shop"}}, {}, {}};
  EXPECT_EQ(host.run(restart).outcome, Outcome::denied);
  EXPECT_NE(::access((place / "restarted").c_str(), F_OK), 0) << "nothing ran";
  const auto recovered = host.run({"recover", {{"service", "shop"}}, {}, {}});
  EXPECT_EQ(recovered.outcome, Outcome::success) << recovered.detail;
  const auto restarted = host.run(restart);
  EXPECT_EQ(restarted.outcome, Outcome::success) << restarted.detail;
  EXPECT_EQ(::access((place / "restarted").c_str(), F_OK), 0);
  auto other = options_of_test();
  other.session = "another";
  EXPECT_EQ(host.run(restart, other).outcome, Outcome::denied) << "it worked in another session";
  ::unlink((place / "restarted").c_str());
  ::unlink((place / "well").c_str());
}

/// bug 4 of the predecessor: it could end a service and not bring it back.
TEST(HostService, ABrokenRecoveryKeepsRestartDenied) {
  const Host place;
  const Host host(service_profile(place, "/bin/false"));
  ASSERT_TRUE(base::write_file_atomically(place / "well", ""));
  EXPECT_EQ(host.run({"recover", {{"service", "shop"}}, {}, {}}).outcome, Outcome::failure);
  const auto refused = host.run({"restart", {{"service", "shop"}}, {}, {}});
  EXPECT_EQ(refused.outcome, Outcome::denied);
  EXPECT_THAT(refused.detail, HasSubstr("recovery has not worked"));
  ::unlink((place / "well").c_str());
}

// --- network ---

std::string shaped_and_back(const Request& request) {
  const Host host;
  const auto before = root_queue("lo");
  if (!before) return before.error().message;
  std::string during;
  auto options = options_of_test();
  options.at = [&](Step step) {
    if (step == Step::checked) during = root_queue("lo")->kind;
  };
  const auto result = host.run(request, options);
  const auto after = root_queue("lo");
  return std::string(protocols::outcome_name(result.outcome)) + " " + result.detail + "|" + during + "|" +
         (after->kind == before->kind && after->handle == "0:" ? "back" : after->kind);
}

const Request rate_request{"network", {{"interface", "lo"}, {"rate", "100000"}}, {}, undo_time};

class HostNetwork : public ::testing::Test {
#ifdef __SANITIZE_THREAD__
 protected:
  void SetUp() override { GTEST_SKIP() << "a process with ThreadSanitizer's own thread gets no user namespace"; }
#endif
};

TEST_F(HostNetwork, AnInterfaceIsShapedAndIsAsBefore) {
  EXPECT_EQ(in_own_network([] { return shaped_and_back(rate_request); }), "success |htb|back");
}

TEST_F(HostNetwork, WhatTheKernelDoesNotHaveIsDeniedAndSaysSo) {
  const auto said = in_own_network([] {
    const auto able = can_shape(true, false, true);
    const auto result = shaped_and_back({"network", {{"interface", "lo"}, {"delay", "10ms"}}, {}, undo_time});
    return (able ? "able " : "unable ") + result;
  });
  EXPECT_THAT(said,
              ::testing::AnyOf(::testing::StartsWith("able success |htb|back"),
                               ::testing::AllOf(::testing::StartsWith("unable denied "),
                                                HasSubstr("CONFIG_NET_SCH_NETEM"), ::testing::EndsWith("||back"))));
}

TEST_F(HostNetwork, TheActorIsKilledAtEachStep) {
  const auto said = in_own_network([]() -> std::string {
    const Host host;
    for (int step = 0; step < step_count; ++step) {
      if (!host.run_and_die(rate_request, static_cast<Step>(step)))
        return "it did not get to step " + std::to_string(step);
      const auto back = wait_for(undo_patience, [&]() -> base::Status {
        if (static_cast<Step>(step) == Step::prepared) recover(host.state(), testing::program(), false);
        const auto root = root_queue("lo");
        if (root && root->handle == "0:" && host.state().list().intents.empty()) return base::ok();
        return base::Error{
            base::ErrorCode::timeout, "step " + std::to_string(step) + ": " + (root ? root->kind : "?"), {}};
      });
      if (!back) return back.error().message;
    }
    return "";
  });
  EXPECT_EQ(said, "");
}

/// The predecessor's: a second fault's teardown removed the first, and whatever was there before.
TEST_F(HostNetwork, SomebodyElsesQueueIsLeftAlone) {
  const auto said = in_own_network([]() -> std::string {
    const Host host;
    const auto set = ::system("tc qdisc add dev lo root handle 7: pfifo limit 9");
    if (set != 0) return "tc";
    const auto result = host.run(rate_request);
    const auto root = root_queue("lo");
    return std::string(protocols::outcome_name(result.outcome)) + " " + root->kind + " " + root->handle + " " +
           result.detail;
  });
  EXPECT_THAT(said, HasSubstr("denied pfifo 7: the root queue of lo is pfifo 7:, which somebody else has set"));
}

TEST_F(HostNetwork, ManagementTrafficIsLetOut) {
  const auto said = in_own_network([]() -> std::string {
    const Host host;
    auto options = options_of_test();
    std::string seen;
    options.at = [&](Step step) {
      if (step != Step::checked) return;
      const auto shown = execute({{"/usr/sbin/tc", "filter", "show", "dev", "lo"}, "", {}, "/", seconds(10)});
      seen = shown.output;
    };
    const auto result = host.run(rate_request, options);
    return result.outcome == Outcome::success ? seen : result.detail;
  });
  // u32 shows the port's mask and value: 22 is 0x16, as destination and as source.
  EXPECT_THAT(said, HasSubstr("match 00000016/0000ffff"));
  EXPECT_THAT(said, HasSubstr("match 00160000/ffff0000"));
}

}  // namespace
}  // namespace leafcutter::node::host
