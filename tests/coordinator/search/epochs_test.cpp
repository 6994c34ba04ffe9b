#include "coordinator/search/epochs.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/coordinator/search/derive.hpp"

namespace leafcutter::coordinator {
namespace {

using synthetic::derive;
using synthetic::run_all;
using synthetic::some;

TEST(Baseline, IsThreeLeavesWithoutFaults) {
  const auto header = baseline_epoch(synthetic::scenario(), "identity");
  EXPECT_EQ(header.leaves, 3u);
  EXPECT_EQ(header.number, 0u);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(plan_of(header, i), Plan{});
}

TEST(Baseline, CarriesTheVariantIntoItsPlans) {
  auto scenario = synthetic::scenario();
  scenario.variant = "fixed";
  EXPECT_EQ(plan_of(baseline_epoch(scenario, "identity"), 0).variant, "fixed");
}

LeafOutcome with_sites(std::vector<SiteCount> sites) {
  LeafOutcome outcome;
  outcome.sites = std::move(sites);
  return outcome;
}

TEST(Singles, StrikeOnlyWhatEveryBaselineVisitedAsOftenAsTheLeastDid) {
  const scenarios::Site steady{"shop", "write", "data:a"}, shaky{"shop", "write", "data:b"};
  Scenario scenario;
  scenario.explore.faults = {{"errno", "shop", "write", "", {{"error", "EIO"}}}};
  scenario.explore.occurrences = 9;
  const auto header = singles_epoch(
      scenario, baseline_epoch(scenario, "i"),
      {with_sites({{steady, 4}, {shaky, 1}}), with_sites({{steady, 2}}), with_sites({{steady, 3}, {shaky, 7}})}, 100);
  EXPECT_EQ(header.sites, (std::vector<SiteCount>{{steady, 2}}));
  EXPECT_EQ(header.ever, (std::vector<SiteCount>{{steady, 4}, {shaky, 7}}));
  ASSERT_EQ(header.candidates.size(), 2u);
  EXPECT_EQ(header.candidates[0].occurrence, 1u);
  EXPECT_EQ(header.candidates[1].occurrence, 2u);
}

TEST(Singles, AreEveryChoiceAtEverySiteOnce) {
  auto scenario = synthetic::scenario();
  scenario.explore.faults.push_back(scenario.explore.faults.front());  // written twice, one candidate
  const auto header = derive(scenario).singles;
  // shop write, fsync: 2 errors + 2 crashes at 3 occurrences; rename: the same at 1; link: refuse, 4 kinds at 3; crash:
  // 2 lanes at 3.
  EXPECT_EQ(header.candidates.size(), 12u + 12u + 4u + 1u + 12u + 6u);
  EXPECT_EQ(header.leaves, header.candidates.size());
  EXPECT_TRUE(header.skipped.empty());
  std::set<std::string> texts;
  for (const auto& fault : header.candidates) texts.insert(fault.text());
  EXPECT_EQ(texts.size(), header.candidates.size());
}

TEST(Singles, AreInOrderOfOccurrence) {
  const auto header = derive(synthetic::scenario()).singles;
  EXPECT_TRUE(std::is_sorted(header.candidates.begin(), header.candidates.end(),
                             [](const Fault& a, const Fault& b) { return a.occurrence < b.occurrence; }));
}

TEST(Singles, OfASmallBudgetStillSeeEveryKind) {
  auto scenario = synthetic::scenario();
  const auto full = derive(scenario).singles;
  std::set<std::tuple<std::string, std::string, std::string>> all, early;
  for (const auto& f : full.candidates) all.emplace(f.kind, f.site.lane, f.site.operation);
  for (std::size_t i = 0; i < all.size(); ++i)
    early.emplace(full.candidates[i].kind, full.candidates[i].site.lane, full.candidates[i].site.operation);
  EXPECT_EQ(early, all);
}

TEST(Singles, CutByTheBudgetAreCounted) {
  const auto scenario = synthetic::scenario();
  const auto baseline = baseline_epoch(scenario, "identity");
  const auto header = singles_epoch(scenario, baseline, run_all(baseline), 10);
  EXPECT_EQ(header.leaves, 10u);
  EXPECT_EQ(header.skipped.at("budget"), header.candidates.size() - 10);
  EXPECT_EQ(plan_of(header, 9).faults.size(), 1u);
}

TEST(Singles, AreShuffledByTheSeedAndByNothingElse) {
  auto scenario = synthetic::scenario();
  const auto once = derive(scenario).singles, again = derive(scenario).singles;
  EXPECT_EQ(once.digest(), again.digest());
  scenario.explore.seed = 8;
  const auto other = derive(scenario).singles;
  EXPECT_NE(once.candidates, other.candidates);
  auto sorted = [](std::vector<Fault> faults) {
    std::set<std::string> texts;
    for (const auto& f : faults) texts.insert(f.text());
    return texts;
  };
  EXPECT_EQ(sorted(once.candidates), sorted(other.candidates));
}

TEST(Header, KeyDependsOnSeedAndContents) {
  auto header = derive(synthetic::scenario()).singles;
  const auto key = header.key();
  auto seed = header, content = header;
  ++seed.seed;
  content.candidates.pop_back();
  EXPECT_EQ(header.key(), key);
  EXPECT_NE(seed.key(), key);
  EXPECT_NE(content.key(), key);
}

TEST(Header, SurvivesARoundTrip) {
  const auto epochs = derive(synthetic::scenario());
  for (const auto* header : {&epochs.baseline, &epochs.singles, &epochs.pairs}) {
    const auto text = to_value(*header).dump();
    const auto back = epoch_header_from(Value::parse(text));
    ASSERT_TRUE(back.ok()) << back.error().text();
    EXPECT_EQ(to_value(*back).dump(), text);
    EXPECT_EQ(back->digest(), header->digest());
    EXPECT_EQ(back->key(), header->key());
    EXPECT_EQ(back->second_order, header->second_order);
    for (std::uint64_t i = 0; i < header->leaves; ++i) ASSERT_EQ(plan_of(*back, i), plan_of(*header, i));
  }
}

TEST(Header, KeepsASeedOf64Bits) {
  auto header = baseline_epoch(synthetic::scenario(), "identity");
  header.seed = ~std::uint64_t{0};
  EXPECT_EQ(epoch_header_from(Value::parse(to_value(header).dump()))->seed, header.seed);
}

TEST(Header, RefusesWhatIsNone) {
  const auto good = to_value(derive(synthetic::scenario()).pairs);
  ASSERT_TRUE(epoch_header_from(good).ok());
  for (const auto& [key, value] : good.items()) {
    auto without = good;
    without.erase(key);
    EXPECT_FALSE(epoch_header_from(without).ok()) << "without " << key;
    auto wrong = good;
    wrong[key] = Value::array({Value::array({"x"})});
    EXPECT_FALSE(epoch_header_from(wrong).ok()) << "wrong " << key;
  }
  auto beyond = good;
  beyond["pairs"][0][1] = good["candidates"].size();
  EXPECT_FALSE(epoch_header_from(beyond).ok());
  beyond = good;
  beyond["leaves"] = good["pairs"].size() + 1;
  EXPECT_FALSE(epoch_header_from(beyond).ok());
  beyond = good;
  beyond["second_order"].push_back(good["pairs"].size());
  EXPECT_FALSE(epoch_header_from(beyond).ok());
  EXPECT_FALSE(epoch_header_from(Value::array()).ok());
}

TEST(CampaignName, IsEightHexDigitsOfWhatDecidesTheLeaves) {
  auto scenario = synthetic::scenario();
  const auto name = campaign_name(scenario, "identity");
  EXPECT_EQ(name.size(), 8u);
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(name, campaign_name(scenario, "identity"));
  EXPECT_NE(name, campaign_name(scenario, "other"));
  auto time = scenario, leaves = scenario, seed = scenario, at_once = scenario;
  time.explore.max_time += std::chrono::minutes(1);
  EXPECT_EQ(name, campaign_name(time, "identity"));
  ++leaves.explore.max_leaves;
  ++seed.explore.seed;
  at_once.explore.at_once = 1;
  for (const auto& other : {leaves, seed, at_once}) EXPECT_NE(name, campaign_name(other, "identity"));
}

TEST(Plan, BeyondTheLastLeafIsRefused) {
  const auto epochs = derive(synthetic::scenario());
  EXPECT_THROW(plan_of(epochs.pairs, epochs.pairs.leaves), std::out_of_range);
  EXPECT_THROW(plan_of(epochs.singles, epochs.singles.candidates.size()), std::out_of_range);
}

}  // namespace
}  // namespace leafcutter::coordinator
