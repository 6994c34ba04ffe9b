#include "scenarios/loader/rules.hpp"

#include <algorithm>
#include <utility>

#include "scenarios/dns_lanes.hpp"
#include "scenarios/rule.hpp"

namespace leafcutter::scenarios::loading {
namespace {

class RuleListReader {
 public:
  RuleListReader(Loading& loading, const RuleTargets& targets) : loading_(loading), targets_(targets) {}

  void read(const Node& item) {
    // Where only links are named, what does not look like a system call is a rule of links with a mistake in it.
    const bool no_services = targets_.services.empty() && !(targets_.links.empty() && targets_.between.empty());
    const auto first = item.text.find_first_of(" \t=");
    const bool looks_like_call = first != std::string::npos && item.text[first] == '=';
    if (names_link_kind(item.text) || (no_services && !looks_like_call)) return read_of_links(item);
    if (no_services)
      return wrong(item, {"it strikes system calls, and \"on\" names no service; write on: SERVICE, or a fault of "
                          "links such as latency:50ms",
                          0, item.text.size()});
    for (const auto& service : targets_.services)
      if (!read_of(item, service)) break;  // the next service's mistake is the same one
  }

 private:
  void wrong(const Node& item, const Mistake& mistake) {
    const auto [line, column] = loading_.place_within(item, mistake.at);
    loading_.notes.error(line, column, "rule \"" + item.text + "\": " + mistake.message);
  }

  void keep(Fault rule) {
    auto& rules = loading_.scenario.explore.rules;
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(std::move(rule));
  }

  bool read_of(const Node& item, const std::string& service) {
    RuleScope scope;
    scope.lane = service;
    scope.services = targets_.services;
    scope.events = event_scope(loading_.scenario);
    Mistake mistake;
    auto rule = read_rule(item.text, scope, mistake);
    if (!rule) {
      wrong(item, mistake);
      return false;
    }
    for (const auto& family : families_of(*rule)) observe_family(loading_.scenario, rule->site.lane, family);
    const auto& known = loading_.scenario.explore.rules;
    if (std::find(known.begin(), known.end(), *rule) != known.end()) return true;
    warn_of_crash(loading_, item, *fault_kind(rule->kind), rule->site.lane);
    keep(std::move(*rule));
    return true;
  }

  void read_of_links(const Node& item) {
    LinkRuleScope scope;
    scope.links = targets_.links;
    scope.between = targets_.between;
    scope.events = event_scope(loading_.scenario);
    Mistake mistake;
    auto rules = read_link_rule(item.text, scope, mistake);
    if (!rules) return wrong(item, mistake);
    for (auto& rule : *rules) keep(std::move(rule));
  }

  Loading& loading_;
  const RuleTargets& targets_;
};

}  // namespace

void load_rules(Loading& loading, const Node& list, const RuleTargets& targets) {
  RuleListReader reader(loading, targets);
  for (const auto& item : list.items) {
    if (!item.is_scalar() || item.text.empty()) continue;
    if (loading.comment_follows(item))
      loading.notes.error(
          item, "YAML takes what follows \" #\" for a comment; write the rule in quotes: \"" + item.text + " #...\"");
    else
      reader.read(item);
  }
}

EventScope event_scope(const Scenario& scenario) {
  EventScope scope;
  scope.services = service_names(scenario);
  scope.services.emplace_back(workload_lane);
  scope.lanes = scope.services;
  scope.lanes.emplace_back("leaf");
  for (const auto& link : scenario.links) scope.lanes.push_back(link.id());
  for (const auto& asking : scenario.services) scope.lanes.push_back(dns_lane(asking.name));
  return scope;
}

void observe_family(Scenario& scenario, const std::string& service, const std::string& family) {
  auto& families = scenario.explore.observe[service];
  if (syscall_family(family) != nullptr && std::find(families.begin(), families.end(), family) == families.end())
    families.push_back(family);
}

void warn_of_crash(Loading& loading, const Node& at, const FaultKind& kind, const std::string& lane) {
  if (kind.kills && loading.scenario.service(lane)->restart.on == RestartPolicy::On::never)
    loading.notes.warning(at,
                          "service \"" + lane + "\" is never restarted: after a crash it stays down (see \"restart\")");
}

}  // namespace leafcutter::scenarios::loading
