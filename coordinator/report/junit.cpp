#include <algorithm>
#include <cstdio>

#include "coordinator/report/markup.hpp"
#include "coordinator/report/report.hpp"
#include "coordinator/report/tally.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Verdict;

/// One testcase: a property, with what is to be said of it.
struct Case {
  std::string name;
  std::string element;  ///< "failure", "error" or empty: it held
  std::string type, message, text;
};

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

std::string finding_text(const Finding& finding) {
  if (!finding.explanation.empty()) return joined(finding.explanation);
  return finding.message + "\nleafcutter replay " + finding.leaf.text() + "\n";
}

/// Failing leaves of a property that no finding speaks of.
std::string failing_leaves(const CampaignReport& report, const std::string& property) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& result : report.results) {
    if (result.verdict != Verdict::fail) continue;
    for (const auto& violation : result.violations)
      if (violation.property == property) {
        if (shown++ < 10) text += violation.message + "\n  leafcutter replay " + result.address + "\n";
        break;
      }
  }
  if (shown > 10) text += "and " + std::to_string(shown - 10) + " more leaves\n";
  return text;
}

Case property_case(const CampaignReport& report, const std::string& property, bool anything_decided) {
  Case result{property, "", "", "", ""};
  for (const auto& finding : report.findings) {
    if (finding.property != property) continue;
    result.element = "failure";
    result.type = "finding";
    result.message += (result.message.empty() ? "" : "; ") + finding.message + " (" + rate_text(finding) + ", " +
                      finding.leaf.text() + ")";
    result.text += (result.text.empty() ? "" : "\n") + finding_text(finding);
  }
  if (!result.element.empty()) return result;
  if (const auto leaves = failing_leaves(report, property); !leaves.empty())
    return {property, "failure", "unconfirmed", "violated in some leaves, not confirmed", leaves};
  if (!anything_decided) return {property, "error", "undecided", outcome_text(report), ""};
  return result;
}

/// A campaign whose leaves were not all decided must not look green.
std::vector<Case> undecided_case(const CampaignReport& report) {
  std::string text;
  const auto counts = tally(report);
  for (const auto& reason : scenarios::reasons()) {
    const auto found = counts.by_reason.find(reason.reason);
    const auto verdict = scenarios::verdict_of(reason.reason);
    if (found == counts.by_reason.end() || verdict == Verdict::pass || verdict == Verdict::fail) continue;
    text += std::to_string(found->second) + " " + reason.name + ": " + reason.about + " " + reason.what_to_do + "\n";
  }
  if (text.empty() && counts.total > 0) return {};
  return {{"every leaf was decided", "error", "undecided", outcome_text(report), text}};
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + escape(value) + "\"";
}

std::string testcase(const Case& test, const std::string& classname) {
  auto xml = "    <testcase" + attribute("classname", classname) + attribute("name", test.name) + " time=\"0\"";
  if (test.element.empty()) return xml + "/>\n";
  xml += ">\n      <" + test.element + attribute("message", test.message) + attribute("type", test.type) + ">" +
         escape(test.text) + "</" + test.element + ">\n    </testcase>\n";
  return xml;
}

std::string seconds(std::int64_t ms) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%lld.%03lld", static_cast<long long>(ms / 1000),
                static_cast<long long>(ms % 1000));
  return buffer;
}

}  // namespace

std::string junit_report(const CampaignReport& report) {
  const auto counts = tally(report);
  const bool anything_decided = counts.by_verdict.at(Verdict::pass) + counts.by_verdict.at(Verdict::fail) > 0;
  std::vector<Case> cases;
  for (const auto& property : report.scenario.properties)
    cases.push_back(property_case(report, property.name, anything_decided));
  cases.push_back(property_case(report, "expectations", anything_decided));
  // A finding of the campaign itself, which no property of the scenario speaks of.
  for (const auto& finding : report.findings)
    if (std::none_of(cases.begin(), cases.end(), [&](const Case& known) { return known.name == finding.property; }))
      cases.push_back(property_case(report, finding.property, anything_decided));
  for (auto& extra : undecided_case(report)) cases.push_back(std::move(extra));

  std::size_t failures = 0, errors = 0;
  std::string body;
  for (const auto& test : cases) {
    failures += test.element == "failure" ? 1 : 0;
    errors += test.element == "error" ? 1 : 0;
    body += testcase(test, "leafcutter." + report.scenario.name);
  }
  const auto numbers = attribute("tests", std::to_string(cases.size())) +
                       attribute("failures", std::to_string(failures)) + attribute("errors", std::to_string(errors));
  const auto time = attribute("time", seconds(report.elapsed_ms));
  std::string properties;
  const std::pair<const char*, std::string> facts[] = {{"campaign", report.campaign.name},
                                                       {"seed", std::to_string(report.campaign.seed)},
                                                       {"variant", report.campaign.variant},
                                                       {"scenario_file", report.campaign.scenario_file},
                                                       {"leaves", std::to_string(counts.total)},
                                                       {"executions", std::to_string(report.executions)},
                                                       {"coverage", coverage_line(report.coverage)},
                                                       {"result_digest", report.digest},
                                                       {"exit_code", std::to_string(exit_code(report))}};
  for (const auto& [name, value] : facts)
    properties += "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + attribute("name", "leafcutter") + numbers + time +
         ">\n  <testsuite" + attribute("name", report.scenario.name) + numbers + attribute("skipped", "0") + time +
         ">\n    <properties>\n" + properties + "    </properties>\n" + body + "  </testsuite>\n</testsuites>\n";
}

}  // namespace leafcutter::coordinator
