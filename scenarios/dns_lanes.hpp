// Where faults of name resolution strike: a service that may be struck there asks a resolver of the leaf instead of its
// hosts file, and that is a lane of its own.
#pragma once

#include <set>
#include <string>

#include "scenarios/model.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::scenarios {

/// The operation of the lane's sites; their resource is name and type, "broker A".
inline constexpr const char* query_operation = "query";

/// What no service may be called that is struck there: the other end of its lane.
inline constexpr const char* resolver_name = "dns";

/// "shop -> dns".
std::string dns_lane(const std::string& service);

/// The services whose names are resolved by the resolver: those that the scenario explores DNS faults of, so that its
/// baseline shows the sites, and those that the plan strikes.
std::set<std::string> services_that_ask(const Scenario& scenario, const Plan& plan);

}  // namespace leafcutter::scenarios
