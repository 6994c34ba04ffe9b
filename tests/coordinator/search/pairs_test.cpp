#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "coordinator/search/candidates.hpp"
#include "tests/coordinator/search/derive.hpp"

namespace leafcutter::coordinator {
namespace {

using synthetic::derive;
using synthetic::run_all;
using synthetic::some;

std::uint64_t sum(const std::map<std::string, std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0},
                         [](auto n, const auto& entry) { return n + entry.second; });
}

// A world of three sites in two lanes, one kind of fault each, to be varied by the cases.
struct Small {
  scenarios::Site a{"one", "write", "data:a"}, b{"one", "write", "data:b"}, c{"two", "write", "data:c"},
      extra{"two", "write", "data:new"};
  Scenario scenario;
  EpochHeader singles;
  std::vector<std::optional<LeafOutcome>> outcomes;

  Small() {
    scenario.explore.faults = {{"errno", "one", "write", "", {{"error", "EIO"}}},
                               {"errno", "two", "write", "", {{"error", "EIO"}}}};
    scenario.explore.at_once = 2;
    LeafOutcome calm;
    calm.sites = {{a, 1}, {b, 1}, {c, 1}};
    singles = singles_epoch(scenario, baseline_epoch(scenario, "i"), {calm, calm, calm}, 100);
    calm.fired = {true};
    outcomes.assign(3, calm);
  }
  std::size_t index(const scenarios::Site& site) const {
    for (std::size_t i = 0; i < singles.candidates.size(); ++i)
      if (singles.candidates[i].site == site) return i;
    return ~std::size_t{0};
  }
  LeafOutcome& of(const scenarios::Site& site) { return *outcomes.at(index(site)); }
  EpochHeader pairs(std::uint64_t budget = 100) const { return pairs_epoch(scenario, singles, outcomes, budget); }
};

// After the fault at `a`, `c` is visited a second time.
TEST(Pairs, DoNotBringAFaultAboutAgainThatFailsAtAnotherVisit) {
  Small world;
  for (auto& entry : world.of(world.a).sites)
    if (entry.site == world.c) entry.count = 2;
  const auto holds = world.pairs();
  EXPECT_EQ(std::count(holds.second_order.begin(), holds.second_order.end(), true), 1);
  world.of(world.c).verdict = scenarios::Verdict::fail;
  const auto fails = world.pairs();
  EXPECT_EQ(std::count(fails.second_order.begin(), fails.second_order.end(), true), 0);
  EXPECT_EQ(fails.skipped.at("fails_alone"), 5u) << "four pairs with c's first visit, one with its second";
}

TEST(Pairs, RunEachSetOnceWhenBothOrdersCould) {
  const auto header = Small().pairs();
  EXPECT_EQ(header.leaves, 3u);
  EXPECT_EQ(header.skipped, (std::map<std::string, std::uint64_t>{{"symmetric", 3}}));
  std::set<std::set<std::uint32_t>> sets;
  for (const auto& [first, second] : header.pairs) sets.insert({first, second});
  EXPECT_EQ(sets.size(), 3u);
}

TEST(Pairs, OnTwoLanesComeBeforeThoseOnOne) {
  const auto header = Small().pairs();
  for (std::size_t i = 0; i < header.pairs.size(); ++i) {
    const auto& [first, second] = header.pairs[i];
    EXPECT_EQ(header.candidates[first].site.lane == header.candidates[second].site.lane, i == 2);
  }
}

TEST(Pairs, AreTakenInTheOrderInWhichTheSecondIsReached) {
  Small world;
  std::erase_if(world.of(world.a).sites,
                [&](const auto& entry) { return entry.site == world.c; });  // after a, c never comes up
  const auto header = world.pairs();
  EXPECT_EQ(header.skipped, (std::map<std::string, std::uint64_t>{{"symmetric", 2}, {"unreachable_after", 1}}));
  const std::pair<std::uint32_t, std::uint32_t> back{world.index(world.c), world.index(world.a)};
  EXPECT_EQ(std::count(header.pairs.begin(), header.pairs.end(), back), 1);
  EXPECT_EQ(std::count(header.pairs.begin(), header.pairs.end(), std::pair(back.second, back.first)), 0);
}

TEST(Pairs, ThatCannotMeetInEitherOrderAreUnreachable) {
  Small world;
  std::erase_if(world.of(world.a).sites, [&](const auto& entry) { return entry.site == world.c; });
  std::erase_if(world.of(world.c).sites, [&](const auto& entry) { return entry.site == world.a; });
  const auto header = world.pairs();
  EXPECT_EQ(header.skipped, (std::map<std::string, std::uint64_t>{{"symmetric", 2}, {"unreachable_after", 2}}));
}

TEST(Pairs, LeaveOutWhatFailsAlone) {
  Small world;
  world.of(world.a).verdict = scenarios::Verdict::fail;
  const auto header = world.pairs();
  EXPECT_EQ(header.leaves, 1u);
  EXPECT_EQ(header.skipped, (std::map<std::string, std::uint64_t>{{"symmetric", 1}, {"fails_alone", 4}}));
}

TEST(Pairs, DoNotBeginWithAFaultThatDidNotFire) {
  Small world;
  world.of(world.a).fired = {false};
  const auto header = world.pairs();
  EXPECT_EQ(header.skipped, (std::map<std::string, std::uint64_t>{{"symmetric", 1}, {"never_fired", 2}}));
  for (const auto& [first, second] : header.pairs) EXPECT_NE(first, world.index(world.a));
}

TEST(Pairs, DoNotBeginWithALeafThatCameToNoResult) {
  Small world;
  world.of(world.a).verdict = scenarios::Verdict::infra;
  EXPECT_EQ(world.pairs().skipped, (std::map<std::string, std::uint64_t>{{"symmetric", 1}, {"unresolved_alone", 2}}));
}

TEST(Pairs, CannotShareAnOccurrence) {
  Small world;
  world.scenario.explore.faults.push_back({"crash-before", "two", "write", "", Value::object()});
  LeafOutcome calm = world.of(world.a);
  calm.fired.clear();
  world.singles = singles_epoch(world.scenario, baseline_epoch(world.scenario, "i"), {calm}, 100);
  calm.fired = {true};
  world.outcomes.assign(4, calm);
  const auto header = world.pairs();
  EXPECT_EQ(header.skipped.at("unreachable_after"), 2u);  // errno and crash at the one write of c
  EXPECT_EQ(header.leaves, 5u);
}

TEST(Pairs, TryFirstWhatExistsOnlyBecauseOfTheFirstFault) {
  Small world;
  world.of(world.a).sites.push_back({world.extra, 5});  // a new site
  world.of(world.b).sites[1].count = 3;                 // and more visits of an old one
  world.scenario.explore.occurrences = 1;
  const auto header = world.pairs();
  ASSERT_EQ(header.candidates.size(), 5u);  // three, and the first new occurrence of each
  EXPECT_EQ(header.leaves, 5u);
  EXPECT_EQ(header.second_order, (std::vector<bool>{true, true, false, false, false}));
  std::set<std::pair<std::uint32_t, std::string>> found;
  for (std::size_t i = 0; i < 2; ++i)
    found.emplace(header.pairs[i].first, header.candidates[header.pairs[i].second].text());
  EXPECT_EQ(found, (std::set<std::pair<std::uint32_t, std::string>>{
                       {world.index(world.a), "errno(error=EIO) at two write data:new #1"},
                       {world.index(world.b), "errno(error=EIO) at one write data:b #2"}}));
}

TEST(Pairs, DoNotTakeAShakyCountForSomethingNew) {
  Small world;
  for (auto& entry : world.singles.ever)
    if (entry.site == world.b) entry.count = 3;  // some baseline had three visits too
  world.of(world.b).sites[1].count = 3;
  EXPECT_EQ(world.pairs().candidates.size(), 3u);
}

TEST(Pairs, BehindAFaultThatFailsAloneAreCountedNotRun) {
  Small world;
  world.of(world.a).verdict = scenarios::Verdict::fail;
  world.of(world.a).sites.push_back({world.extra, 1});
  const auto header = world.pairs();
  EXPECT_EQ(header.candidates.size(), 3u);
  EXPECT_EQ(header.skipped.at("fails_alone"), 5u);
}

TEST(Pairs, CutByTheBudgetLoseTheTail) {
  const auto all = derive(synthetic::scenario()).pairs;
  auto scenario = synthetic::scenario(2, 3, 3 + 47 + 100);
  scenario.explore.seed = 7;
  const auto singles = derive(synthetic::scenario()).singles;
  const auto cut = pairs_epoch(scenario, singles, some(run_all(singles)), 100);
  ASSERT_EQ(cut.leaves, 100u);
  EXPECT_TRUE(std::equal(cut.pairs.begin(), cut.pairs.end(), all.pairs.begin()));
  EXPECT_EQ(cut.skipped.at("budget"), all.leaves - 100);
  EXPECT_EQ(sum(cut.skipped) + cut.leaves, sum(all.skipped) + all.leaves);
}

TEST(Pairs, OfSinglesThatTheBudgetCutAreCutToo) {
  Small world;
  world.outcomes.resize(1);
  const auto header = world.pairs(0);
  EXPECT_EQ(header.leaves, 0u);
  EXPECT_EQ(header.skipped, (std::map<std::string, std::uint64_t>{{"budget", 6}}));
}

// Every ordered pair of candidates, and every second-order one, is run or has exactly one reason; recounted here by
// hand.
TEST(Pairs, AddUp) {
  const auto scenario = synthetic::scenario();
  const auto epochs = derive(scenario);
  const std::uint64_t n = epochs.singles.candidates.size();
  std::map<scenarios::Site, std::uint32_t> ever;
  for (const auto& [site, count] : epochs.singles.ever) ever[site] = count;
  std::uint64_t second_order = 0;
  for (const auto& single : run_all(epochs.singles))
    for (const auto& [site, count] : single.sites) {
      const auto before = ever.contains(site) ? ever[site] : 0;
      second_order += faults_at(scenario.explore.faults, site, before + 1, std::min(count, before + 3)).size();
    }
  EXPECT_GT(second_order, 0u);
  EXPECT_EQ(epochs.pairs.leaves + sum(epochs.pairs.skipped), n * (n - 1) + second_order);
  EXPECT_GT(epochs.pairs.skipped.at("symmetric"), 0u);
  EXPECT_GT(epochs.pairs.skipped.at("unreachable_after"), 0u);
  EXPECT_GT(epochs.pairs.skipped.at("fails_alone"), 0u);
}

TEST(Pairs, OfADerivedEpochAllFire) {
  const auto epochs = derive(synthetic::scenario());
  std::uint64_t fired = 0;
  for (const auto& leaf : run_all(epochs.pairs)) fired += std::count(leaf.fired.begin(), leaf.fired.end(), true) == 2;
  EXPECT_EQ(fired, epochs.pairs.leaves);
}

}  // namespace
}  // namespace leafcutter::coordinator
