#include <algorithm>
#include <tuple>

#include "coordinator/campaign/inquiry.hpp"

namespace leafcutter::coordinator {
namespace {

bool has(const Plan& plan, const Fault& fault) {
  return std::find(plan.faults.begin(), plan.faults.end(), fault) != plan.faults.end();
}

std::size_t missing(const Plan& from, const Plan& of) {
  return static_cast<std::size_t>(
      std::count_if(of.faults.begin(), of.faults.end(), [&](const auto& f) { return !has(from, f); }));
}

// The lower, the nearer.
auto distance(const Plan& failing, const Evidence& evidence) {
  const auto extra = missing(failing, evidence.plan);
  // Of two parts of equal size, the one whose run goes the failing one's way for longer: it has the earlier faults.
  std::size_t kept_until = 0;
  while (kept_until < failing.faults.size() && has(evidence.plan, failing.faults[kept_until])) ++kept_until;
  return std::tuple(evidence.result->trace.empty(), evidence.result->reason != scenarios::Reason::held, extra > 0,
                    extra + missing(evidence.plan, failing), failing.faults.size() - kept_until);
}

}  // namespace

const Evidence* nearest_passing(const Plan& failing, const std::vector<Evidence>& evidence) {
  const Evidence* nearest = nullptr;
  for (const auto& one : evidence) {
    if (one.result->verdict != scenarios::Verdict::pass || one.plan == failing) continue;
    if (nearest == nullptr || distance(failing, one) < distance(failing, *nearest)) nearest = &one;
  }
  return nearest;
}

}  // namespace leafcutter::coordinator
