// Counts and orders that every form of the report needs, so that they agree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/report/report.hpp"

namespace leafcutter::coordinator {

/// Worst first, as a reader wants them.
inline constexpr scenarios::Verdict verdicts_worst_first[] = {
    scenarios::Verdict::fail, scenarios::Verdict::infra, scenarios::Verdict::inconclusive, scenarios::Verdict::pass};

struct Tally {
  std::uint64_t total = 0;
  std::map<scenarios::Verdict, std::uint64_t> by_verdict;  ///< every verdict is there
  std::map<scenarios::Reason, std::uint64_t> by_reason;    ///< only those that occur
};
Tally tally(const CampaignReport& report);

/// The reasons of a verdict that occur, with their counts, in the order in which they are defined.
std::vector<std::pair<scenarios::Reason, std::uint64_t>> reasons_of(const Tally& tally, scenarios::Verdict verdict);

/// "all properties held", "2 findings", "nothing was decided", ... : the campaign in a few words.
std::string outcome_text(const CampaignReport& report);

/// "5 of 5 runs", or "not confirmed".
std::string rate_text(const Finding& finding);

/// "400 ms", "12.3 s", "5 min 12 s".
std::string elapsed_text(std::int64_t ms);

}  // namespace leafcutter::coordinator
