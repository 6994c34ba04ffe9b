// What a leaf's faults can reach: a site that nothing can strike need not be watched, nor visited.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/model.hpp"

namespace leafcutter::scenarios {

/// Whether the search may choose a fault for that operation of the lane, or the plan has one.
bool can_strike(const Scenario& scenario, const Plan& plan, const std::string& lane, std::string_view operation);

}  // namespace leafcutter::scenarios
