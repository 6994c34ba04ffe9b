// What a campaign found, for people and for machines: terminal text, one JSON document, JUnit XML and a single HTML
// file that opens offline.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "coordinator/ledger/ledger.hpp"

namespace leafcutter::coordinator {

struct CampaignReport {
  CampaignRow campaign;
  scenarios::Scenario scenario;
  std::vector<EpochHeader> epochs;
  std::vector<Result> results;  ///< explored leaves only, in address order
  std::vector<Finding> findings;
  Coverage coverage;
  std::string digest;  ///< result_digest()
  bool interrupted = false;
  std::int64_t elapsed_ms = 0;
  std::uint64_t executions = 0;  ///< with confirmations, controls and minimization
};

/// Everything above, read from the ledger.
base::Expected<CampaignReport> gather(Ledger& ledger, const std::string& campaign, const scenarios::Scenario& scenario);

/// 0 all held, 1 a finding, 3 inconclusive or infrastructure only.
int exit_code(const CampaignReport& report);

/// {campaign, seed, leaves {total, by_verdict, by_reason}, coverage, result_digest, findings[{signature, property,
/// leaf, rate, plan {faults[], schedule}, explanation}], exit_code, ...}
Value json_report(const CampaignReport& report);
std::string terminal_report(const CampaignReport& report, bool colour);
std::string junit_report(const CampaignReport& report);

/// `trace` loads an execution's events (for the lanes); a trace that is gone is left out and said so.
using TraceSource = std::function<base::Expected<std::vector<protocols::Event>>(const std::string& execution)>;
std::string html_report(const CampaignReport& report, const TraceSource& trace);

}  // namespace leafcutter::coordinator
