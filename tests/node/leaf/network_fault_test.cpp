// Faults of a connection's bytes in a real leaf: on the way from service to service, and seen by both.
#include <gtest/gtest.h>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

scenarios::Plan struck_link(const std::string& kind, Value params, std::uint32_t occurrence = 1,
                            const std::string& link = "shop -> broker") {
  scenarios::Plan plan;
  plan.faults.push_back({kind, {link, "connect", "tcp"}, occurrence, std::move(params)});
  return plan;
}

constexpr const char* asks_twice = R"(
links: [ workload -> shop, shop -> broker ]
workload:
  - { get: shop/peer }
  - { get: shop/peer }
)";

Ran run_struck(Nest& nest, const scenarios::Plan& plan) {
  nest.give(shop_and_broker() + asks_twice);
  return nest.run(plan);
}

TEST(NetworkFaults, StrikeTheConnectionThatThePlanNames) {
  Nest nest;
  const auto ran = run_struck(nest, struck_link("cut", {{"after-bytes", 10}, {"ending", "reset"}}, 2));
  SCOPED_TRACE(ran.text());
  EXPECT_TRUE(ran.exit.clean);
  EXPECT_EQ(ran.end()["cause"], "completed");
  auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].attrs["json"], (Value{{"count", 0}}));
  EXPECT_NE(steps[1].attrs.value("json", Value()), (Value{{"count", 0}}));
  auto fired = ran.of("fault.fired", "shop -> broker");
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].attrs["evidence"],
            (Value{{"conn", 2}, {"direction", "to-caller"}, {"offset", 10}, {"bytes", 90}}));
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
  auto closed = ran.of("close", "shop -> broker");
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_EQ(closed[1].attrs["cause"], "fault:cut");
  EXPECT_EQ(closed[1].attrs["down_bytes"], 10);
  // What the shop answers after that, it answers because of it.
  EXPECT_GE(ran.of("step")[1].clock.at("shop -> broker"), fired[0].seq);
}

TEST(NetworkFaults, AConnectionThatNeverComesIsNotStruck) {
  Nest nest;
  const auto ran = run_struck(nest, struck_link("cut", {{"after-bytes", 10}}, 3));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("step").size(), 2u);
  for (const auto& step : ran.of("step")) EXPECT_EQ(step.attrs["json"], (Value{{"count", 0}}));
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

TEST(NetworkFaults, TheSamePlanDecidesTheSameTwice) {
  Nest nest;
  const auto plan = struck_link("latency", {{"for", "5ms"}, {"distribution", "pareto-normal"}, {"spread", "5ms"}});
  std::vector<Value> proofs;
  for (int i = 0; i < 2; ++i) {
    const auto ran = run_struck(nest, plan);
    SCOPED_TRACE(ran.text());
    ASSERT_EQ(ran.of("fault.fired").size(), 1u);
    proofs.push_back(ran.of("fault.fired")[0].attrs["evidence"]);
  }
  EXPECT_EQ(proofs[0], proofs[1]);
  EXPECT_GT(proofs[0]["delay_ms"], 5.0);
}

TEST(NetworkFaults, AStepWithoutAReplyIsExcusedByTheFaultThatTookIt) {
  Nest nest;
  for (int i = 0; i < 5; ++i) {
    const auto ran = run_struck(nest, struck_link("reset-after-accept", Value::object(), 1, "workload -> shop"));
    SCOPED_TRACE(ran.text());
    ASSERT_EQ(ran.of("step").size(), 2u);
    EXPECT_EQ(ran.of("step")[0].attrs["outcome"], "no-reply");
    EXPECT_EQ(ran.of("step")[0].attrs["expected"], true);
  }
}

TEST(NetworkFaults, AHalfOpenConnectionIsOverAtTheEndOfTheLeaf) {
  Nest nest;
  const auto ran = run_struck(nest, struck_link("half-open", {{"gone", "service"}}, 1, "workload -> shop"));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.undone").size(), 1u);
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[0].attrs["outcome"], "no-reply");
  EXPECT_EQ(ran.of("step")[1].attrs["outcome"], "replied");
}

}  // namespace
}  // namespace leafcutter::node::testing
