// Partitions between services of a real leaf: what is open stalls, what is new hangs, and both go on when it heals.
#include <gtest/gtest.h>

#include "harness.hpp"
#include "services.hpp"

namespace leafcutter::node::testing {
namespace {

constexpr const char* echo_beside_them = R"(
  echo:
    run: [python3, "${scenario}/bin/echo.py"]
    ports: { main: 7000 }
    ready: { tcp: main }
links: [ workload -> shop, shop -> broker, workload -> echo ]
workload:
)";

/// Says how long the longest of 60 exchanges on one connection took, and whether all came back in order.
constexpr const char* talk_program = R"(
import json, select, socket, time
c = socket.create_connection(("echo", 7000))
longest = 0; right = True
for i in range(60):
  began = time.monotonic()
  c.sendall(bytes([i]))
  right = c.recv(1) == bytes([i]) and right
  longest = max(longest, time.monotonic() - began)
  select.select([], [], [], 0.005)  # the pace
print(json.dumps({"longest_ms": int(longest * 1000), "right": right}))
)";

scenarios::Fault parted(scenarios::Site site, const std::string& length, const std::string& first,
                        const std::string& second, Value more = Value::object()) {
  Value params = {{"for", length}, {"between", {first}}, {"and", {second}}};
  params.update(more);
  return {"partition", std::move(site), 1, std::move(params)};
}

Ran run_parted(Nest& nest, const std::string& workload, scenarios::Fault fault) {
  nest.write("bin/echo.py", echo_program);
  nest.write("bin/talk.py", talk_program);
  nest.give(shop_and_broker() + echo_beside_them + workload);
  scenarios::Plan plan;
  plan.faults.push_back(std::move(fault));
  return nest.run(plan);
}

constexpr const char* ask_twice = R"(
  - { get: shop/peer }
  - { get: shop/peer, name: again, within: 8s }
)";

constexpr const char* talk = "  - { name: talk, run: [python3, bin/talk.py], expect: { exit: 0 } }\n";

TEST(Partitions, NewConnectionsHangUntilItHeals) {
  Nest nest;
  const auto ran = run_parted(nest, ask_twice, parted({"workload", "step", "again"}, "300ms", "shop", "broker"));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[1].attrs["json"], (Value{{"count", 0}}));
  const auto fired = ran.of("fault.fired", "workload"), undone = ran.of("fault.undone", "workload");
  ASSERT_EQ(fired.size(), 1u);
  ASSERT_EQ(undone.size(), 1u);
  auto evidence = fired[0].attrs["evidence"];
  EXPECT_EQ(evidence["links"], (Value{"shop -> broker"}));
  EXPECT_EQ(evidence["before_step"], "again");
  EXPECT_EQ(evidence["first"]["met"], "an attempt to connect");
  EXPECT_NE(undone[0].attrs["how"].get<std::string>().find("healed, its time is over"), std::string::npos);
  EXPECT_GE(undone[0].at - fired[0].at, std::chrono::milliseconds(200));
  ASSERT_EQ(ran.of("connect", "shop -> broker").size(), 2u);
  EXPECT_GT(ran.of("connect", "shop -> broker")[1].at, undone[0].at);
}

TEST(Partitions, OpenConnectionsStallAndGoOn) {
  Nest nest;
  auto fault = parted({"workload", "event", ""}, "400ms", "workload", "echo");
  fault.aim = scenarios::Aim{};
  fault.aim->after = "connect to=echo";
  const auto ran = run_parted(nest, talk, fault);
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 1u);
  EXPECT_EQ(ran.of("step")[0].attrs["json"]["right"], true);
  EXPECT_GE(ran.of("step")[0].attrs["json"]["longest_ms"], 300);
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["first"]["met"], "bytes");
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
}

TEST(Partitions, BeginAtAConnection) {
  Nest nest;
  const auto ran = run_parted(nest, talk, parted({"workload -> echo", "connect", "tcp"}, "400ms", "echo", "workload"));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 1u);
  EXPECT_EQ(ran.of("step")[0].attrs["json"]["right"], true);
  EXPECT_GE(ran.of("step")[0].attrs["json"]["longest_ms"], 300);
  ASSERT_EQ(ran.of("fault.fired", "workload -> echo").size(), 1u);
}

TEST(Partitions, OneWayLetsTheOtherWayThrough) {
  Nest nest;
  struct OneWay {
    const char *first, *second, *flow, *held;
  };
  // Whichever way round the sets are named: what is held on the link from workload to echo.
  for (const auto& [first, second, flow, held] : {OneWay{"workload", "echo", "to-first", "to-caller"},
                                                  {"workload", "echo", "to-second", "to-service"},
                                                  {"echo", "workload", "to-second", "to-caller"},
                                                  {"echo", "workload", "to-first", "to-service"}}) {
    const auto ran = run_parted(nest, talk,
                                parted({"workload -> echo", "connect", "tcp"}, "20s", first, second,
                                       {{"flow", flow}, {"until", "fault.fired kind=partition"}}));
    SCOPED_TRACE(std::string(first) + " " + flow + "\n" + ran.text());
    ASSERT_EQ(ran.of("fault.fired").size(), 1u);
    const auto evidence = ran.of("fault.fired")[0].attrs["evidence"];
    EXPECT_EQ(evidence["first"]["met"], "bytes");
    EXPECT_EQ(evidence["first"]["direction"], held);
    ASSERT_EQ(ran.of("step").size(), 1u);
    EXPECT_EQ(ran.of("step")[0].attrs["json"]["right"], true);
    // Of the first exchange, the byte that goes the other way was not held; one piece was stopped.
    ASSERT_EQ(ran.of("fault.undone").size(), 1u);
    EXPECT_NE(ran.of("fault.undone")[0].attrs["how"].get<std::string>().find(" 1 pieces (1 bytes) were stopped"),
              std::string::npos);
    const auto closed = ran.of("close", "workload -> echo");
    ASSERT_EQ(closed.size(), 1u);
    EXPECT_EQ(closed[0].attrs["down_bytes"], 60);
  }
}

TEST(Partitions, ThatOverlapEndWithTheLast) {
  Nest nest;
  nest.write("bin/echo.py", echo_program);
  nest.write("bin/talk.py", talk_program);
  nest.give(shop_and_broker() + echo_beside_them + ask_twice);
  // The caller's kernel tries again after a second: the first partition is over by then, the second is not.
  scenarios::Plan plan;
  plan.faults = {parted({"workload", "step", "again"}, "300ms", "shop", "broker"),
                 parted({"workload -> shop", "connect", "tcp"}, "1500ms", "broker", "shop")};
  plan.faults[1].occurrence = 2;
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[1].attrs["json"], (Value{{"count", 0}}));
  const auto undone = ran.of("fault.undone");
  ASSERT_EQ(undone.size(), 2u);
  EXPECT_EQ(undone[1].lane, "workload -> shop");
  ASSERT_EQ(ran.of("connect", "shop -> broker").size(), 2u);
  EXPECT_GT(ran.of("connect", "shop -> broker")[1].at, undone[1].at) << "the first one that heals heals nothing";
}

TEST(Partitions, OfOneStepBeginTogether) {
  Nest nest;
  nest.write("bin/echo.py", echo_program);
  nest.give(shop_and_broker() + echo_beside_them + ask_twice);
  // The second one turns the workload's first attempt away; its kernel tries again after a second, when the first one
  // still holds, if both began before the step.
  scenarios::Plan plan;
  plan.faults = {parted({"workload", "step", "again"}, "1800ms", "shop", "broker"),
                 parted({"workload", "step", "again"}, "300ms", "shop", "workload")};
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[1].attrs["json"], (Value{{"count", 0}}));
  const auto undone = ran.of("fault.undone");
  ASSERT_EQ(ran.of("fault.fired").size(), 2u);
  ASSERT_EQ(undone.size(), 2u);
  EXPECT_EQ(undone[0].attrs["fault"], 1);
  const auto apart = undone[1].at - undone[0].at;
  EXPECT_LT(apart, std::chrono::milliseconds(1700));
}

TEST(Partitions, EndWithTheEventThatTheyWaitFor) {
  Nest nest;
  const auto ran = run_parted(
      nest, ask_twice,
      parted({"workload", "step", "again"}, "20s", "shop", "broker", {{"until", "fault.fired kind=partition"}}));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
  EXPECT_NE(ran.of("fault.undone")[0].attrs["how"].get<std::string>().find("the event was seen"), std::string::npos);
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[1].attrs["json"], (Value{{"count", 0}}));
}

TEST(Partitions, ThatMeetNothingAreNotFired) {
  Nest nest;
  const auto ran = run_parted(nest, "  - { get: shop/health, name: beside }\n",
                              parted({"workload", "step", "beside"}, "100ms", "shop", "broker"));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.of("step").size(), 1u);
  EXPECT_TRUE(ran.of("fault.fired").empty());
  EXPECT_TRUE(ran.of("fault.undone").empty());
}

TEST(Partitions, BeforeAStepThatNeverComesStopNothing) {
  Nest nest;
  const auto ran = run_parted(nest, talk, parted({"workload", "step", "elsewhere"}, "2s", "workload", "echo"));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 1u);
  EXPECT_LT(ran.of("step")[0].attrs["json"]["longest_ms"], 300);
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

}  // namespace
}  // namespace leafcutter::node::testing
