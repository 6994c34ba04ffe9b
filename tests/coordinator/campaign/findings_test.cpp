#include "coordinator/campaign/findings.hpp"

#include <gtest/gtest.h>

namespace leafcutter::coordinator {
namespace {

const Fault crash{"crash", {"shop", "step", "post"}, 1, Value::object()};
const Fault reset{"reset", {"shop -> broker", "request", "POST /"}, 1, Value::object()};

Plan plan(std::vector<Fault> faults) {
  Plan p;
  p.faults = std::move(faults);
  return p;
}

FailureGroup group(std::vector<std::uint64_t> indexes, std::uint32_t epoch) {
  FailureGroup g;
  g.property = "p";
  for (const auto i : indexes) g.members.push_back({{"a", epoch, i}, "p", {}});
  return g;
}

Conclusion conclusion(bool confirmed, std::vector<Fault> faults, scenarios::Address leaf) {
  Conclusion c;
  c.property = "p";
  c.confirmed = confirmed;
  c.plan = plan(std::move(faults));
  c.leaf = std::move(leaf);
  return c;
}

TEST(Merge, MakesOneFindingOfOneSignature) {
  const auto early = group({9, 4}, 1), late = group({2, 0, 1}, 2);
  const auto a = conclusion(true, {crash}, {"a", 1, 4}), b = conclusion(true, {crash}, {"a", 2, 0});
  for (const auto& order :
       std::vector<std::vector<ConcludedGroup>>{{{&early, &a}, {&late, &b}}, {{&late, &b}, {&early, &a}}}) {
    const auto findings = merge(order);
    ASSERT_EQ(findings.size(), 1u);
    const auto& finding = findings.begin()->second;
    EXPECT_EQ(finding.seen, 5u);
    EXPECT_EQ(finding.exemplars, (std::vector<std::string>{"a/1/4", "a/1/9", "a/2/0"}));
    EXPECT_EQ(finding.leaf.text(), "a/1/4");
  }
}

TEST(Merge, TellsOfTheConfirmedOne) {
  const auto early = group({0}, 1), late = group({0}, 2);
  const auto doubtful = conclusion(false, {crash}, {"a", 1, 0}), sure = conclusion(true, {crash}, {"a", 2, 0});
  const auto finding = merge({{&early, &doubtful}, {&late, &sure}}).begin()->second;
  EXPECT_TRUE(finding.confirmed);
  EXPECT_EQ(finding.leaf.text(), "a/2/0");
  EXPECT_EQ(finding.seen, 2u);
}

TEST(Merge, KeepsOtherSignaturesApart) {
  const auto g = group({0}, 1), h = group({0}, 1);
  const auto a = conclusion(true, {crash}, {"a", 1, 0}), b = conclusion(true, {reset}, {"a", 1, 0});
  const auto findings = merge({{&g, &a}, {&h, &b}});
  EXPECT_EQ(findings.size(), 2u);
}

TEST(SameFinding, LooksPastTheExplanationOnly) {
  Finding a;
  a.signature = "s";
  auto b = a;
  b.explanation = {"because"};
  EXPECT_TRUE(same_finding(a, b));
  b.seen = 2;
  EXPECT_FALSE(same_finding(a, b));
}

}  // namespace
}  // namespace leafcutter::coordinator
