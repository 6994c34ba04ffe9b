#include "node/syscalls/filter_plan.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

using scenarios::Fault;

/// Every call that `fault` has something to do with.
std::set<std::string> calls_met_by(const Fault& fault) {
  std::vector<std::string> families = {fault.site.operation};
  if (const auto* kind = scenarios::fault_kind(fault.kind))
    families.insert(families.end(), kind->watches.begin(), kind->watches.end());
  std::set<std::string> calls;
  for (const auto& name : families)
    if (const auto* family = scenarios::syscall_family(name)) calls.insert(family->calls.begin(), family->calls.end());
  return calls;
}

bool meets_another(const scenarios::Plan& plan, std::size_t index, const std::vector<std::string>& calls) {
  const auto& lane = plan.faults[index].site.lane;
  for (std::size_t other = 0; other < plan.faults.size(); ++other) {
    if (other == index || plan.faults[other].site.lane != lane) continue;
    const auto met = calls_met_by(plan.faults[other]);
    if (std::ranges::any_of(calls, [&](const auto& call) { return met.contains(call); })) return true;
  }
  return false;
}

}  // namespace

FilterPlan filter_plan(const scenarios::Plan& plan, const std::string& lane, std::vector<std::string> families,
                       scenarios::Scope scope) {
  FilterPlan filter{.families = std::move(families)};
  for (std::size_t index = 0; index < plan.faults.size(); ++index) {
    if (plan.faults[index].site.lane != lane) continue;
    const auto rule = scenarios::kernel_rule(plan.faults[index], scope);
    if (rule.calls.empty() || meets_another(plan, index, rule.calls)) continue;
    for (const auto& call : rule.calls) filter.answers.emplace(call, rule.error);
    filter.in_kernel.push_back({index, rule.calls});
  }
  return filter;
}

void record_in_kernel(const FilterPlan& filter, SiteBook& sites) {
  for (const auto& [fault, calls] : filter.in_kernel) {
    if (sites.has_fired(fault)) continue;
    const auto& error = sites.plan().faults.at(fault).params.at("error");
    sites.fired(fault, {{"decided", "in the kernel: in force from the start, not counted"},
                        {"calls", calls},
                        {"errno", filter.answers.at(calls.front())},
                        {"errno_name", error}});
  }
}

}  // namespace leafcutter::node
