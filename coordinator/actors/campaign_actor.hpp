// The campaign actor: one campaign's logic and its steps in the ledger (campaign_run.hpp) between the dispatcher that
// has its leaves run, the judges of what they did and the minimizer of what failed.
#pragma once

#include <caf/local_actor.hpp>
#include <memory>
#include <vector>

#include "coordinator/actors/interfaces.hpp"

namespace leafcutter::coordinator {

struct CampaignParts {
  std::shared_ptr<Ledger> ledger;
  dispatcher_actor dispatcher;
  std::vector<judge_actor> judges;  ///< at least one
};

/// With a minimizer of its own; idle until something is submitted. It ends with `parent`, and `parent` hears of it when
/// it ends otherwise.
campaign_actor spawn_campaign(caf::local_actor& parent, CampaignParts parts);

}  // namespace leafcutter::coordinator
