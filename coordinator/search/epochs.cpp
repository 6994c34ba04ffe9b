#include "coordinator/search/epochs.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/digest.hpp"
#include "base/random.hpp"
#include "coordinator/search/candidates.hpp"
#include "coordinator/search/shuffle.hpp"

namespace leafcutter::coordinator {
namespace {

using Counts = std::map<scenarios::Site, std::uint32_t>;

std::vector<SiteCount> as_list(const Counts& counts) {
  std::vector<SiteCount> list;
  for (const auto& [site, count] : counts) list.push_back({site, count});
  return list;
}

Counts as_counts(const std::vector<SiteCount>& list) {
  Counts counts;
  for (const auto& [site, count] : list) counts[site] = std::max(counts[site], count);
  return counts;
}

// Sites of every baseline with the least count, and of any baseline with the greatest.
void fold_baselines(const std::vector<LeafOutcome>& outcomes, EpochHeader& header) {
  Counts stable, ever;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto seen = as_counts(outcomes[i].sites);
    for (const auto& [site, count] : seen) ever[site] = std::max(ever[site], count);
    if (i == 0) stable = seen;
    std::erase_if(stable, [&](const auto& entry) { return !seen.contains(entry.first); });
    for (auto& [site, count] : stable) count = std::min(count, seen.at(site));
  }
  header.sites = as_list(stable);
  header.ever = as_list(ever);
}

// Every candidate in an order that depends on the scenario alone; a fault that two choices name is one candidate.
std::vector<Fault> all_candidates(const Scenario& scenario, const std::vector<SiteCount>& sites) {
  std::vector<Fault> candidates;
  std::set<Fault, FaultLess> known;
  for (const auto& choice : scenario.explore.faults)
    for (const auto& [site, count] : sites)
      for (auto& fault : faults_at({choice}, site, 1, std::min(count, scenario.explore.occurrences)))
        if (known.insert(fault).second) candidates.push_back(std::move(fault));
  return candidates;
}

// Low occurrences first; among equals one of each (kind, lane, operation) a round, each round shuffled.
std::vector<Fault> spread(const std::vector<Fault>& candidates, base::Stream& stream) {
  std::map<std::uint32_t, std::map<std::tuple<std::string, std::string, std::string>, std::vector<Fault>>> ranks;
  for (const auto& fault : candidates)
    ranks[fault.occurrence][{fault.kind, fault.site.lane, fault.site.operation}].push_back(fault);
  std::vector<Fault> order;
  for (auto& [occurrence, classes] : ranks) {
    std::size_t longest = 0;
    for (auto& [name, faults] : classes) {
      shuffle(faults, stream);
      longest = std::max(longest, faults.size());
    }
    for (std::size_t i = 0; i < longest; ++i) {
      std::vector<Fault> round;
      for (const auto& [name, faults] : classes)
        if (i < faults.size()) round.push_back(faults[i]);
      shuffle(round, stream);
      order.insert(order.end(), round.begin(), round.end());
    }
  }
  return order;
}

/// What the user wrote as rules, in that order, after what the search found. A rule that draws gets a seed of its own
/// here, once: its leaf and all of its pairs draw alike, so that what a pair shows is not another draw.
void append_rules(const Scenario& scenario, EpochHeader& header) {
  const auto key = header.key();
  for (std::size_t i = 0; i < scenario.explore.rules.size(); ++i) {
    auto rule = scenario.explore.rules[i];
    if (rule.aim->per_million < 1'000'000) rule.aim->seed = base::Stream(key, "rule", i).next();
    header.candidates.push_back(std::move(rule));
  }
}

}  // namespace

EpochHeader baseline_epoch(const Scenario& scenario, const std::string& identity) {
  EpochHeader header;
  header.campaign = campaign_name(scenario, identity);
  header.seed = scenario.explore.seed;
  header.variant = scenario.variant;
  header.scenario = identity;
  header.leaves = baseline_leaves;
  return header;
}

EpochHeader singles_epoch(const Scenario& scenario, const EpochHeader& baseline,
                          const std::vector<LeafOutcome>& outcomes, std::uint64_t budget) {
  auto header = baseline;
  header.number = baseline.number + 1;
  header.kind = EpochKind::singles;
  header.leaves = 0;
  fold_baselines(outcomes, header);
  header.candidates = all_candidates(scenario, header.sites);
  // The key of the header with its candidates still unshuffled: it cannot depend on the order that it decides.
  base::Stream stream(header.key(), "singles", 0);
  header.candidates = spread(header.candidates, stream);
  append_rules(scenario, header);
  header.leaves = std::min<std::uint64_t>(header.candidates.size(), budget);
  if (const auto rest = header.candidates.size() - header.leaves; rest > 0)
    header.skipped[std::string(name(PairSkip::budget))] = rest;
  return header;
}

Plan plan_of(const EpochHeader& header, std::uint64_t index) {
  Plan plan;
  plan.variant = header.variant;
  switch (header.kind) {
    case EpochKind::baseline: break;
    case EpochKind::singles: plan.faults.push_back(header.candidates.at(index)); break;
    case EpochKind::pairs: {
      const auto [first, second] = header.pairs.at(index);
      plan.faults = {header.candidates.at(first), header.candidates.at(second)};
      break;
    }
  }
  return plan;
}

std::string campaign_name(const Scenario& scenario, const std::string& identity) {
  const auto& explore = scenario.explore;
  const Value about = {identity, explore.seed, explore.max_leaves, explore.at_once, explore.occurrences};
  return base::sha256(about.dump(-1, ' ', false, Value::error_handler_t::replace)).substr(0, 8);
}

std::uint64_t EpochHeader::key() const { return base::split_mix(seed ^ base::fnv1a(digest())); }

std::string EpochHeader::digest() const {
  return base::sha256(to_value(*this).dump(-1, ' ', false, Value::error_handler_t::replace));
}

}  // namespace leafcutter::coordinator
