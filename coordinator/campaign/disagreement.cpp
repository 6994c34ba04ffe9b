#include "coordinator/campaign/disagreement.hpp"

#include "coordinator/judge/layout.hpp"
#include "coordinator/minimize/minimize.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Verdict;

constexpr std::size_t explained_columns = 100;

bool was_decided(const Result& result) { return result.verdict == Verdict::pass || result.verdict == Verdict::fail; }

std::string outcome_text(const Result& result) {
  auto text = std::string(scenarios::name(result.verdict)) + " (" + std::string(scenarios::name(result.reason)) + ")";
  if (!result.violations.empty()) text += ": " + result.violations.front().property;
  return text;
}

std::vector<std::string> explained(const Finding& finding) {
  std::vector<std::string> lines = {std::string("FAIL  ") + nondeterminism};
  for (const auto& line : wrap(finding.message, explained_columns - 6, 6)) lines.push_back("      " + line);
  lines.insert(lines.end(), {"", "Plan"});
  if (finding.plan.faults.empty()) lines.emplace_back("  no fault");
  for (const auto& fault : finding.plan.faults) lines.push_back(fit("  " + fault.text(), explained_columns));
  lines.insert(lines.end(),
               {"", "Replay, several times", "  leafcutter replay " + finding.leaf.text() + " --times 20"});
  return lines;
}

}  // namespace

std::optional<Finding> disagreement(const Result& first, const Result& second) {
  if (!was_decided(first) || !was_decided(second)) return std::nullopt;
  if (first.verdict == second.verdict && first.reason == second.reason) return std::nullopt;
  const auto address = scenarios::parse_address(first.address);
  if (!address) return std::nullopt;
  Finding finding;
  finding.signature = signature(nondeterminism, first.plan);
  finding.property = nondeterminism;
  finding.message = "the leaf ran twice, and gave " + outcome_text(first) + " first and " + outcome_text(second) +
                    " then" + (first.node == second.node ? "" : ", on " + first.node + " and " + second.node) +
                    ": something that was not controlled decides";
  finding.leaf = *address;
  finding.exemplars = {first.address};
  finding.plan = first.plan;
  finding.runs = 2;
  for (const auto* each : {&first, &second}) finding.fails += each->verdict == Verdict::fail ? 1 : 0;
  finding.confirmed = true;  // there is no more to it than that both happened
  (first.verdict == Verdict::fail ? finding.failing_execution : finding.passing_execution) = first.execution;
  finding.explanation = explained(finding);
  return finding;
}

}  // namespace leafcutter::coordinator
