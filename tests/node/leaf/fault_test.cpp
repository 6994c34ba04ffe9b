// Faults that the leaf itself carries out or has to survive: crashes, restarts, services that stay down.
#include <gtest/gtest.h>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

scenarios::Plan one_fault(const std::string& kind, scenarios::Site site, std::uint32_t occurrence = 1,
                          Value params = Value::object()) {
  scenarios::Plan plan;
  plan.faults.push_back({kind, std::move(site), occurrence, std::move(params)});
  return plan;
}

std::string shop_with(const std::string& more) {
  return std::string(one_service) + more + R"(
workload:
  - { post: shop/lines, json: { id: a } }
  - { get: shop/lines }
)";
}

const scenarios::Site before_get = {"shop", "step", "get shop/lines"};

TEST(Faults, ACrashBeforeAStepIsFollowedByARestart) {
  Nest nest;
  nest.give(shop_with("    restart: { on: crash, at-most: 3 }\n"));
  const auto ran = nest.run(one_fault("crash", before_get));
  SCOPED_TRACE(ran.text());
  EXPECT_TRUE(ran.exit.clean);
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.armed").size(), 1u);
  auto fired = ran.of("fault.fired", "shop");
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].attrs["evidence"]["signal"], 9);
  EXPECT_EQ(fired[0].attrs["evidence"]["before_step"], "get shop/lines");
  EXPECT_GT(fired[0].attrs["evidence"]["pid"], 1);
  auto exits = ran.of("exit", "shop");
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].attrs["injected"], true);
  EXPECT_EQ(exits[0].attrs["signal"], 9);
  EXPECT_EQ(exits[0].attrs["attempt"], 1);
  ASSERT_EQ(ran.of("ready", "shop").size(), 2u);
  EXPECT_EQ(ran.of("ready", "shop")[1].attrs["attempt"], 2);
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
  EXPECT_EQ(ran.of("fault.undone")[0].attrs["how"], "restarted and ready again");
  // The step waited for the service, and what was stored is still there.
  auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_GT(steps[1].at, ran.of("ready", "shop")[1].at);
  EXPECT_EQ(steps[1].attrs["json"]["count"], 1);
}

TEST(Faults, ASecondOccurrenceIsNotTheFirst) {
  Nest nest;
  nest.give(std::string(one_service) + R"(    restart: { on: crash, at-most: 3 }
workload:
  - repeat: 3
    do:
      - { post: shop/lines, json: { id: a } }
)");
  const auto ran = nest.run(one_fault("crash", {"shop", "step", "post shop/lines"}, 2));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 3u);
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_GT(ran.of("fault.fired")[0].at, ran.of("step")[0].at);
  EXPECT_LT(ran.of("fault.fired")[0].at, ran.of("step")[1].at);
}

TEST(Faults, WithoutARestartTheServiceStaysDownAndTheRunGoesOn) {
  Nest nest;
  nest.give(shop_with("") + R"(
properties:
  - name: still there
    check: { get: shop/lines, json: { count: 1 } }
)");
  const auto ran = nest.run(one_fault("crash", before_get));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].attrs["outcome"], "no-reply");
  EXPECT_EQ(steps[1].attrs["expected"], true);  // under a fault nobody promised a reply
  EXPECT_EQ(ran.of("start").size(), 1u);
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
  EXPECT_NE(ran.of("fault.undone")[0].attrs["how"], "restarted and ready again");
  ASSERT_EQ(ran.of("check").size(), 1u);
  EXPECT_EQ(ran.of("check")[0].attrs["ok"], false);
  EXPECT_FALSE(ran.of("check")[0].attrs.contains("status"));
}

TEST(Faults, AReplyThatIsRequiredIsMissedAlsoUnderFaults) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { get: shop/lines, expect: { reply: required } }
)");
  const auto ran = nest.run(one_fault("crash", before_get));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 1u);
  EXPECT_EQ(ran.of("step")[0].attrs["outcome"], "no-reply");
  EXPECT_EQ(ran.of("step")[0].attrs["expected"], false);
}

TEST(Faults, RestartsAreBounded) {
  Nest nest;
  nest.give(std::string(one_service) + R"(    restart: { on: crash, at-most: 2 }
workload:
  - repeat: 4
    do:
      - { get: shop/exit, within: 1s }
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_EQ(ran.of("start").size(), 3u);
  auto exits = ran.of("exit");
  ASSERT_EQ(exits.size(), 3u);
  for (const auto& exit : exits) {
    EXPECT_EQ(exit.attrs["status"], 9);
    EXPECT_EQ(exit.attrs["injected"], false);
  }
  // Without any planned fault every missing reply is a broken promise.
  ASSERT_EQ(ran.of("step").size(), 4u);
  for (const auto& step : ran.of("step")) EXPECT_EQ(step.attrs["expected"], false);
}

TEST(Faults, ACrashAtASystemCallKillsAndRestartsTheService) {
  Nest nest;
  nest.give(shop_with("    restart: { on: crash, at-most: 3 }\n"));
  const auto ran = nest.run(one_fault("crash-after", {"shop", "write", "data:lines"}));
  SCOPED_TRACE(ran.text());
  EXPECT_TRUE(ran.exit.clean);
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired", "shop").size(), 1u);
  ASSERT_EQ(ran.of("exit", "shop").size(), 1u);
  EXPECT_EQ(ran.of("exit", "shop")[0].attrs["injected"], true);
  EXPECT_EQ(ran.of("ready", "shop").size(), 2u);
  auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].attrs["outcome"], "no-reply");
  EXPECT_EQ(steps[1].attrs["json"]["count"], 1);  // the write had happened
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
  EXPECT_EQ(ran.of("fault.undone")[0].attrs["how"], "restarted and ready again");
}

TEST(Faults, AFailingSystemCallIsSeenByTheServiceAlone) {
  Nest nest;
  nest.give(shop_with(""));
  const auto ran = nest.run(one_fault("errno", {"shop", "write", "data:lines"}, 1, {{"error", "ENOSPC"}}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_EQ(ran.of("fault.fired", "shop").size(), 1u);
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[1].attrs["json"]["count"], 0);
}

TEST(Faults, AServiceThatAFaultKeepsFromBeingReadyStaysDown) {
  Nest nest;
  nest.give(R"(
leafcutter: 1
name: start
services:
  shop:
    run: [/bin/sh, -c, "echo x > ${data}/lock || exit 4; exec ${scenario}/bin/web --port 8080 --data ${data}"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health, within: 2s }
workload:
  - { get: shop/health }
)");
  const auto ran = nest.run(one_fault("errno", {"shop", "open", "data:lock"}, 1, {{"error", "EIO"}}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_TRUE(ran.of("ready").empty());
  ASSERT_EQ(ran.of("exit").size(), 1u);
  EXPECT_NE(ran.of("exit")[0].attrs["status"], 0);
  ASSERT_EQ(ran.of("step").size(), 1u);
  EXPECT_EQ(ran.of("step")[0].attrs["outcome"], "no-reply");
}

TEST(Faults, ObservationCountsSitesWithoutAnyFault) {
  Nest nest;
  nest.give(shop_with("") + R"(
explore:
  faults:
    - on: shop
      syscalls: { families: [write], errors: [EIO] }
)");
  const auto ran = nest.run();
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("sites").size(), 1u);
  bool found = false;
  const auto sites = ran.of("sites")[0].attrs["sites"];
  for (const auto& site : sites) found = found || site == Value::array({"shop", "write", "data:lines", 1});
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace leafcutter::node::testing
