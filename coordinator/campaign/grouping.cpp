#include "coordinator/campaign/grouping.hpp"

#include <algorithm>
#include <tuple>

#include "coordinator/minimize/minimize.hpp"

namespace leafcutter::coordinator {
namespace {

bool same_place(const scenarios::Fault& a, const scenarios::Fault& b) {
  return a.kind == b.kind && a.site == b.site && a.params == b.params && a.aim == b.aim;
}

/// Each fault of the smaller plan has one of the same kind at the same site in the larger. Occurrences do not matter: a
/// fault that makes a service try again moves what was its third visit to the fourth, and the defect stays the same.
bool contains(const Plan& larger, const Plan& smaller) {
  if (larger.faults.size() <= smaller.faults.size()) return false;
  std::vector<bool> taken(larger.faults.size(), false);
  return std::all_of(smaller.faults.begin(), smaller.faults.end(), [&](const auto& fault) {
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (!taken[i] && same_place(larger.faults[i], fault)) {
        taken[i] = true;
        return true;
      }
    return false;
  });
}

}  // namespace

std::vector<std::string> violated(const Result& result) {
  std::vector<std::string> properties;
  if (result.verdict != scenarios::Verdict::fail) return properties;
  for (const auto& violation : result.violations)
    if (std::find(properties.begin(), properties.end(), violation.property) == properties.end())
      properties.push_back(violation.property);
  if (properties.empty()) properties.emplace_back(scenarios::name(result.reason));  // a FAIL that is of no property
  return properties;
}

bool FailureGroups::add(std::vector<Failure> failures) {
  std::sort(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) {
    return std::tuple(a.plan.faults.size(), a.address, a.property) <
           std::tuple(b.plan.faults.size(), b.address, b.property);
  });
  std::vector<FailureGroup*> opened;
  for (auto& failure : failures) {
    if (auto* known = explaining(failure)) {
      known->attributed.push_back(std::move(failure));
      continue;
    }
    const auto [place, fresh] = groups_.try_emplace(signature(failure.property, failure.plan));
    auto& group = place->second;
    if (fresh) {
      group.property = failure.property;
      opened.push_back(&group);
    }
    group.members.push_back(std::move(failure));
  }
  for (auto* group : opened) group->candidates = group->members.size();
  return !failures.empty();
}

FailureGroup* FailureGroups::explaining(const Failure& failure) {
  for (auto& [provisional, group] : groups_)
    if (group.property == failure.property &&
        std::any_of(group.members.begin(), group.members.end(),
                    [&](const Failure& member) { return contains(failure.plan, member.plan); }))
      return &group;
  return nullptr;
}

}  // namespace leafcutter::coordinator
