// A campaign from its first baseline to its findings, as a value: told which results were accepted, it says what to run
// next and what was found. No clocks, no I/O, no actors. What it does is a function of the scenario, the seed and each
// execution's result, never of the order in which results come in or of how many run at a time; a campaign that is fed
// its ledger again after a crash goes on exactly where it stood. Failing groups are looked into elsewhere (a casebook):
// the campaign hands out cases, knows what is run for them, and takes back what was concluded.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/campaign/case_file.hpp"
#include "coordinator/campaign/order.hpp"
#include "coordinator/finding.hpp"
#include "coordinator/ledger/ledger.hpp"
#include "coordinator/search/epochs.hpp"

namespace leafcutter::coordinator {

/// What follows from a step, in the order in which it is to be made durable.
struct Actions {
  std::vector<EpochHeader> new_epochs;  ///< save before any of their leaves is run
  std::vector<Order> orders;            ///< to run; confirmations before minimization before exploration
  Cases cases;                          ///< to inquire into, each once
  std::vector<Result> follow_ups;       ///< of what was ordered for cases: for the casebook
  std::vector<std::string> dropped;     ///< executions ordered earlier that nobody waits for any more
  std::vector<Finding> findings;        ///< new or changed, whole; `explanation` is empty (the caller explains)
  bool finished = false;                ///< nothing more will be ordered
  std::string state = "running";        ///< as CampaignRow::state
  std::string detail;                   ///< one sentence when finished early or cut, else empty
};

/// For progress lines; as actors::Progress.
struct CampaignProgress {
  std::string phase;                  ///< "baseline", "singles", "pairs", "confirm", "done"
  std::uint64_t done = 0, known = 0;  ///< explored leaves
  std::uint64_t executions = 0;       ///< results taken, of any purpose
  std::uint64_t failing = 0;          ///< explored leaves with verdict FAIL
  std::uint64_t findings = 0;         ///< confirmed or not
};

class Campaign {
 public:
  /// `seed` replaces the scenario's own. The campaign's name is campaign_name() of the scenario with that seed.
  Campaign(Scenario scenario, std::string identity, std::uint64_t seed);
  ~Campaign();
  Campaign(Campaign&&) noexcept;
  Campaign& operator=(Campaign&&) noexcept;

  const std::string& name() const;
  /// With the seed in effect.
  const Scenario& scenario() const;

  /// Before start(): what the ledger holds of this campaign, results of every purpose, in any order. A stored header is
  /// used as it stands; findings are only compared with, so that unchanged ones are not handed out again. The casebook
  /// is to remember the results that were not explored.
  void restore(std::vector<EpochHeader> epochs, const std::vector<Result>& results,
               const std::vector<Finding>& findings);

  /// Once. Orders everything that can run now and has no result yet.
  Actions start();

  /// Would a result of this execution still be used? False for an unknown execution and for one whose like has a result
  /// that stands: such a result must not be accepted into the ledger either.
  bool wants(const std::string& execution) const;

  /// A result that was accepted. One that is not wanted changes nothing.
  Actions accepted(const Result& result);

  /// What the casebook answered to cases or to a follow-up.
  Actions inquired(const Inquired& answer);

  /// Time is over: no further leaves are explored; failures found so far are still confirmed and minimized. `reason` is
  /// a sentence for people ("the time budget of 5m is over").
  Actions stop_exploring(const std::string& reason);

  CampaignProgress progress() const;
  const std::vector<EpochHeader>& epochs() const;
  /// By address; what stands of every explored leaf that is resolved.
  std::map<scenarios::Address, LeafOutcome> outcomes() const;
  /// Of explored leaves, one for each resolved address, in address order: the input of result_digest().
  std::vector<Result> resolved() const;
  /// In the order of their signatures.
  std::vector<Finding> findings() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leafcutter::coordinator
