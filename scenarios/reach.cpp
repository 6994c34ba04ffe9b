#include "scenarios/reach.hpp"

#include <algorithm>

namespace leafcutter::scenarios {

bool can_strike(const Scenario& scenario, const Plan& plan, const std::string& lane, std::string_view operation) {
  const auto here = [&](const auto& site) { return site.lane == lane && site.operation == operation; };
  return std::any_of(scenario.explore.faults.begin(), scenario.explore.faults.end(), here) ||
         std::any_of(plan.faults.begin(), plan.faults.end(), [&](const auto& fault) { return here(fault.site); });
}

}  // namespace leafcutter::scenarios
