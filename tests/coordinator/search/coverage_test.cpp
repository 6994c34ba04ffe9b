#include <gtest/gtest.h>

#include <numeric>

#include "tests/coordinator/search/derive.hpp"

namespace leafcutter::coordinator {
namespace {

using Outcomes = std::map<scenarios::Address, LeafOutcome>;

Outcomes run_epochs(const std::vector<EpochHeader>& epochs) {
  Outcomes outcomes;
  for (const auto& epoch : epochs)
    for (std::uint64_t i = 0; i < epoch.leaves; ++i)
      outcomes[{epoch.campaign, epoch.number, i}] = synthetic::outcome(plan_of(epoch, i));
  return outcomes;
}

std::uint64_t sum(const std::map<std::string, std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0},
                         [](auto n, const auto& entry) { return n + entry.second; });
}

struct Explored {
  Scenario scenario = synthetic::scenario();
  synthetic::Epochs derived = synthetic::derive(scenario);
  std::vector<EpochHeader> epochs = {derived.baseline, derived.singles, derived.pairs};
  Outcomes outcomes = run_epochs(epochs);
  Coverage covered() const { return coverage(scenario, epochs, outcomes); }
};

TEST(Coverage, CountsWhatRanAndWhatItAchieved) {
  const Explored run;
  const auto c = run.covered();
  EXPECT_EQ(c.baselines, 3u);
  EXPECT_EQ(c.sites, synthetic::calm().size());
  EXPECT_EQ(c.singles, run.derived.singles.candidates.size());
  EXPECT_EQ(c.singles_run, c.singles);
  EXPECT_EQ(c.singles_fired, c.singles);
  EXPECT_EQ(c.pairs_run, run.derived.pairs.leaves);
  EXPECT_EQ(c.pairs_fired, c.pairs_run);
  EXPECT_GT(c.second_order, 0u);
  EXPECT_EQ(c.pairs, c.pairs_run + sum(c.skipped));
}

TEST(Coverage, DoesNotCountAFaultThatDidNotFire) {
  Explored run;
  run.outcomes.at({run.derived.singles.campaign, 1, 0}).fired = {false};
  run.outcomes.at({run.derived.singles.campaign, 2, 0}).fired = {true, false};
  const auto c = run.covered();
  EXPECT_EQ(c.singles_fired, c.singles_run - 1);
  EXPECT_EQ(c.pairs_fired, c.pairs_run - 1);
}

TEST(Coverage, AddsUpWhenLeavesAreMissingOrCameToNothing) {
  Explored run;
  const auto& campaign = run.derived.pairs.campaign;
  run.outcomes.erase({campaign, 2, 1});
  run.outcomes.erase({campaign, 2, 2});
  run.outcomes.at({campaign, 2, 3}).verdict = scenarios::Verdict::infra;
  run.outcomes.at({campaign, 1, 3}).verdict = scenarios::Verdict::infra;
  const auto c = run.covered();
  EXPECT_EQ(c.skipped.at("stopped"), 2u);
  EXPECT_EQ(c.skipped.at("infra"), 1u);
  EXPECT_EQ(c.pairs_run, run.derived.pairs.leaves - 3);
  EXPECT_EQ(c.pairs, c.pairs_run + sum(c.skipped));
  EXPECT_EQ(c.singles_run, c.singles - 1);
  EXPECT_NE(coverage_line(c).find("1 single fault without a verdict on the services"), std::string::npos)
      << coverage_line(c);
}

TEST(Coverage, TellsFaultsThatTheBudgetLeftOutFromThoseThatCameToNothing) {
  Explored run;
  const auto& singles = run.derived.singles;
  const auto last = singles.leaves - 1;
  run.outcomes.erase({singles.campaign, 1, last});
  run.outcomes.erase({singles.campaign, 1, last - 1});
  run.outcomes.at({singles.campaign, 1, 0}).verdict = scenarios::Verdict::infra;
  run.epochs[1].leaves = last - 1;
  const auto line = coverage_line(run.covered());
  EXPECT_NE(line.find("2 single faults that the budget had no leaf for"), std::string::npos) << line;
  EXPECT_NE(line.find("1 single fault without a verdict on the services"), std::string::npos) << line;
  const auto whole = coverage_line(Explored().covered());
  EXPECT_EQ(whole.find("the budget had no leaf for"), std::string::npos) << whole;
}

TEST(Coverage, NamesChoicesThatNothingFitted) {
  Explored run;
  const auto c = run.covered();
  const std::string missing = "faults at shop open: never seen in a baseline";  // only /etc/hosts was opened
  EXPECT_EQ(std::count(c.not_covered.begin(), c.not_covered.end(), missing), 1);
  run.epochs[1].ever.push_back({{"shop", "open", "data:lock"}, 1});
  const auto shaky = coverage(run.scenario, run.epochs, run.outcomes);
  EXPECT_EQ(
      std::count(shaky.not_covered.begin(), shaky.not_covered.end(), "faults at shop open: not seen in every baseline"),
      1);
}

TEST(Coverage, SaysThatPairsWereNotAskedFor) {
  Explored run;
  run.scenario.explore.at_once = 1;
  run.epochs.pop_back();
  const auto c = run.covered();
  EXPECT_EQ(c.pairs, 0u);
  const auto line = coverage_line(c);
  EXPECT_NE(line.find("two faults at once (explore.at-once is 1)"), std::string::npos) << line;
  EXPECT_EQ(line.find("ordered pair"), std::string::npos) << line;
}

TEST(Coverage, SaysThatPairsWereNotReached) {
  Explored run;
  run.epochs.pop_back();
  EXPECT_NE(coverage_line(run.covered()).find("two faults at once: the campaign ended before they were planned"),
            std::string::npos);
}

TEST(CoverageLine, IsHonest) {
  Coverage c;
  c.baselines = 3;
  c.singles = c.singles_run = 64;
  c.singles_fired = 61;
  c.pairs = 1204;
  c.pairs_run = 336;
  c.pairs_fired = 310;
  c.second_order = 12;
  c.skipped = {{"symmetric", 620}, {"unreachable_after", 200}, {"budget", 48}};
  c.not_covered = {"orders of messages"};
  EXPECT_EQ(coverage_line(c),
            "covered: 3 baselines; 64/64 single faults (61 fired); 336/1204 ordered pairs run (310 with both fired, 12 "
            "second-order); pairs not run: 48 budget, 620 symmetric, 200 unreachable_after. Not explored: orders of "
            "messages.");
}

TEST(CoverageValue, CarriesEveryNumber) {
  const auto value = to_value(Explored().covered());
  EXPECT_EQ(value["baselines"], 3);
  EXPECT_EQ(value["pairs"]["known"].get<std::uint64_t>(),
            value["pairs"]["run"].get<std::uint64_t>() +
                sum(value["pairs"]["skipped"].get<std::map<std::string, std::uint64_t>>()));
  EXPECT_FALSE(value["not_covered"].empty());
}

}  // namespace
}  // namespace leafcutter::coordinator
