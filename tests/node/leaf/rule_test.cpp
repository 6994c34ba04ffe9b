// Rules in a leaf: aimed by what is written of them, and armed by what is seen anywhere in it.
#include <gtest/gtest.h>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

constexpr const char* three_posts = R"(
workload:
  - { post: shop/lines, json: { id: a } }
  - { post: shop/lines, json: { id: b } }
  - { get: shop/lines }
)";

scenarios::Plan failing_writes(const std::string& after) {
  scenarios::Aim aim;
  aim.path = "*";
  aim.after = after;
  scenarios::Plan plan;
  plan.faults.push_back({"errno", {"shop", "write", ""}, 1, {{"error", "EIO"}}, aim});
  return plan;
}

Value lines_at_the_end(const Ran& ran) {
  const auto steps = ran.of("step");
  return steps.size() == 3 ? steps[2].attrs.value("json", Value()) : Value();
}

TEST(Rules, StrikeOnlyAfterTheEventThatTheyWaitFor) {
  Nest nest;
  nest.give(std::string(one_service) + three_posts);
  const auto ran = nest.run(failing_writes("reply from=shop status=201"));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(lines_at_the_end(ran), (Value{{"count", 1}})) << "the first line was written, and answered, before";
  const auto fired = ran.of("fault.fired", "shop");
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_GT(fired[0].at, ran.of("reply").at(0).at);
}

TEST(Rules, WhoseEventNeverComesStrikeNothing) {
  Nest nest;
  nest.give(std::string(one_service) + three_posts);
  const auto ran = nest.run(failing_writes("reply from=shop status=500"));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(lines_at_the_end(ran), (Value{{"count", 2}}));
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

TEST(Rules, WithoutAnEventStrikeFromTheBeginning) {
  Nest nest;
  nest.give(std::string(one_service) + three_posts);
  const auto ran = nest.run(failing_writes(""));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(lines_at_the_end(ran), (Value{{"count", 0}}));
}

TEST(Rules, WithAPatternThatIsNoneEndTheLeafAsOurDefect) {
  Nest nest;
  nest.give(std::string(one_service) + three_posts);
  const auto ran = nest.run(failing_writes("rply from=shop"));
  EXPECT_EQ(ran.end()["cause"], "infra");
}

}  // namespace
}  // namespace leafcutter::node::testing
