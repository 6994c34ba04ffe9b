// Process faults at the steps of a workload: pauses, restart storms, and what becomes of them when something ends
// early.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/text.hpp"
#include "harness.hpp"
#include "scenarios/rule.hpp"

namespace leafcutter::node::testing {
namespace {

using std::chrono::milliseconds;

scenarios::Fault shop_fault(const std::string& kind, const std::string& step, Value params = Value::object()) {
  return {kind, {"shop", "step", step}, 1, std::move(params), {}};
}

std::string process_marker() {
  static int next = 0;
  return "process-fault-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
}

/// A service of three processes that carry `marker` among their arguments.
std::string three_processes(const std::string& marker, const std::string& more = "") {
  return R"(
leafcutter: 1
name: three
services:
  shop:
    run:
      - /bin/sh
      - -c
      - >-
        sh -c 'while :; do sleep 1000; done' )" +
         marker + R"( & sh -c 'sleep 1000; exit 0' )" + marker +
         R"( & exec ${scenario}/bin/web --port 8080 --data ${data} --marker )" + marker + R"(
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
)" + more;
}

char state_of(pid_t pid) {
  const auto text = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto end = text ? text->rfind(')') : std::string::npos;
  return end == std::string::npos || end + 2 >= text->size() ? 'X' : (*text)[end + 2];
}

unsigned stopped_among(const std::vector<pid_t>& pids) {
  return static_cast<unsigned>(std::count_if(pids.begin(), pids.end(), [](pid_t pid) { return state_of(pid) == 'T'; }));
}

std::string how_undone(const Ran& ran) {
  const auto undone = ran.of("fault.undone");
  return undone.empty() ? "" : undone[0].attrs["how"].get<std::string>();
}

TEST(Pause, StopsEveryProcessWhileTheStepGoesOnAndLetsThemGoOn) {
  const auto marker = process_marker();
  Nest nest;
  nest.give(three_processes(marker) + R"(
workload:
  - { post: shop/lines, json: { id: a } }
  - { run: [/bin/true] }
  - { get: shop/lines, within: 20s }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("pause", "run /bin/true", {{"for", "1500ms"}}));
  const auto execution = nest.start(nest.job(plan));
  ASSERT_TRUE(nest.wait_for(execution, "fault.fired"));
  EXPECT_TRUE(eventually([&] { return stopped_among(processes_with(marker)) >= 3; }, milliseconds(1200)));
  const auto ran = nest.wait(execution);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  const auto fired = ran.of("fault.fired", "shop"), undone = ran.of("fault.undone", "shop"), steps = ran.of("step");
  ASSERT_EQ(fired.size(), 1u);
  ASSERT_EQ(undone.size(), 1u);
  ASSERT_EQ(steps.size(), 3u);
  // sh, its sleep, sh and its sleep, web: the first of the namespace is ours, and not counted.
  EXPECT_EQ(fired[0].attrs["evidence"]["processes"], 5);
  EXPECT_EQ(fired[0].attrs["evidence"]["before_step"], "run /bin/true");
  EXPECT_GT(fired[0].attrs["evidence"]["pid"], 1);
  EXPECT_EQ(undone[0].attrs["how"], "processes that run again: 5");
  EXPECT_GE(undone[0].at - fired[0].at, milliseconds(1400));
  EXPECT_LT(steps[1].at, undone[0].at);  // the step went on at once
  EXPECT_GT(steps[2].at, undone[0].at);  // what asked the service had to wait
  EXPECT_EQ(steps[2].attrs["json"]["count"], 1);
  EXPECT_EQ(ran.of("start").size(), 1u);
  EXPECT_TRUE(ran.of("exit").empty());
}

TEST(Pause, IsNotTakenForQuiescence) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { run: [/bin/true] }
  - { settle: { quiet: 50ms, within: 10s } }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("pause", "run /bin/true", {{"for", "700ms"}}));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("settled").size(), 1u);
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
  EXPECT_EQ(ran.of("settled")[0].attrs["ok"], true);
  EXPECT_GT(ran.of("settled")[0].at, ran.of("fault.undone")[0].at);
}

TEST(Pause, IsNamedWhenNothingSettlesBecauseOfIt) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { run: [/bin/true] }
  - { settle: { quiet: 20ms, within: 200ms } }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("pause", "run /bin/true", {{"for", "20s"}}));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("settled").size(), 1u);
  EXPECT_EQ(ran.of("settled")[0].attrs["ok"], false);
  EXPECT_EQ(ran.of("settled")[0].attrs["busy"], Value::array({"pause of shop"}));
}

TEST(Pause, OfAServiceThatIsDownDoesNotFire) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { get: shop/exit, within: 1s }
  - { run: [/bin/true] }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("pause", "run /bin/true", {{"for", "100ms"}}));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("exit").size(), 1u);
  EXPECT_TRUE(ran.of("fault.fired").empty());
  EXPECT_TRUE(ran.of("fault.undone").empty());
}

TEST(Pause, EndsWithTheServiceThatIsKilledMeanwhile) {
  Nest nest;
  nest.give(std::string(one_service) + R"(    restart: { on: crash, at-most: 3 }
workload:
  - { run: [/bin/true] }
  - { get: shop/health, within: 5s }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("pause", "run /bin/true", {{"for", "1h"}}));
  plan.faults.push_back(shop_fault("crash", "get shop/health"));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_EQ(how_undone(ran), "the service ended while it stood still");
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[1].attrs["status"], 200);
  EXPECT_EQ(ran.of("ready").size(), 2u);
}

TEST(Pause, TwoAtOnceLastUntilTheLaterOneIsOver) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { run: [/bin/true] }
  - { run: [/bin/echo] }
  - { get: shop/health, within: 20s }
)");
  scenarios::Plan plan;
  // The second strikes after the two seconds that it waits for quiet in vain, and is over first.
  plan.faults.push_back(shop_fault("pause", "run /bin/true", {{"for", "5s"}}));
  plan.faults.push_back(shop_fault("pause", "run /bin/echo", {{"for", "500ms"}}));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  const auto fired = ran.of("fault.fired"), undone = ran.of("fault.undone");
  ASSERT_EQ(fired.size(), 2u);
  ASSERT_EQ(undone.size(), 2u);
  EXPECT_EQ(undone[0].attrs["fault"], 1);
  EXPECT_EQ(undone[0].attrs["how"], "its time is over; another pause still holds the service");
  EXPECT_EQ(undone[1].attrs["how"], "processes that run again: 1");
  EXPECT_GT(ran.of("step")[2].at, undone[1].at);
}

TEST(Pause, AProcessThatHadStoppedByItselfStaysSo) {
  const auto marker = process_marker();
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: own
services:
  shop:
    run: [/bin/sh, -c, "sh -c 'kill -STOP $$; sleep 1000' )" +
            marker + R"( & exec ${scenario}/bin/web --port 8080 --data ${data}"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
workload:
  - { run: [/bin/true] }
  - { get: shop/health, within: 10s }
  - { run: [/bin/sh, -c, "sleep 2"] }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("pause", "run /bin/true", {{"for", "300ms"}}));
  const auto execution = nest.start(nest.job(plan));
  ASSERT_TRUE(nest.wait_for(execution, "fault.undone"));
  const auto left = processes_with("kill -STOP $$; sleep 1000");
  EXPECT_TRUE(std::any_of(left.begin(), left.end(), [](pid_t pid) { return state_of(pid) == 'T'; }));
  const auto ran = nest.wait(execution);
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["processes"], 1);
  EXPECT_EQ(how_undone(ran), "processes that run again: 1");
}

TEST(Pause, NothingOutlivesTheNurseryWhileAServiceStandsStill) {
  const auto marker = process_marker();
  Nest nest;
  nest.give(three_processes(marker) + R"(
workload:
  - { run: [/bin/sh, -c, "sleep 100"], within: 90s }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("pause", "run /bin/sh", {{"for", "1h"}}));
  const auto execution = nest.start(nest.job(plan));
  ASSERT_TRUE(nest.wait_for(execution, "fault.fired")) << nest.wait(execution, std::chrono::seconds(0)).text();
  ASSERT_GE(stopped_among(processes_with(marker)), 3u);
  const auto nursery = own_nursery();
  ASSERT_GT(nursery, 0);
  ASSERT_EQ(::kill(nursery, SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return processes_with(marker).empty(); }, std::chrono::seconds(2)));
}

TEST(RestartStorm, KillsEachTimeItIsReady) {
  Nest nest;
  nest.give(std::string(one_service) + R"(    restart: { on: crash, at-most: 5 }
workload:
  - { post: shop/lines, json: { id: a } }
  - { get: shop/lines }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("restart-storm", "get shop/lines", {{"times", 3}}));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired", "shop").size(), 1u);
  const auto evidence = ran.of("fault.fired")[0].attrs["evidence"];
  EXPECT_EQ(evidence["times"], 3);
  EXPECT_EQ(evidence["pids"].size(), 3u);
  EXPECT_FALSE(evidence.contains("ended_early"));
  EXPECT_EQ(ran.of("ready").size(), 4u);
  const auto exits = ran.of("exit");
  ASSERT_EQ(exits.size(), 3u);
  for (const auto& exit : exits) EXPECT_EQ(exit.attrs["injected"], true);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GT(exits[i].at, ran.of("ready")[i].at);
  EXPECT_EQ(how_undone(ran), "restarted and ready again");
  EXPECT_GT(ran.of("fault.undone")[0].at, ran.of("ready")[3].at);
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[1].attrs["json"]["count"], 1);
}

TEST(RestartStorm, EndsWhereTheRestartPolicyDoes) {
  Nest nest;
  nest.give(std::string(one_service) + R"(    restart: { on: crash, at-most: 1 }
workload:
  - { get: shop/lines, within: 1s }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("restart-storm", "get shop/lines", {{"times", 9}}));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["times"], 2);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["ended_early"], "its restart policy leaves it down");
  EXPECT_EQ(ran.of("exit").size(), 2u);
  EXPECT_NE(how_undone(ran), "restarted and ready again");
  EXPECT_EQ(ran.of("step")[0].attrs["outcome"], "no-reply");
}

TEST(RestartStorm, EndsWhenTheServiceDoesNotComeUpAgain) {
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: once
services:
  shop:
    run: [/bin/sh, -c, "test ! -e lock || exit 4; touch lock; exec ${scenario}/bin/web --port 8080 --data ${data}"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
    restart: { on: crash, at-most: 2 }
workload:
  - { get: shop/lines, within: 1s }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("restart-storm", "get shop/lines", {{"times", 4}}));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["times"], 1);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["ended_early"], "it did not become ready again");
  EXPECT_NE(how_undone(ran), "restarted and ready again");
}

TEST(RestartStorm, OfAServiceThatIsDownDoesNotFire) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { get: shop/exit, within: 1s }
  - { run: [/bin/true] }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("restart-storm", "run /bin/true", {{"times", 2}}));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

TEST(Pause, StopsAServiceThatForksAllTheTime) {
  const auto marker = process_marker();
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: forks
services:
  shop:
    run: [bin/web, --port, "8080", --data, "${data}", --chain, "1000", --marker, )" +
            marker + R"(]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
workload:
  - { run: [/bin/sleep, "3"] }  # so many processes that looking at all of them takes longer than making a new one
  - { run: [/bin/true] }
)");
  scenarios::Plan plan;
  plan.faults.push_back(shop_fault("pause", "run /bin/true", {{"for", "1500ms"}}));
  const auto execution = nest.start(nest.job(plan));
  ASSERT_TRUE(nest.wait_for(execution, "fault.fired"));
  // Nothing runs, and nothing new appears, from the moment that is said to be so.
  const auto stopped = processes_with(marker);
  EXPECT_GE(stopped.size(), 4u);
  EXPECT_LT(stopped.size(), 4000u) << "the chain had come to its end";
  for (const auto pid : stopped) EXPECT_NE(std::string("TtDZX").find(state_of(pid)), std::string::npos) << pid;
  ::poll(nullptr, 0, 100);  // thirty forks, if only one process had escaped
  EXPECT_EQ(processes_with(marker), stopped);
  const auto ran = nest.wait(execution);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.of("fault.undone").size(), 1u);
}

TEST(Pause, AtASystemCallIsHeldOnceHoweverManyFaultsWantIt) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { post: shop/lines, json: { id: a }, within: 10s }
  - { get: shop/lines, within: 10s }
)");
  scenarios::Plan plan;
  plan.faults.push_back({"pause-at", {"shop", "write", "data:lines"}, 1, {{"for", "300ms"}}, {}});
  plan.faults.push_back({"pause-at", {"shop", "write", "data:lines"}, 1, {{"for", "200ms"}}, {}});
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired").size(), 2u);
  EXPECT_EQ(ran.of("fault.undone").size(), 2u);
  EXPECT_GE(ran.of("fault.fired")[0].attrs["evidence"].value("processes", 0), 1);
  ASSERT_EQ(ran.of("step").size(), 2u);
  ASSERT_EQ(ran.of("step")[1].attrs.value("outcome", ""), "replied");  // it went on
  EXPECT_EQ(ran.of("step")[1].attrs["json"]["count"], 1);
  EXPECT_GE(ran.of("step")[0].at - ran.of("fault.fired")[0].at, milliseconds(490));
}

/// Strikes once an event was seen that matches `after`.
scenarios::Fault event_fault(const std::string& kind, const std::string& after, Value params = Value::object()) {
  auto fault = shop_fault(kind, "", std::move(params));
  fault.aim.emplace();
  fault.aim->after = after;
  return fault;
}

TEST(EventFaults, ACrashStrikesOnceWhenItsEventWasSeen) {
  Nest nest;
  nest.give(std::string(one_service) + R"(    restart: { on: crash, at-most: 3 }
workload:
  - { post: shop/lines, json: { id: a } }
  - { settle: { quiet: 100ms, within: 10s } }
  - { post: shop/lines, json: { id: b } }
  - { get: shop/lines, within: 10s }
)");
  scenarios::Plan plan;
  plan.faults.push_back(event_fault("crash", "reply from=shop status=201"));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired", "shop").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"].value("after", ""), "reply from=shop status=201");
  EXPECT_FALSE(ran.of("fault.fired")[0].attrs["evidence"].contains("before_step"));
  ASSERT_FALSE(ran.of("reply").empty());
  EXPECT_GT(ran.of("fault.fired")[0].at, ran.of("reply")[0].at);
  EXPECT_EQ(ran.of("exit").size(), 1u);  // the second reply changes nothing
  EXPECT_EQ(how_undone(ran), "restarted and ready again");
}

TEST(EventFaults, APauseStrikesWhenItsEventWasSeen) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { post: shop/lines, json: { id: a } }
  - { settle: { quiet: 50ms, within: 10s } }
  - { get: shop/lines, within: 10s }
)");
  scenarios::Plan plan;
  plan.faults.push_back(event_fault("pause", "step label=\"post shop/lines\"", {{"for", "400ms"}}));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(how_undone(ran), "processes that run again: 1");
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[1].attrs["json"]["count"], 1);
}

scenarios::Fault by_rule(const std::string& text) {
  scenarios::RuleScope scope;
  scope.lane = "shop";
  scope.services = {"shop"};
  scenarios::Mistake mistake;
  const auto fault = scenarios::read_rule(text, scope, mistake);
  EXPECT_TRUE(fault) << mistake.message;
  return fault.value_or(scenarios::Fault{});
}

/// Where in the recorded order the first event of this kind of the shop stands.
std::size_t place_of(const Ran& ran, const std::string& kind) {
  const auto is_it = [&](const auto& event) { return event.kind == kind && event.lane == "shop"; };
  return static_cast<std::size_t>(std::ranges::find_if(ran.events, is_it) - ran.events.begin());
}

TEST(EventFaults, AreWrittenAsRulesAndStandBeforeTheExitThatTheyCause) {
  Nest nest;
  nest.give(std::string(one_service) + R"(    restart: { on: crash, at-most: 3 }
workload:
  - { post: shop/lines, json: { id: a } }
  - { settle: { quiet: 100ms, within: 10s } }
  - { get: shop/lines, within: 10s }
)");
  for (const auto* rule :
       {"crash after=\"reply from=shop status=201\"", "power-loss after=\"reply from=shop status=201\"",
        "restart-storm:2 after=\"reply from=shop status=201\""}) {
    scenarios::Plan plan;
    plan.faults.push_back(by_rule(rule));
    const auto ran = nest.run(plan);
    SCOPED_TRACE(rule + ("\n" + ran.text()));
    EXPECT_EQ(ran.end()["cause"], "completed");
    ASSERT_EQ(ran.of("fault.fired", "shop").size(), 1u);
    if (plan.faults[0].kind == "restart-storm") continue;  // it is proved by the last of several exits
    EXPECT_LT(place_of(ran, "fault.fired"), place_of(ran, "exit"));
    EXPECT_EQ(ran.of("exit").size(), 1u);
  }
}

TEST(EventFaults, WithoutItsEventNothingStrikes) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { get: shop/lines }
)");
  scenarios::Plan plan;
  plan.faults.push_back(event_fault("crash", "reply from=shop status=201"));
  plan.faults.push_back(event_fault("pause", "exit service=shop", {{"for", "1s"}}));
  plan.faults.push_back(by_rule("power-loss after=\"reply from=shop status=500\""));
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

}  // namespace
}  // namespace leafcutter::node::testing
