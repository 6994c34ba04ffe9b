// The search as pure functions: from a scenario, a seed and what earlier epochs showed to the next epoch's header, and
// from a header and an index to a leaf's plan. A header freezes everything that its leaves depend on; leaf i of an
// epoch is a function of (seed, header, i) alone: no clock, no pointer, no hash-map order, no shared generator.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "scenarios/model.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::coordinator {

using scenarios::Fault;
using scenarios::Plan;
using scenarios::Scenario;
using scenarios::SiteCount;
using scenarios::Value;

enum class EpochKind { baseline, singles, pairs };

/// Why an ordered pair is not run. Every ordered pair of candidates is run or carries exactly one of these.
enum class PairSkip {
  unreachable_after,  ///< with the first fault alone the second one's occurrence never came up (or both are one)
  symmetric,          ///< a plan is a set of faults at occurrences: the same set is run in the other order
  budget,             ///< no leaves were left for it
  fails_alone,        ///< one of the two fails without the other (a second-order one: at another visit of its site)
  never_fired,        ///< the first fault did not fire in its own leaf
  unresolved_alone,   ///< the first fault's own leaf came to no result that tells what can be reached after it
};
std::string_view name(PairSkip skip);

struct EpochHeader {
  std::string campaign;
  std::uint64_t seed = 0;
  std::uint32_t number = 0;
  EpochKind kind = EpochKind::baseline;
  std::string variant;
  std::string scenario;           ///< identity
  std::vector<SiteCount> sites;   ///< stable sites, those of every baseline: the least count over them, sorted
  std::vector<SiteCount> ever;    ///< every site of any baseline: the greatest count, sorted
  std::vector<Fault> candidates;  ///< single faults, in the order in which they are run; pairs refer to them by index
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  ///< ordered (first, second); second-order ones first
  std::vector<bool> second_order;  ///< for each pair: the second site exists only because of the first fault
  std::map<std::string, std::uint64_t> skipped;  ///< pairs that are not run, by reason; of singles, "budget" alone
  std::uint64_t leaves = 0;

  std::uint64_t key() const;  ///< SplitMix64(seed ^ H(header)): the Philox key of the epoch's leaves
  std::string digest() const;
};

Value to_value(const EpochHeader& header);
/// Errors: bad_input (a key is missing or of the wrong type, or an index points nowhere).
base::Expected<EpochHeader> epoch_header_from(const Value& value);

/// The plan of leaf `index` < header.leaves; std::out_of_range beyond.
Plan plan_of(const EpochHeader& header, std::uint64_t index);

/// 8 hex digits of H(identity, seed, leaf budget and bounds): the same command names the same campaign. The time budget
/// is not part of it, so that a campaign that ran out of time can be continued with more.
std::string campaign_name(const Scenario& scenario, const std::string& identity);

/// What one resolved leaf tells the search.
struct LeafOutcome {
  scenarios::Verdict verdict = scenarios::Verdict::pass;
  scenarios::Reason reason = scenarios::Reason::held;
  std::vector<SiteCount> sites;  ///< of the leaf's `sites` event
  std::vector<bool> fired;       ///< for each fault of its plan
};

inline constexpr std::uint64_t baseline_leaves = 3;

EpochHeader baseline_epoch(const Scenario& scenario, const std::string& identity);

/// Candidates: every choice of the scenario at every stable site that it fits, up to the occurrence bound. In order:
/// low occurrences first, then round robin over (kind, lane, operation), shuffled within a round by the seed, so that a
/// small budget sees a spread; then the scenario's rules as they are written, which need no site. `outcomes` are the
/// baseline's; `budget` is what is left of the leaf budget.
EpochHeader singles_epoch(const Scenario& scenario, const EpochHeader& baseline,
                          const std::vector<LeafOutcome>& outcomes, std::uint64_t budget);

/// Ordered pairs of candidates. `outcomes` are those of the singles, by index (fewer: the rest was not run). Candidates
/// that exist only after a first fault (a new site, or an occurrence that no baseline had, `occurrences` of them at
/// most) are appended to `candidates` and paired with the faults that brought them about; these pairs come first, then
/// those on two lanes, then the rest.
EpochHeader pairs_epoch(const Scenario& scenario, const EpochHeader& singles,
                        const std::vector<std::optional<LeafOutcome>>& outcomes, std::uint64_t budget);

/// The honest line: what was covered *and achieved* (every planned fault fired), what was not, and why.
struct Coverage {
  std::uint64_t sites = 0;                                        ///< stable ones
  std::uint64_t baselines = 0;                                    ///< run and judged, as below
  std::uint64_t singles = 0, singles_run = 0, singles_fired = 0;  ///< run: came to a verdict other than INFRA
  std::uint64_t pairs = 0, pairs_run = 0, pairs_fired = 0, second_order = 0;  ///< second_order: of pairs_run
  /// Pairs by reason; pairs == pairs_run + sum(skipped). Beside the reasons of PairSkip: "stopped" (planned, not run)
  /// and "infra" (run, to no verdict on the services).
  std::map<std::string, std::uint64_t> skipped;
  std::vector<std::string> not_covered;  ///< sentences: what this campaign says nothing about
};
Coverage coverage(const Scenario& scenario, const std::vector<EpochHeader>& epochs,
                  const std::map<scenarios::Address, LeafOutcome>& outcomes);
std::string coverage_line(const Coverage& coverage);
Value to_value(const Coverage& coverage);

}  // namespace leafcutter::coordinator
