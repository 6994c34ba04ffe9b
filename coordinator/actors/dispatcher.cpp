#include "coordinator/actors/dispatcher.hpp"

#include <chrono>

#include "coordinator/actors/dispatcher_state.hpp"

namespace leafcutter::coordinator {

namespace {

/// Sessions and fences of a later life are higher: what an earlier one handed out is never mistaken for ours.
std::uint64_t first_number() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

DispatcherSelf::behavior_type dispatcher(DispatcherState::Self self, const std::shared_ptr<DispatcherParts>& parts) {
  auto& state = self->state;
  state.self = self;
  state.lease_time = parts->lease_time;
  state.intake = std::move(parts->intake);
  Board::Options board;
  board.lease_time = state.lease_time;
  board.first = first_number();
  state.board = std::make_unique<Board>(board);
  if (parts->bridge) {
    const std::lock_guard lock(parts->bridge->mutex);
    parts->bridge->dispatcher = self->address();
  }
  self->delayed_send(DispatcherSelf{self}, state.lease_time / 4, tick_atom::value);
  return {
      // --- nodes ---
      [self](actors::hello_atom, const actors::NodeInfo& info, const actors::node_actor& node) {
        return self->state.hello(info, node);
      },
      [self](actors::want_atom, std::uint64_t session, std::uint32_t free) { self->state.want(session, free); },
      [self](actors::renew_atom, std::uint64_t session) { self->state.renew(session); },
      [self](actors::done_atom, const actors::LeafReport& report) { self->state.done(report); },
      [self](gone_atom, const caf::actor_addr& node) { self->state.gone(node); },
      [self](trace_atom, const TracePtr& trace) { self->state.trace(trace); },
      // --- campaigns ---
      [self](enlist_atom, const EnlistmentPtr& campaign) { self->state.enlist(campaign); },
      [self](order_atom, const OrdersPtr& orders) { self->state.order(orders); },
      [self](close_atom, const std::string& campaign) { self->state.close(campaign); },
      [self](slots_atom) { return self->state.board->standing(self->state.now()).slots; },
      // --- itself ---
      [self](tick_atom) { self->state.tick(); },
  };
}

}  // namespace

dispatcher_actor spawn_dispatcher(caf::local_actor& parent, DispatcherParts parts) {
  return parent.spawn<caf::linked>(dispatcher, std::make_shared<DispatcherParts>(std::move(parts)));
}

}  // namespace leafcutter::coordinator
