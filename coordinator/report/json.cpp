#include "coordinator/ledger/result_codec.hpp"
#include "coordinator/report/report.hpp"
#include "coordinator/report/tally.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::coordinator {
namespace {

/// What the ledger keeps of it, made for readers: the faults also as text, the explanation in one piece, how to replay.
/// The names of executions are the ledger's own.
Value reported(const Finding& finding) {
  auto value = to_value(finding);
  value.erase("failing_execution");
  value.erase("passing_execution");
  auto& faults = value["plan"]["faults"];
  for (std::size_t i = 0; i < finding.plan.faults.size(); ++i) faults[i]["text"] = finding.plan.faults[i].text();
  std::string explanation;
  for (std::size_t i = 0; i < finding.explanation.size(); ++i)
    explanation += (i > 0 ? "\n" : "") + finding.explanation[i];
  value["explanation"] = std::move(explanation);
  value["rate"] = finding.runs > 0 ? Value(static_cast<double>(finding.fails) / finding.runs) : Value(nullptr);
  value["replay"] = "leafcutter replay " + finding.leaf.text();
  return value;
}

}  // namespace

Value json_report(const CampaignReport& report) {
  const auto counts = tally(report);
  auto by_verdict = Value::object(), by_reason = Value::object(), findings = Value::array();
  for (const auto& [verdict, count] : counts.by_verdict) by_verdict[std::string(scenarios::name(verdict))] = count;
  for (const auto& [reason, count] : counts.by_reason) by_reason[std::string(scenarios::name(reason))] = count;
  for (const auto& finding : report.findings) findings.push_back(reported(finding));
  auto outside = Value::array();
  for (const auto& way : report.scenario.ways_out) outside.push_back(scenarios::way_out_text(way));
  const Value value = {{"campaign", report.campaign.name},
                       {"scenario", report.scenario.name},
                       {"scenario_file", report.campaign.scenario_file},
                       {"identity", report.campaign.identity},
                       {"variant", report.campaign.variant},
                       {"seed", report.campaign.seed},
                       {"state", report.campaign.state},
                       {"leaves", {{"total", counts.total}, {"by_verdict", by_verdict}, {"by_reason", by_reason}}},
                       {"coverage", to_value(report.coverage)},
                       {"egress", outside},
                       {"result_digest", report.digest},
                       {"findings", findings},
                       {"executions", report.executions},
                       {"elapsed_ms", report.elapsed_ms},
                       {"interrupted", report.interrupted},
                       {"exit_code", exit_code(report)}};
  // Through text once: whatever services wrote, the document can be dumped.
  return Value::parse(dump(value));
}

}  // namespace leafcutter::coordinator
