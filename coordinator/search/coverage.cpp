#include <algorithm>

#include "coordinator/search/candidates.hpp"
#include "coordinator/search/epochs.hpp"
#include "scenarios/rule.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Address;
using ByAddress = std::map<Address, LeafOutcome>;

constexpr const char* stopped = "stopped";
constexpr const char* infra = "infra";

bool all_fired(const LeafOutcome& outcome) {
  return !outcome.fired.empty() &&
         std::all_of(outcome.fired.begin(), outcome.fired.end(), [](bool fired) { return fired; });
}

struct EpochTally {
  std::uint64_t run = 0, fired = 0, stopped = 0, infra = 0, second_order = 0;
};

EpochTally tally(const EpochHeader& epoch, const ByAddress& outcomes) {
  EpochTally tally;
  for (std::uint64_t i = 0; i < epoch.leaves; ++i) {
    const auto found = outcomes.find({epoch.campaign, epoch.number, i});
    if (found == outcomes.end())
      ++tally.stopped;
    else if (found->second.verdict == scenarios::Verdict::infra)
      ++tally.infra;
    else {
      ++tally.run;
      if (all_fired(found->second)) ++tally.fired;
      if (i < epoch.second_order.size() && epoch.second_order[i]) ++tally.second_order;
    }
  }
  return tally;
}

std::string counted(std::uint64_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

void add(std::map<std::string, std::uint64_t>& to, const std::string& reason, std::uint64_t count) {
  if (count > 0) to[reason] += count;
}

// Choices that no stable site fits: the user asked for them and would take silence for coverage.
void missing_choices(const Scenario& scenario, const EpochHeader& singles, std::vector<std::string>& not_covered) {
  std::vector<std::string> said;
  for (const auto& choice : scenario.explore.faults) {
    const auto fit = [&](const SiteCount& entry) { return fits(choice, entry.site); };
    if (std::any_of(singles.sites.begin(), singles.sites.end(), fit)) continue;
    auto what = choice.lane + " " + choice.operation;
    if (!choice.path_glob.empty()) what += " " + choice.path_glob;
    if (std::find(said.begin(), said.end(), what) != said.end()) continue;
    const bool unstable = std::any_of(singles.ever.begin(), singles.ever.end(), fit);
    not_covered.push_back("faults at " + what + ": " +
                          (unstable ? "not seen in every baseline" : "never seen in a baseline"));
    said.push_back(std::move(what));
  }
}

/// Rules that ran and never struck: what their author wanted to see was not seen.
void unfired_rules(const EpochHeader& singles, const ByAddress& outcomes, std::vector<std::string>& not_covered) {
  for (std::uint64_t i = 0; i < singles.leaves && i < singles.candidates.size(); ++i) {
    const auto& rule = singles.candidates[i];
    const auto found = outcomes.find({singles.campaign, singles.number, i});
    if (!rule.aim || found == outcomes.end() || found->second.verdict == scenarios::Verdict::infra) continue;
    if (!all_fired(found->second))
      not_covered.push_back("rule \"" + scenarios::rule_text(rule) + "\" of " + rule.site.lane + ": it never fired");
  }
}

// `singles_left`: candidates that no leaf was planned for.
void bounds(const Scenario& scenario, const Coverage& result, bool pairs_planned, std::uint64_t singles_left,
            std::vector<std::string>& not_covered) {
  const auto& explore = scenario.explore;
  if (explore.at_once < 2)
    not_covered.emplace_back("two faults at once (explore.at-once is 1)");
  else if (!pairs_planned)
    not_covered.emplace_back("two faults at once: the campaign ended before they were planned");
  if (explore.at_once >= 2) not_covered.emplace_back("three or more faults at once");
  not_covered.push_back("a site's visits after its " + (explore.occurrences == 1
                                                            ? std::string("first")
                                                            : "first " + std::to_string(explore.occurrences)));
  if (singles_left > 0)
    not_covered.push_back(counted(singles_left, "single fault", "single faults") + " that the budget had no leaf for");
  if (result.singles > result.singles_run + singles_left)
    not_covered.push_back(counted(result.singles - result.singles_run - singles_left, "single fault", "single faults") +
                          " without a verdict on the services");
  not_covered.emplace_back("orders of messages");
  not_covered.emplace_back("thread interleavings within a process");
}

}  // namespace

Coverage coverage(const Scenario& scenario, const std::vector<EpochHeader>& epochs, const ByAddress& outcomes) {
  Coverage result;
  const EpochHeader* singles = nullptr;
  bool pairs_planned = false;
  std::uint64_t singles_left = 0;
  for (const auto& epoch : epochs) {
    const auto counts = tally(epoch, outcomes);
    switch (epoch.kind) {
      case EpochKind::baseline: result.baselines += counts.run; break;
      case EpochKind::singles:
        singles = &epoch;
        result.sites = epoch.sites.size();
        result.singles += epoch.candidates.size();
        singles_left += epoch.candidates.size() - std::min<std::uint64_t>(epoch.candidates.size(), epoch.leaves);
        result.singles_run += counts.run;
        result.singles_fired += counts.fired;
        break;
      case EpochKind::pairs:
        pairs_planned = true;
        result.pairs += epoch.leaves;
        result.pairs_run += counts.run;
        result.pairs_fired += counts.fired;
        result.second_order += counts.second_order;
        for (const auto& [reason, count] : epoch.skipped) {
          result.pairs += count;
          add(result.skipped, reason, count);
        }
        add(result.skipped, stopped, counts.stopped);
        add(result.skipped, infra, counts.infra);
        break;
    }
  }
  if (singles) {
    missing_choices(scenario, *singles, result.not_covered);
    unfired_rules(*singles, outcomes, result.not_covered);
  }
  bounds(scenario, result, pairs_planned, singles_left, result.not_covered);
  return result;
}

std::string coverage_line(const Coverage& c) {
  auto line = "covered: " + counted(c.baselines, "baseline", "baselines") + "; " + std::to_string(c.singles_run) + "/" +
              counted(c.singles, "single fault", "single faults") + " (" + std::to_string(c.singles_fired) + " fired)";
  if (c.pairs > 0) {
    line += "; " + std::to_string(c.pairs_run) + "/" + counted(c.pairs, "ordered pair", "ordered pairs") + " run (" +
            std::to_string(c.pairs_fired) + " with both fired, " + std::to_string(c.second_order) + " second-order)";
    std::string reasons;
    for (const auto& [reason, count] : c.skipped)
      reasons += (reasons.empty() ? "" : ", ") + std::to_string(count) + " " + reason;
    if (!reasons.empty()) line += "; pairs not run: " + reasons;
  }
  line += ".";
  std::string rest;
  for (const auto& sentence : c.not_covered) rest += (rest.empty() ? "" : "; ") + sentence;
  if (!rest.empty()) line += " Not explored: " + rest + ".";
  return line;
}

Value to_value(const Coverage& c) {
  return {{"sites", c.sites},
          {"baselines", c.baselines},
          {"singles", {{"known", c.singles}, {"run", c.singles_run}, {"fired", c.singles_fired}}},
          {"pairs",
           {{"known", c.pairs},
            {"run", c.pairs_run},
            {"fired", c.pairs_fired},
            {"second_order", c.second_order},
            {"skipped", c.skipped}}},
          {"not_covered", c.not_covered}};
}

}  // namespace leafcutter::coordinator
