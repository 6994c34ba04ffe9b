// The coordinator actor: the front door that nodes and commands know. It admits nodes, has what they say go to the
// dispatcher, and has every campaign that is submitted done by an actor of its own (interfaces.hpp). When it ends, all
// of them end with it.
#pragma once

#include <caf/actor_system.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "actors/messages.hpp"
#include "base/error.hpp"
#include "coordinator/actors/intake.hpp"

namespace leafcutter::coordinator {

struct CoordinatorOptions {
  std::string folder;                                   ///< ledger, blobs, campaigns
  std::string events_endpoint;                          ///< what Intake binds
  caf::timespan lease_time = std::chrono::seconds(20);  ///< renewed by heartbeats at a quarter of it
  unsigned judges = 2;                                  ///< traces judged at a time
  /// How events come in; the real intake unless a test puts its own here.
  std::function<base::Expected<std::unique_ptr<Intake>>(Intake::OnFinished)> intake = {};
};

/// Opens the ledger and spawns the coordinator with its dispatcher and judges. Errors: as Ledger::open and
/// Intake::start.
base::Expected<actors::coordinator_actor> spawn_coordinator(caf::actor_system& system, CoordinatorOptions options);

/// Lets nodes of other processes reach it; port 0 takes a free one. The port. Errors: bad_input (not loopback), io (in
/// use).
base::Expected<std::uint16_t> publish_coordinator(caf::actor_system& system,
                                                  const actors::coordinator_actor& coordinator, const std::string& host,
                                                  std::uint16_t port);

}  // namespace leafcutter::coordinator
