#include "coordinator/campaign/findings.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "coordinator/minimize/minimize.hpp"

namespace leafcutter::coordinator {
namespace {

constexpr std::size_t most_exemplars = 3;

// The lower, the better it tells the finding.
auto rank(const Conclusion& c) { return std::tuple(!c.confirmed, c.plan.faults.size(), c.leaf, c.property); }

Finding told_by(const Conclusion& c, const std::string& of) {
  Finding finding;
  finding.signature = of;
  finding.property = c.property;
  finding.message = c.message;
  finding.leaf = c.leaf;
  finding.plan = c.plan;
  finding.one_minimal = c.one_minimal;
  finding.runs = c.runs;
  finding.fails = c.fails;
  finding.control_passed = c.control_passed;
  finding.confirmed = c.confirmed;
  finding.failing_execution = c.failing_execution;
  finding.passing_execution = c.passing_execution;
  return finding;
}

}  // namespace

std::map<std::string, Finding> merge(const std::vector<ConcludedGroup>& groups) {
  std::map<std::string, const Conclusion*> best;
  std::map<std::string, std::set<scenarios::Address>> seen;
  for (const auto& [group, conclusion] : groups) {
    const auto of = signature(conclusion->property, conclusion->plan);
    const auto [place, fresh] = best.try_emplace(of, conclusion);
    if (!fresh && rank(*conclusion) < rank(*place->second)) place->second = conclusion;
    for (const auto* failures : {&group->members, &group->attributed})
      for (const auto& failure : *failures) seen[of].insert(failure.address);
  }
  std::map<std::string, Finding> findings;
  for (const auto& [of, conclusion] : best) {
    auto finding = told_by(*conclusion, of);
    finding.seen = seen[of].size();
    for (const auto& address : seen[of])
      if (finding.exemplars.size() < most_exemplars) finding.exemplars.push_back(address.text());
    findings.emplace(of, std::move(finding));
  }
  return findings;
}

bool same_finding(const Finding& a, const Finding& b) {
  const auto told = [](const Finding& f) {
    return std::tie(f.signature, f.property, f.message, f.leaf, f.exemplars, f.seen, f.plan, f.one_minimal, f.runs,
                    f.fails, f.control_passed, f.confirmed, f.failing_execution, f.passing_execution);
  };
  return told(a) == told(b);
}

Conclusion conclude_baseline(const FailureGroup& group, const std::vector<const Result*>& baselines) {
  const auto& first = group.members.front();
  Conclusion c;
  c.property = group.property;
  c.leaf = first.address;
  c.plan = first.plan;
  c.one_minimal = true;
  Confirmation test;
  for (const auto* result : baselines) {
    const auto properties = violated(*result);
    const bool fails = std::find(properties.begin(), properties.end(), group.property) != properties.end();
    test.add(fails);
    if (!fails && result->verdict == scenarios::Verdict::pass && c.passing_execution.empty())
      c.passing_execution = result->execution;
    if (!fails || !c.failing_execution.empty()) continue;
    c.failing_execution = result->execution;
    for (const auto& violation : result->violations)
      if (violation.property == group.property && c.message.empty()) c.message = violation.message;
    if (c.message.empty()) c.message = result->detail;
  }
  c.runs = test.runs();
  c.fails = test.fails();
  c.confirmed = test.state() == Confirmation::State::confirmed;
  return c;
}

}  // namespace leafcutter::coordinator
