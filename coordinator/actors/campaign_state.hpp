// What a campaign actor holds and what its handlers do with it.
#pragma once

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <chrono>
#include <optional>

#include "coordinator/actors/campaign_actor.hpp"
#include "coordinator/actors/campaign_run.hpp"

namespace leafcutter::coordinator {

/// The campaign with what it is told by itself.
using CampaignSelf = campaign_actor::extend<
    // Its time is over. (run)
    caf::reacts_to<budget_atom, std::uint64_t>,
    // Time to note how long it has run. (run)
    caf::reacts_to<tick_atom, std::uint64_t>>;

struct CampaignState {
  static inline const char* name = "campaign";
  using Self = CampaignSelf::stateful_pointer<CampaignState>;

  // --- what the coordinator passes on ---
  caf::result<std::string> submit(const SubmissionPtr& submission);
  caf::result<actors::Progress> watch();
  void cancel();

  // --- what comes of its orders ---
  void done(const ExecutionPtr& execution);
  void lost(const LossPtr& loss);
  void judged(const JudgedPtr& judged);
  void inquired(std::uint64_t run, const InquiredPtr& answer);

  void budget(std::uint64_t run);
  void tick(std::uint64_t run);

  std::chrono::milliseconds elapsed() const;
  /// The campaign, told what time it is: whatever it does next may be the last that its ledger hears.
  CampaignRun& run_now();
  bool under_way(std::uint64_t run) const { return campaign && run == number && !campaign->over(); }
  void follow(CampaignRun::Step step);
  void close();

  Self self = nullptr;
  CampaignParts parts;
  minimizer_actor minimizer;
  std::optional<CampaignRun> campaign;
  std::uint64_t number = 0;  ///< of its submissions: what was meant for an earlier one is told by it
  bool enlisted = false;
  std::size_t next_judge = 0;
  std::chrono::nanoseconds started{};
};

}  // namespace leafcutter::coordinator
