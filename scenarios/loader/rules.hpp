// `rules` of a scenario: read for each service, or for each link, that their `on` names.
#pragma once

#include <string>
#include <vector>

#include "scenarios/fault_kinds.hpp"
#include "scenarios/link_rule.hpp"
#include "scenarios/loader/loading.hpp"

namespace leafcutter::scenarios::loading {

/// What the `on` of a list of rules stands for.
struct RuleTargets {
  std::vector<std::string> services;
  std::vector<Link> links;
  std::vector<Parting> between;
};

void load_rules(Loading& loading, const Node& list, const RuleTargets& targets);

/// Which names an event pattern may use in this scenario.
EventScope event_scope(const Scenario& scenario);

/// Calls of this family of the service become events.
void observe_family(Scenario& scenario, const std::string& service, const std::string& family);

void warn_of_crash(Loading& loading, const Node& at, const FaultKind& kind, const std::string& lane);

}  // namespace leafcutter::scenarios::loading
