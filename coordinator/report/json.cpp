#include "coordinator/ledger/result_codec.hpp"
#include "coordinator/report/report.hpp"
#include "coordinator/report/tally.hpp"

namespace leafcutter::coordinator {
namespace {

Value fault_value(const scenarios::Fault& fault) {
  auto value = scenarios::to_value(fault);
  value["text"] = fault.text();
  return value;
}

Value finding_value(const Finding& finding) {
  std::string explanation;
  for (std::size_t i = 0; i < finding.explanation.size(); ++i)
    explanation += (i > 0 ? "\n" : "") + finding.explanation[i];
  auto faults = Value::array();
  for (const auto& fault : finding.plan.faults) faults.push_back(fault_value(fault));
  return {{"signature", finding.signature},
          {"property", finding.property},
          {"message", finding.message},
          {"leaf", finding.leaf.text()},
          {"exemplars", finding.exemplars},
          {"seen", finding.seen},
          {"runs", finding.runs},
          {"fails", finding.fails},
          {"rate", finding.runs > 0 ? Value(static_cast<double>(finding.fails) / finding.runs) : Value(nullptr)},
          {"confirmed", finding.confirmed},
          {"control_passed", finding.control_passed},
          {"one_minimal", finding.one_minimal},
          {"plan", {{"faults", faults}, {"schedule", finding.plan.schedule}, {"variant", finding.plan.variant}}},
          {"explanation", explanation},
          {"replay", "leafcutter replay " + finding.leaf.text()}};
}

}  // namespace

Value json_report(const CampaignReport& report) {
  const auto counts = tally(report);
  auto by_verdict = Value::object(), by_reason = Value::object(), findings = Value::array();
  for (const auto& [verdict, count] : counts.by_verdict) by_verdict[std::string(scenarios::name(verdict))] = count;
  for (const auto& [reason, count] : counts.by_reason) by_reason[std::string(scenarios::name(reason))] = count;
  for (const auto& finding : report.findings) findings.push_back(finding_value(finding));
  const Value value = {{"campaign", report.campaign.name},
                       {"scenario", report.scenario.name},
                       {"scenario_file", report.campaign.scenario_file},
                       {"identity", report.campaign.identity},
                       {"variant", report.campaign.variant},
                       {"seed", report.campaign.seed},
                       {"state", report.campaign.state},
                       {"leaves", {{"total", counts.total}, {"by_verdict", by_verdict}, {"by_reason", by_reason}}},
                       {"coverage", to_value(report.coverage)},
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
