// A campaign as a ledger would give it: two findings, undecided leaves, names that would break careless markup.
#pragma once

#include <map>
#include <string>

#include "coordinator/report/report.hpp"
#include "tests/coordinator/judge/outbox_traces.hpp"

namespace leafcutter::coordinator::testing {

inline constexpr const char* hostile = "</script><img src=x onerror=alert(1)>&\"'\x01\xff";

inline std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

inline Result leaf_result(std::uint32_t epoch, std::uint64_t index, scenarios::Reason reason,
                          const std::string& detail = {}) {
  Result result;
  result.address = scenarios::Address{"0a1b2c3d", epoch, index}.text();
  result.execution = result.address + "#1";
  result.reason = reason;
  result.verdict = scenarios::verdict_of(reason);
  result.detail = detail;
  if (epoch > 0) {
    result.plan.faults = {crash_fault()};
    result.plan.faults[0].occurrence = static_cast<std::uint32_t>(index % 3) + 1;
    result.fired = {reason != scenarios::Reason::vacuous};
  }
  result.node = "laptop/0";
  result.wall_ms = 700 + static_cast<std::int64_t>(index) * 3;
  if (result.verdict == scenarios::Verdict::fail)
    result.violations = {{"an accepted order is announced", detail, "order-2", {{"workload -> shop", 2}}}};
  return result;
}

inline CampaignReport sample_report() {
  using scenarios::Reason;
  CampaignReport report;
  report.campaign.name = "0a1b2c3d";
  report.campaign.scenario_file = "/srv/outbox.yaml";
  report.campaign.identity = std::string(64, 'a');
  report.campaign.seed = 7;
  report.campaign.state = "complete";
  report.scenario = outbox_scenario();
  report.scenario.about = "An order is stored, then announced. A crash between the two loses the announcement.";
  report.scenario.properties.push_back(
      property("an order is announced at most once", Property::Kind::count, announcement()));
  report.scenario.properties.back().at_most = 1;
  report.epochs.resize(2);
  for (std::uint64_t i = 0; i < 3; ++i) report.results.push_back(leaf_result(0, i, Reason::held));
  for (std::uint64_t i = 0; i < 120; ++i) {
    const auto reason = i == 7 || i == 9 ? Reason::property_violated
                        : i % 40 == 11   ? Reason::not_settled
                        : i % 50 == 12   ? Reason::vacuous
                        : i == 99        ? Reason::runner_failed
                                         : Reason::held;
    report.results.push_back(leaf_result(1, i, reason,
                                         reason == Reason::held            ? ""
                                         : reason == Reason::runner_failed ? hostile
                                                                           : "key order-2: never announced"));
  }
  auto finding = outbox_finding();
  finding.explanation = explain(report.scenario, finding, failing_outbox().events, passing_outbox().events);
  report.findings.push_back(finding);
  finding.signature = "ffee00112233";
  finding.property = "an order is announced at most once";
  finding.message = std::string("key order-3: it came 2 times, at most 1 allowed ") + hostile;
  finding.plan.faults = {
      {"lose-response", {"shop -> broker", "request", "POST /announce"}, 3, Value{{"after", "50ms"}}}, crash_fault()};
  finding.confirmed = finding.one_minimal = false;
  finding.fails = 3;
  finding.failing_execution = "gone#1";
  finding.explanation = explain(report.scenario, finding, {}, {});
  report.findings.push_back(finding);
  report.coverage.sites = 9;
  report.coverage.singles = 160;
  report.coverage.singles_run = 120;
  report.coverage.singles_fired = 117;
  report.coverage.pairs = 900;
  report.coverage.skipped = {{"budget", 850}, {"symmetric", 50}};
  report.coverage.not_covered = {"schedules: messages are not held back or reordered"};
  report.digest = result_digest(report.results);
  report.elapsed_ms = 83'250;
  report.executions = 151;
  return report;
}

inline TraceSource sample_traces() {
  return [](const std::string& execution) -> base::Expected<std::vector<Event>> {
    if (execution == outbox_finding().failing_execution) return failing_outbox().events;
    if (execution == outbox_finding().passing_execution) return passing_outbox().events;
    return base::Error{base::ErrorCode::unavailable, "the trace was not kept", {}};
  };
}

}  // namespace leafcutter::coordinator::testing
