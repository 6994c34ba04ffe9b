// The epochs of the synthetic scenario, each derived from what the one before showed.
#pragma once

#include <optional>
#include <vector>

#include "tests/coordinator/search/synthetic_service.hpp"

namespace leafcutter::coordinator::synthetic {

inline std::vector<LeafOutcome> run_all(const EpochHeader& epoch) {
  std::vector<LeafOutcome> outcomes;
  for (std::uint64_t i = 0; i < epoch.leaves; ++i) outcomes.push_back(outcome(plan_of(epoch, i)));
  return outcomes;
}

inline std::vector<std::optional<LeafOutcome>> some(const std::vector<LeafOutcome>& outcomes) {
  return {outcomes.begin(), outcomes.end()};
}

struct Epochs {
  EpochHeader baseline, singles, pairs;
};

inline Epochs derive(const Scenario& scenario) {
  Epochs e;
  e.baseline = baseline_epoch(scenario, "identity");
  auto budget = scenario.explore.max_leaves - e.baseline.leaves;
  e.singles = singles_epoch(scenario, e.baseline, run_all(e.baseline), budget);
  budget -= e.singles.leaves;
  e.pairs = pairs_epoch(scenario, e.singles, some(run_all(e.singles)), budget);
  return e;
}

}  // namespace leafcutter::coordinator::synthetic
