#include "coordinator/report/report.hpp"

#include <algorithm>
#include <cstdio>

#include "coordinator/report/tally.hpp"

namespace leafcutter::coordinator {

using scenarios::Verdict;

base::Expected<CampaignReport> gather(Ledger& ledger, const std::string& campaign,
                                      const scenarios::Scenario& scenario) {
  auto row = ledger.campaign(campaign);
  if (!row) return row.error();
  if (!*row)
    return base::Error{base::ErrorCode::bad_input,
                       "the ledger knows no campaign \"" + campaign + "\"; `leafcutter run` makes one",
                       {}};
  auto epochs = ledger.epochs(campaign);
  if (!epochs) return epochs.error();
  auto results = ledger.results(campaign);
  if (!results) return results.error();
  auto findings = ledger.findings(campaign);
  if (!findings) return findings.error();

  CampaignReport report;
  report.campaign = std::move(**row);
  report.scenario = scenario;
  report.epochs = std::move(*epochs);
  report.executions = results->size();
  report.results = explored_leaves(*results);
  report.findings = std::move(*findings);
  report.digest = result_digest(report.results);
  report.elapsed_ms = report.campaign.elapsed_ms;
  report.interrupted = report.campaign.state == "running";
  std::map<scenarios::Address, LeafOutcome> outcomes;
  for (const auto& result : report.results)
    if (const auto address = scenarios::parse_address(result.address))
      outcomes[*address] = {result.verdict, result.reason, result.sites, result.fired};
  report.coverage = coverage(scenario, report.epochs, outcomes);
  return report;
}

int exit_code(const CampaignReport& report) {
  namespace codes = scenarios::exit_codes;
  if (report.interrupted) return codes::interrupted;
  const auto counts = tally(report);
  // A failing leaf is never green, whether or not a finding was made of it.
  if (!report.findings.empty() || counts.by_verdict.at(Verdict::fail) > 0) return codes::finding;
  const auto undecided = counts.by_verdict.at(Verdict::infra) + counts.by_verdict.at(Verdict::inconclusive);
  return undecided > 0 || counts.total == 0 ? codes::inconclusive : codes::held;
}

Tally tally(const CampaignReport& report) {
  Tally counts;
  for (const auto verdict : verdicts_worst_first) counts.by_verdict[verdict] = 0;
  for (const auto& result : report.results) {
    ++counts.total;
    ++counts.by_verdict[result.verdict];
    ++counts.by_reason[result.reason];
  }
  return counts;
}

std::vector<std::pair<scenarios::Reason, std::uint64_t>> reasons_of(const Tally& counts, Verdict verdict) {
  std::vector<std::pair<scenarios::Reason, std::uint64_t>> found;
  for (const auto& [reason, count] : counts.by_reason)
    if (scenarios::verdict_of(reason) == verdict) found.emplace_back(reason, count);
  return found;
}

std::string outcome_text(const CampaignReport& report) {
  const auto counts = tally(report);
  const auto found = report.findings.size();
  std::string text;
  if (found > 0)
    text = std::to_string(found) + (found == 1 ? " finding" : " findings");
  else if (const auto fails = counts.by_verdict.at(Verdict::fail); fails > 0)
    text = std::to_string(fails) + (fails == 1 ? " leaf failed" : " leaves failed") + ", no finding confirmed";
  else if (counts.total == 0)
    text = "no leaf was run";
  else if (const auto undecided = counts.by_verdict.at(Verdict::infra) + counts.by_verdict.at(Verdict::inconclusive);
           undecided > 0)
    text = "no property was violated, but " + std::to_string(undecided) + " of " + std::to_string(counts.total) +
           " leaves were not decided";
  else
    text = "all properties held in " + std::to_string(counts.total) + (counts.total == 1 ? " leaf" : " leaves");
  return report.interrupted ? text + "; interrupted, can be resumed" : text;
}

std::string rate_text(const Finding& finding) {
  if (finding.runs == 0) return "not run again";
  auto text = "failed " + std::to_string(finding.fails) + " of " + std::to_string(finding.runs) + " runs";
  return finding.confirmed ? text : text + ", not confirmed";
}

std::string elapsed_text(std::int64_t ms) {
  char buffer[48];
  if (ms < 1000)
    std::snprintf(buffer, sizeof buffer, "%lld ms", static_cast<long long>(ms));
  else if (ms < 60'000)
    std::snprintf(buffer, sizeof buffer, "%lld.%lld s", static_cast<long long>(ms / 1000),
                  static_cast<long long>(ms % 1000 / 100));
  else
    std::snprintf(buffer, sizeof buffer, "%lld min %lld s", static_cast<long long>(ms / 60'000),
                  static_cast<long long>(ms / 1000 % 60));
  return buffer;
}

}  // namespace leafcutter::coordinator
