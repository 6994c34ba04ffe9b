#include "coordinator/campaign/disagreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/judge/layout.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Reason;
using testing::Contains;
using testing::HasSubstr;

Result ran(Reason reason, const std::string& node = "a") {
  Result result;
  result.execution = "0a1b2c3d/1/9#0";
  result.address = "0a1b2c3d/1/9";
  result.reason = reason;
  result.verdict = scenarios::verdict_of(reason);
  result.node = node;
  result.plan.faults = {{"crash", {"shop", "step", "post"}, 1, Value::object()}};
  if (result.verdict == scenarios::Verdict::fail) result.violations = {{"announced", "never came", "order-1", {}}};
  return result;
}

TEST(Disagreement, OfTwoDecidedResultsIsAFinding) {
  const auto found = disagreement(ran(Reason::held), ran(Reason::property_violated, "b"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->property, "nondeterminism");
  EXPECT_EQ(found->leaf.text(), "0a1b2c3d/1/9");
  EXPECT_EQ(found->signature.size(), 12u);
  EXPECT_EQ(found->runs, 2u);
  EXPECT_EQ(found->fails, 1u);
  EXPECT_EQ(found->passing_execution, "0a1b2c3d/1/9#0");
  EXPECT_THAT(found->message, HasSubstr("PASS (held) first and FAIL (property-violated): announced then, on a and b"));
  EXPECT_THAT(found->explanation, Contains(HasSubstr("leafcutter replay 0a1b2c3d/1/9")));
  for (const auto& line : found->explanation) EXPECT_LE(columns(line), 100u) << line;
  EXPECT_TRUE(finding_from(to_value(*found)));
}

TEST(Disagreement, APassThatBecomesVacuousIsOne) { EXPECT_TRUE(disagreement(ran(Reason::held), ran(Reason::vacuous))); }

TEST(Disagreement, IsNoneWhereBothSayTheSame) {
  for (const auto reason : {Reason::held, Reason::vacuous, Reason::property_violated})
    EXPECT_FALSE(disagreement(ran(reason), ran(reason, "b")));
}

TEST(Disagreement, IsNoneWhereOneWasNotDecided) {
  for (const auto reason : {Reason::timed_out, Reason::node_lost, Reason::runner_failed}) {
    EXPECT_FALSE(disagreement(ran(Reason::held), ran(reason)));
    EXPECT_FALSE(disagreement(ran(reason), ran(Reason::property_violated)));
  }
}

}  // namespace
}  // namespace leafcutter::coordinator
