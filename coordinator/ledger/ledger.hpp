// What is remembered: SQLite in WAL mode, synchronous FULL, one transaction for each accepted result. Killed at any
// instant it loses nothing that was accepted; a result is accepted once per execution. Blobs (traces) are files named
// by digest beside it. Thread-safe: the campaigns of a process share it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "coordinator/finding.hpp"
#include "coordinator/judge/judge.hpp"
#include "coordinator/search/epochs.hpp"

namespace leafcutter::coordinator {

struct CampaignRow {
  std::string name;  ///< campaign_name()
  std::string scenario_file, scenario_text, identity, variant;
  std::uint64_t seed = 0;
  std::string state;  ///< "running", "complete", "cut" (budget or time)
  std::string detail;
  std::int64_t started_unix = 0;  ///< for people only; no decision depends on it
  std::int64_t elapsed_ms = 0;    ///< so far, over every time it was resumed; for people only
};

/// Why a leaf is run; explored leaves count, the others serve findings.
enum class Purpose { explore, confirm, control, minimize, replay };
std::string_view name(Purpose purpose);

struct Result {
  std::string execution;  ///< "<address>#<attempt>"
  std::string address;
  Purpose purpose = Purpose::explore;
  scenarios::Plan plan;
  scenarios::Verdict verdict = scenarios::Verdict::pass;
  scenarios::Reason reason = scenarios::Reason::held;
  std::string detail;
  std::vector<bool> fired;
  std::vector<SiteCount> sites;
  std::vector<Violation> violations;
  std::string trace;  ///< digest of the stored trace, or empty when not kept
  std::string node;
  std::uint64_t events = 0;
  std::int64_t wall_ms = 0;
};

class Ledger {
 public:
  /// Opens or creates `folder`/ledger.db and `folder`/blobs. Errors: io, conflict (another process has it open),
  /// bad_input (made by a newer version).
  static base::Expected<std::unique_ptr<Ledger>> open(const std::string& folder);
  ~Ledger();

  base::Status save_campaign(const CampaignRow& row);
  base::Expected<std::optional<CampaignRow>> campaign(const std::string& name);
  base::Expected<std::vector<CampaignRow>> campaigns();
  /// Forgets a campaign's epochs, results and findings.
  base::Status erase(const std::string& campaign);

  /// Also writes `folder`/campaigns/<name>/epoch-<n>.json, from which `replay` works without a database.
  base::Status save_epoch(const EpochHeader& header);
  base::Expected<std::vector<EpochHeader>> epochs(const std::string& campaign);

  /// false: this execution had a result already (nothing is changed).
  base::Expected<bool> accept(const std::string& campaign, const Result& result);
  base::Expected<std::vector<Result>> results(const std::string& campaign);
  base::Expected<std::optional<Result>> result(const std::string& execution);

  base::Status save_finding(const std::string& campaign, const Finding& finding);
  base::Expected<std::vector<Finding>> findings(const std::string& campaign);

  base::Expected<std::string> store_blob(std::string_view bytes);    ///< its SHA-256
  base::Expected<std::string> load_blob(const std::string& digest);  ///< verified

 private:
  struct State;
  explicit Ledger(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The explored leaves of a campaign in address order, one result each: of several attempts the first that was no
/// infrastructure trouble, or else the last.
std::vector<Result> explored_leaves(const std::vector<Result>& results);

/// SHA-256 over "address verdict reason\n" of the explored leaves in address order.
std::string result_digest(const std::vector<Result>& results);

}  // namespace leafcutter::coordinator
