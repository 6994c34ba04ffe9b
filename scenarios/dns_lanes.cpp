#include "scenarios/dns_lanes.hpp"

namespace leafcutter::scenarios {

std::string dns_lane(const std::string& service) { return service + " -> " + resolver_name; }

std::set<std::string> services_that_ask(const Scenario& scenario, const Plan& plan) {
  std::set<std::string> asking;
  for (const auto& service : scenario.services) {
    const auto lane = dns_lane(service.name);
    const auto strikes = [&](const auto& site) { return site.lane == lane && site.operation == query_operation; };
    for (const auto& choice : scenario.explore.faults)
      if (strikes(choice)) asking.insert(service.name);
    for (const auto& fault : plan.faults)
      if (strikes(fault.site)) asking.insert(service.name);
  }
  return asking;
}

}  // namespace leafcutter::scenarios
