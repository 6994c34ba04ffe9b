#include "coordinator/campaign/grouping.hpp"

#include <algorithm>
#include <tuple>

#include "coordinator/minimize/minimize.hpp"

namespace leafcutter::coordinator {
namespace {

bool contains(const Plan& larger, const Plan& smaller) {
  return larger.faults.size() > smaller.faults.size() &&
         std::all_of(smaller.faults.begin(), smaller.faults.end(), [&](const auto& fault) {
           return std::find(larger.faults.begin(), larger.faults.end(), fault) != larger.faults.end();
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
