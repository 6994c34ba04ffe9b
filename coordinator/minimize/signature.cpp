#include <algorithm>

#include "base/digest.hpp"
#include "coordinator/minimize/minimize.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::coordinator {
namespace {

// Where exactly a fault strikes, and how a service is killed, does not make another defect.
scenarios::Value group_of(const scenarios::Fault& fault) {
  const auto* kind = scenarios::fault_kind(fault.kind);
  if (kind != nullptr && kind->kills) return {"crash", fault.site.lane};
  return {fault.kind, fault.site.lane, fault.site.operation};
}

}  // namespace

std::string signature(const std::string& property, const scenarios::Plan& minimal) {
  std::vector<scenarios::Value> groups;
  for (const auto& fault : minimal.faults) groups.push_back(group_of(fault));
  std::sort(groups.begin(), groups.end());
  return base::sha256(scenarios::Value{property, groups}.dump()).substr(0, 12);
}

}  // namespace leafcutter::coordinator
