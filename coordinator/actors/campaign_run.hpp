// A campaign under way: the campaign's logic and its ledger, kept in step. Every step is durable before its orders are
// handed out, so that a coordinator killed at any instant goes on where it stood. No actors, no sockets.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "coordinator/campaign/campaign.hpp"
#include "coordinator/ledger/ledger.hpp"

namespace leafcutter::coordinator {

class CampaignRun {
 public:
  /// What the dispatcher and the minimizer are to do.
  struct Step {
    std::vector<actors::LeafOrder> orders;
    std::vector<std::string> dropped;
    Cases cases;                     ///< to open
    std::vector<Result> follow_ups;  ///< to take
  };

  /// Takes the campaign up where the ledger left it (state "running"), or begins it anew. Errors: io.
  static base::Expected<CampaignRun> open(Ledger& ledger, const scenarios::Scenario& scenario,
                                          const std::string& identity, std::uint64_t seed);

  const std::string& name() const { return campaign_.name(); }
  const std::shared_ptr<const scenarios::Scenario>& scenario() const { return scenario_; }
  bool resumed() const { return resumed_; }
  /// Results of before that were run for cases: for the minimizer, before any case. Never null.
  const std::shared_ptr<const std::vector<Result>>& followed_up() const { return followed_up_; }

  Step start();

  /// A judged execution and its trace. A result that is not wanted (any more) changes nothing.
  Step take(Result result, std::string_view chunks);

  /// What the minimizer answered to cases or to a follow-up.
  Step inquired(const Inquired& answer);

  /// A second result of a resolved order: they must agree, and it is a finding when they do not.
  void compare(const Result& second);

  Step stop_exploring(const std::string& reason);

  /// How long it has run this time, for people. The ledger learns of it with whatever it is told next.
  void clock(std::chrono::milliseconds elapsed);
  /// Tells the ledger now: nothing else may happen for long.
  void save_time();

  /// Nothing more will be ordered: finished, interrupted or failed.
  bool over() const { return over_; }
  /// Stops; the ledger keeps it as running, so the same submission resumes.
  void interrupt();

  actors::Progress progress() const;

 private:
  CampaignRun(Ledger& ledger, Campaign campaign, std::string identity);
  Step apply(Actions actions);
  bool keep_trace(const Result& result) const;
  void explain_finding(Finding& finding);
  std::vector<protocols::Event> load_trace(const std::string& execution);
  /// The ledger refuses: nothing that happens from here on would be remembered.
  Step fail(const base::Error& error);
  void save_row();

  Ledger* ledger_;
  Campaign campaign_;
  std::shared_ptr<const scenarios::Scenario> scenario_;
  std::shared_ptr<const std::vector<Result>> followed_up_ = std::make_shared<const std::vector<Result>>();
  std::string identity_;
  CampaignRow row_;
  std::int64_t elapsed_before_ms_ = 0;
  std::string note_;
  unsigned disagreements_ = 0;
  bool resumed_ = false, over_ = false;
};

}  // namespace leafcutter::coordinator
