// The dispatcher actor: leases campaigns' orders to nodes and joins what comes back, a node's report and the trace from
// the intake, into executions for their campaigns. Its logic is dispatch/board.hpp.
#pragma once

#include <caf/local_actor.hpp>
#include <caf/timespan.hpp>
#include <memory>
#include <mutex>

#include "coordinator/actors/interfaces.hpp"

namespace leafcutter::coordinator {

/// From the intake's thread into the dispatcher's mailbox; holds it weakly, for the dispatcher owns the intake.
struct TraceBridge {
  std::mutex mutex;
  caf::actor_addr dispatcher;
  void deliver(FinishedTrace trace);
};

struct DispatcherParts {
  std::unique_ptr<Intake> intake;
  std::shared_ptr<TraceBridge> bridge;  ///< what the intake calls; none: traces come as messages
  caf::timespan lease_time = std::chrono::seconds(20);
};

/// It ends with `parent`.
dispatcher_actor spawn_dispatcher(caf::local_actor& parent, DispatcherParts parts);

}  // namespace leafcutter::coordinator
