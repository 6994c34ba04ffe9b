#include "coordinator/actors/coordinator.hpp"

#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <chrono>

#include "actors/system.hpp"
#include "coordinator/actors/coordinator_state.hpp"

namespace leafcutter::coordinator {

namespace {

using base::Expected;

/// Sessions and fences of a later life are higher: what an earlier one handed out is never mistaken for ours.
std::uint64_t first_number() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

CoordinatorSelf::behavior_type coordinator(CoordinatorState::Self self,
                                           const std::shared_ptr<CoordinatorParts>& parts) {
  auto& state = self->state;
  state.self = self;
  state.options = std::move(parts->options);
  state.ledger = std::move(parts->ledger);
  state.intake = std::move(parts->intake);
  Board::Options board;
  board.lease_time = state.options.lease_time;
  board.first = first_number();
  state.board = std::make_unique<Board>(board);
  for (unsigned i = 0; i < std::max(state.options.judges, 1u); ++i) state.judges.push_back(spawn_judge(*self));
  self->set_down_handler([self](const caf::down_msg& down) { self->state.down(down.source); });
  self->delayed_send(CoordinatorSelf{self}, state.options.lease_time / 4, tick_atom::value);
  return {
      // --- nodes ---
      [self](actors::hello_atom, const actors::NodeInfo& info, const actors::node_actor& node) {
        return self->state.hello(info, node);
      },
      [self](actors::want_atom, std::uint64_t session, std::uint32_t free) { self->state.want(session, free); },
      [self](actors::renew_atom, std::uint64_t session) { self->state.renew(session); },
      [self](actors::done_atom, const actors::LeafReport& report) { self->state.done(report); },
      // --- commands ---
      [self](actors::submit_atom, const actors::CampaignRequest& request) { return self->state.submit(request); },
      [self](actors::watch_atom, const std::string& campaign) { return self->state.watch(campaign); },
      [self](actors::cancel_atom, const std::string& campaign) { self->state.cancel(campaign); },
      // --- its own parts ---
      [self](trace_atom, const TracePtr& trace) { self->state.trace(trace); },
      [self](tick_atom) { self->state.tick(); },
      [self](budget_atom, const std::string& campaign, std::uint64_t number) { self->state.budget(campaign, number); },
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
  parts->intake = std::move(*intake);
  parts->options = std::move(options);
  const auto handle = system.spawn(coordinator, parts);
  const std::lock_guard lock(bridge->mutex);
  bridge->coordinator = handle.address();
  return actors::coordinator_actor(handle);
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
