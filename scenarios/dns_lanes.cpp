#include "scenarios/dns_lanes.hpp"

#include "scenarios/reach.hpp"

namespace leafcutter::scenarios {

std::string dns_lane(const std::string& service) { return service + " -> " + resolver_name; }

std::set<std::string> services_that_ask(const Scenario& scenario, const Plan& plan) {
  std::set<std::string> asking;
  for (const auto& service : scenario.services)
    if (can_strike(scenario, plan, dns_lane(service.name), query_operation)) asking.insert(service.name);
  return asking;
}

}  // namespace leafcutter::scenarios
