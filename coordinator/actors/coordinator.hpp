// The coordinator actor: admits nodes, leases leaves to them, has traces judged, keeps the ledger and drives the campaign.
// The logic of each part is a plain value: dispatch/board.hpp (leases), campaign/campaign.hpp (what to run next).
#pragma once

#include <caf/actor_system.hpp>
#include <chrono>
#include <string>

#include "actors/messages.hpp"
#include "base/error.hpp"

namespace leafcutter::coordinator {

struct CoordinatorOptions {
  std::string folder;                    ///< ledger, blobs, campaigns
  std::string events_endpoint;           ///< what Intake binds
  caf::timespan lease_time = std::chrono::seconds(20);   ///< renewed by heartbeats at a quarter of it
};

/// Opens the ledger and spawns the coordinator with its judge and dispatcher. Errors: as Ledger::open and Intake::start.
base::Expected<actors::coordinator_actor> spawn_coordinator(caf::actor_system& system, CoordinatorOptions options);

}  // namespace leafcutter::coordinator
