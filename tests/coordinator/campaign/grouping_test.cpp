#include "coordinator/campaign/grouping.hpp"

#include <gtest/gtest.h>

namespace leafcutter::coordinator {
namespace {

const Fault crash{"crash-after", {"shop", "write", "data:a"}, 1, Value::object()};
const Fault other_crash{"crash", {"shop", "step", "post"}, 1, Value::object()};
const Fault reset{"reset", {"shop -> broker", "request", "POST /"}, 1, Value::object()};

Failure failure(std::uint32_t epoch, std::uint64_t index, std::vector<Fault> faults,
                const std::string& property = "p") {
  Plan plan;
  plan.faults = std::move(faults);
  return {{"a", epoch, index}, property, plan};
}

TEST(Violated, NamesEachPropertyOnce) {
  Result r;
  r.verdict = scenarios::Verdict::fail;
  r.violations = {{"p", "", "1", {}}, {"q", "", "", {}}, {"p", "", "2", {}}};
  EXPECT_EQ(violated(r), (std::vector<std::string>{"p", "q"}));
  r.verdict = scenarios::Verdict::infra;
  EXPECT_TRUE(violated(r).empty());
  r = {};
  r.verdict = scenarios::Verdict::fail;
  r.reason = scenarios::Reason::nondeterminism;
  EXPECT_EQ(violated(r), (std::vector<std::string>{"nondeterminism"}));
}

TEST(FailureGroups, TakeTheFewestFaultsAndTheLowestAddressFirst) {
  FailureGroups groups;
  EXPECT_FALSE(groups.add({}));
  EXPECT_TRUE(groups.add({failure(1, 7, {crash}), failure(1, 3, {other_crash}), failure(1, 5, {reset})}));
  ASSERT_EQ(groups.all().size(), 2u);
  for (const auto& [signature, group] : groups.all()) {
    if (group.members.front().plan.faults[0] == reset) continue;
    ASSERT_EQ(group.members.size(), 2u);
    EXPECT_EQ(group.candidates, 2u);
    EXPECT_EQ(group.members[0].address.index, 3u);
  }
}

TEST(FailureGroups, KeepPropertiesApart) {
  FailureGroups groups;
  groups.add({failure(1, 7, {crash}, "p"), failure(1, 7, {crash}, "q")});
  EXPECT_EQ(groups.all().size(), 2u);
}

TEST(FailureGroups, AttributeAPairWhoseFaultFailsAloneAtAnotherVisit) {
  auto later = crash;
  later.occurrence = 4;  // a retry after the reset brought the fourth visit about
  auto elsewhere = later;
  elsewhere.site.resource = "data:b";
  FailureGroups groups;
  groups.add({failure(1, 0, {crash})});
  groups.add({failure(2, 0, {reset, later}), failure(2, 1, {reset, elsewhere})});
  std::size_t attributed = 0;
  for (const auto& [signature, group] : groups.all()) attributed += group.attributed.size();
  EXPECT_EQ(attributed, 1u) << "the other site never failed alone";
}

TEST(FailureGroups, AttributeAPairToTheOneFaultThatFailsAlone) {
  FailureGroups groups;
  groups.add({failure(1, 0, {crash})});
  groups.add({failure(2, 0, {reset, crash}), failure(2, 1, {reset, other_crash}), failure(2, 2, {reset, crash}, "q")});
  EXPECT_EQ(groups.all().size(), 3u);
  std::size_t attributed = 0;
  for (const auto& [signature, group] : groups.all()) attributed += group.attributed.size();
  EXPECT_EQ(attributed, 1u);  // other_crash was never seen to fail alone, and q is another property
}

TEST(FailureGroups, LetNoLaterEpochChangeWhoRepresents) {
  FailureGroups groups;
  groups.add({failure(1, 9, {crash})});
  groups.add({failure(2, 0, {other_crash})});
  ASSERT_EQ(groups.all().size(), 1u);
  const auto& group = groups.all().begin()->second;
  EXPECT_EQ(group.candidates, 1u);
  EXPECT_EQ(group.members.front().address.index, 9u);
  EXPECT_EQ(group.members.size(), 2u);
}

}  // namespace
}  // namespace leafcutter::coordinator
