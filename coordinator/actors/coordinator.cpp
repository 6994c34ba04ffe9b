#include "coordinator/actors/coordinator.hpp"

#include <algorithm>
#include <caf/io/middleman.hpp>

#include "actors/system.hpp"
#include "coordinator/actors/coordinator_state.hpp"
#include "coordinator/actors/dispatcher.hpp"
#include "coordinator/actors/judge_actor.hpp"

namespace leafcutter::coordinator {

namespace {

using base::Expected;

struct CoordinatorParts {
  std::shared_ptr<Ledger> ledger;
  DispatcherParts dispatcher;
  unsigned judges = 1;
};

actors::coordinator_actor::behavior_type coordinator(CoordinatorState::Self self,
                                                     const std::shared_ptr<CoordinatorParts>& parts) {
  auto& state = self->state;
  state.self = self;
  state.ledger = std::move(parts->ledger);
  state.dispatcher = spawn_dispatcher(*self, std::move(parts->dispatcher));
  for (unsigned i = 0; i < std::max(parts->judges, 1u); ++i) state.judges.push_back(spawn_judge(*self));
  self->set_exit_handler([self](const caf::exit_msg& message) { self->state.exited(message); });
  self->set_down_handler(
      [self](const caf::down_msg& down) { self->send(self->state.dispatcher, gone_atom::value, down.source); });
  return {
      // --- nodes ---
      [self](actors::hello_atom, const actors::NodeInfo& info, const actors::node_actor& node) {
        return self->state.hello(info, node);
      },
      [self](actors::want_atom want, std::uint64_t session, std::uint32_t free) {
        self->send(self->state.dispatcher, want, session, free);
      },
      [self](actors::renew_atom renew, std::uint64_t session) { self->send(self->state.dispatcher, renew, session); },
      [self](actors::done_atom done, const actors::LeafReport& report) {
        self->send(self->state.dispatcher, done, report);
      },
      // --- commands ---
      [self](actors::submit_atom, const actors::CampaignRequest& request) { return self->state.submit(request); },
      [self](actors::watch_atom, const std::string& campaign) { return self->state.watch(campaign); },
      [self](actors::cancel_atom, const std::string& campaign) { self->state.cancel(campaign); },
  };
}

}  // namespace

Expected<actors::coordinator_actor> spawn_coordinator(caf::actor_system& system, CoordinatorOptions options) {
  auto parts = std::make_shared<CoordinatorParts>();
  auto ledger = Ledger::open(options.folder);
  if (!ledger) return ledger.error();
  parts->ledger = std::move(*ledger);
  auto bridge = std::make_shared<TraceBridge>();
  const auto on_finished = [bridge](FinishedTrace trace) { bridge->deliver(std::move(trace)); };
  auto intake = options.intake ? options.intake(on_finished) : Intake::start(options.events_endpoint, on_finished);
  if (!intake) return intake.error();
  parts->dispatcher = {std::move(*intake), std::move(bridge), options.lease_time};
  parts->judges = options.judges;
  return system.spawn(coordinator, parts);
}

Expected<std::uint16_t> publish_coordinator(caf::actor_system& system, const actors::coordinator_actor& coordinator,
                                            const std::string& host, std::uint16_t port) {
  const auto local = actors::require_loopback({host, port});
  if (!local) return local.error();
  const auto bound = system.middleman().publish(coordinator, port, host.c_str(), true);
  if (!bound) {
    return base::Error{base::ErrorCode::io, "cannot listen on " + host + ":" + std::to_string(port) + ": " +
                                                system.render(bound.error()) + "; another port would do"};
  }
  return *bound;
}

}  // namespace leafcutter::coordinator
