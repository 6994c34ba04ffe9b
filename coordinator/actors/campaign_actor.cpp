#include "coordinator/actors/campaign_actor.hpp"

#include "coordinator/actors/campaign_state.hpp"
#include "coordinator/actors/minimizer_actor.hpp"

namespace leafcutter::coordinator {

namespace {

CampaignSelf::behavior_type campaign(CampaignState::Self self, const CampaignParts& parts) {
  self->state.self = self;
  self->state.parts = parts;
  self->state.minimizer = spawn_minimizer(*self);
  return {
      // --- passed on by the coordinator ---
      [self](actors::submit_atom, const SubmissionPtr& submission) { return self->state.submit(submission); },
      [self](actors::watch_atom) { return self->state.watch(); },
      [self](actors::cancel_atom) { self->state.cancel(); },
      // --- the dispatcher ---
      [self](actors::done_atom, const ExecutionPtr& execution) { self->state.done(execution); },
      [self](lost_atom, const LossPtr& loss) { self->state.lost(loss); },
      // --- itself ---
      [self](budget_atom, std::uint64_t run) { self->state.budget(run); },
      [self](tick_atom, std::uint64_t run) { self->state.tick(run); },
  };
}

}  // namespace

campaign_actor spawn_campaign(caf::local_actor& parent, CampaignParts parts) {
  return parent.spawn<caf::linked>(campaign, std::move(parts));
}

}  // namespace leafcutter::coordinator
