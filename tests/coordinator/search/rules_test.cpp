// Rules of a scenario among what the search found: candidates without a site.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "coordinator/search/epochs.hpp"
#include "scenarios/rule.hpp"

namespace leafcutter::coordinator {
namespace {

Fault rule_of(const std::string& lane, const std::string& text) {
  scenarios::RuleScope scope;
  scope.lane = lane;
  scenarios::Mistake mistake;
  auto fault = scenarios::read_rule(text, scope, mistake);
  EXPECT_TRUE(fault) << mistake.message;
  return fault.value_or(Fault{});
}

/// Two sites that choices fit, and three rules.
struct RuledWorld {
  scenarios::Site a{"one", "write", "data:a"}, b{"two", "write", "data:b"};
  Scenario scenario;
  EpochHeader singles;
  std::vector<std::optional<LeafOutcome>> outcomes;

  RuledWorld() {
    scenario.explore.faults = {{"errno", "one", "write", "", {{"error", "EIO"}}},
                               {"errno", "two", "write", "", {{"error", "EIO"}}}};
    scenario.explore.rules = {rule_of("one", "fsync=EIO path=*.wal every 2"), rule_of("one", "fsync=ENOSPC"),
                              rule_of("two", "write=EIO probability=0.5")};
    scenario.explore.at_once = 2;
    LeafOutcome calm;
    calm.sites = {{a, 1}, {b, 1}};
    singles = singles_epoch(scenario, baseline_epoch(scenario, "i"), {calm, calm, calm}, 100);
    calm.fired = {true};
    outcomes.assign(singles.candidates.size(), calm);
  }
};

TEST(Rules, FollowWhatTheSearchFoundAsTheyAreWritten) {
  const RuledWorld world;
  ASSERT_EQ(world.singles.candidates.size(), 5u);
  EXPECT_FALSE(world.singles.candidates[0].aim || world.singles.candidates[1].aim);
  EXPECT_EQ(world.singles.candidates[2], world.scenario.explore.rules[0]);
  EXPECT_EQ(world.singles.candidates[3], world.scenario.explore.rules[1]);
  EXPECT_EQ(scenarios::rule_text(world.singles.candidates[4]), "write=EIO probability=0.5");
  EXPECT_EQ(plan_of(world.singles, 2).faults, std::vector{world.scenario.explore.rules[0]});
}

TEST(Rules, DrawWhatTheEpochsKeySays) {
  RuledWorld world;
  const auto seed = world.singles.candidates[4].aim->seed;
  EXPECT_NE(seed, 0u);
  EXPECT_EQ(RuledWorld().singles.candidates[4].aim->seed, seed) << "the same campaign draws the same";
  EXPECT_EQ(world.singles.candidates[2].aim->seed, 0u) << "nothing is drawn";
  world.scenario.explore.seed = 2;
  LeafOutcome calm;
  calm.sites = {{world.a, 1}, {world.b, 1}};
  const auto other = singles_epoch(world.scenario, baseline_epoch(world.scenario, "i"), {calm, calm, calm}, 100);
  EXPECT_NE(other.candidates[4].aim->seed, seed);
  const auto again = epoch_header_from(to_value(world.singles));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->candidates, world.singles.candidates) << "frozen in the header";
}

TEST(Rules, CanBeReachedAfterAnyFaultAndShareAFamily) {
  const RuledWorld world;
  const auto header = pairs_epoch(world.scenario, world.singles, world.outcomes, 100);
  // Every unordered pair of five once; the other order would be the same set.
  EXPECT_EQ(header.leaves, 10u);
  EXPECT_EQ(header.skipped, (std::map<std::string, std::uint64_t>{{"symmetric", 10}}));
  const auto both = std::find(header.pairs.begin(), header.pairs.end(), std::pair<std::uint32_t, std::uint32_t>(2, 3));
  ASSERT_NE(both, header.pairs.end()) << "two rules of one family compose";
  const auto plan = plan_of(header, static_cast<std::uint64_t>(both - header.pairs.begin()));
  EXPECT_EQ(plan.faults, (std::vector{world.scenario.explore.rules[0], world.scenario.explore.rules[1]}));
  for (std::size_t i = 0; i < header.pairs.size(); ++i) {
    if (header.pairs[i].second != 4) continue;
    EXPECT_EQ(plan_of(header, i).faults[1].aim->seed, world.singles.candidates[4].aim->seed)
        << "a pair draws as the rule alone did";
  }
}

TEST(Rules, ThatFailAloneOrNeverFiredArePairedWithNothingAfterThem) {
  RuledWorld world;
  world.outcomes[2]->verdict = scenarios::Verdict::fail;
  const auto header = pairs_epoch(world.scenario, world.singles, world.outcomes, 100);
  EXPECT_EQ(header.leaves, 6u);
  EXPECT_EQ(header.skipped.at("fails_alone"), 8u);
  world.outcomes[2]->verdict = scenarios::Verdict::pass;
  world.outcomes[2]->fired = {false};
  const auto unfired = pairs_epoch(world.scenario, world.singles, world.outcomes, 100);
  EXPECT_EQ(unfired.skipped.at("never_fired"), 4u) << "but another fault may bring its calls about";
  EXPECT_EQ(unfired.leaves, 10u);
}

TEST(Rules, ThatNeverFiredAreSaidToCoverNothing) {
  RuledWorld world;
  world.outcomes[3]->fired = {false};
  std::map<scenarios::Address, LeafOutcome> by_address;
  for (std::uint64_t i = 0; i < world.outcomes.size(); ++i)
    by_address[{world.singles.campaign, world.singles.number, i}] = *world.outcomes[i];
  const auto covered = coverage(world.scenario, {world.singles}, by_address);
  EXPECT_EQ(covered.singles, 5u);
  EXPECT_EQ(covered.singles_fired, 4u);
  EXPECT_EQ(std::count(covered.not_covered.begin(), covered.not_covered.end(),
                       "rule \"fsync=ENOSPC\" of one: it never fired"),
            1);
  EXPECT_THAT(coverage_line(covered), testing::Not(testing::HasSubstr("*.wal"))) << "this one fired";
}

TEST(Rules, BeyondTheBudgetAreCounted) {
  const RuledWorld world;
  LeafOutcome calm;
  calm.sites = {{world.a, 1}, {world.b, 1}};
  const auto header = singles_epoch(world.scenario, baseline_epoch(world.scenario, "i"), {calm, calm, calm}, 3);
  EXPECT_EQ(header.leaves, 3u);
  EXPECT_EQ(header.skipped.at("budget"), 2u);
}

}  // namespace
}  // namespace leafcutter::coordinator
