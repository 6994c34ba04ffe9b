#include "coordinator/actors/dispatcher_state.hpp"

#include <caf/send.hpp>

namespace leafcutter::coordinator {

using actors::LeafReport;
using actors::NodeInfo;
using actors::Welcome;

void TraceBridge::deliver(FinishedTrace trace) {
  caf::actor_addr target;
  {
    const std::lock_guard lock(mutex);
    target = dispatcher;
  }
  if (const auto handle = caf::actor_cast<caf::actor>(target)) {
    caf::anon_send(handle, trace_atom::value, std::make_shared<const FinishedTrace>(std::move(trace)));
  }
}

Instant DispatcherState::now() const { return self->clock().now().time_since_epoch(); }

const Enlistment* DispatcherState::client(std::string_view address) const {
  const auto found = clients.find(std::string(campaign_of(address)));
  return found == clients.end() ? nullptr : found->second.get();
}

// --- nodes
// ------------------------------------------------------------------------------------------------------------

Welcome DispatcherState::hello(const NodeInfo& info, const actors::node_actor& node) {
  for (auto at = nodes.begin(); at != nodes.end();) {
    const auto older = at++;
    if (older->second.node_name != info.name) continue;
    // The same process saying hello again goes on; another one of that name is to stop.
    if (older->second.handle != node) self->send(older->second.handle, actors::drain_atom_v);
    nodes.erase(older);
  }
  Welcome welcome;
  Board::Returned lost_work;
  welcome.session = board->admit(info, now(), lost_work);
  welcome.admitted = true;
  welcome.events_endpoint = intake->bound_endpoint();
  welcome.renew_every = lease_time / 4;
  nodes[welcome.session] = Node{node, info.name, {}};
  settle(lost_work);
  distribute();
  return welcome;
}

void DispatcherState::want(std::uint64_t session, std::uint32_t free) {
  if (board->want(session, free, now())) distribute();
}

void DispatcherState::renew(std::uint64_t session) { board->renew(session, now()); }

void DispatcherState::gone(const caf::actor_addr& source) {
  for (auto at = nodes.begin(); at != nodes.end();) {
    const auto node = at++;
    if (node->second.handle.address() != source) continue;
    const auto session = node->first;
    nodes.erase(node);
    settle(board->node_lost(session));
  }
  distribute();
}

void DispatcherState::teach(Node& node, const std::string& campaign) {
  const auto* known = client(campaign);
  if (!known || !node.taught.insert(known->text.identity).second) return;
  self->send(node.handle, actors::learn_atom_v, known->text);
}

void DispatcherState::distribute() {
  // In turns, so that nobody gets everything while others are idle; it ends when work or room does.
  for (auto leases = board->grants(now()); !leases.empty(); leases = board->grants(now())) {
    for (auto& lease : leases) hand_out(std::move(lease));
  }
}

void DispatcherState::hand_out(actors::Lease lease) {
  auto& node = nodes.at(lease.session);
  // Before the node can hear of them, so that no event comes unexpected.
  for (const auto& order : lease.orders) intake->expect(order.execution);
  teach(node, std::string(campaign_of(lease.orders.front().address)));
  self->send(node.handle, actors::lease_atom_v, std::move(lease));
}

// --- results
// ----------------------------------------------------------------------------------------------------------

void DispatcherState::done(const LeafReport& report) {
  if (board->report(report, now()) == Board::Word::stale) return;
  auto& half = halves[report.execution];
  half.report = report;
  // A leaf that never said anything has no stream that could end.
  if (report.events == 0 && !half.trace)
    half.trace = std::make_shared<const FinishedTrace>(FinishedTrace{report.execution, 0, false, {}});
  join(report.execution);
  distribute();
}

void DispatcherState::trace(const TracePtr& trace) {
  if (!board->order_of(trace->execution)) return;  // withdrawn meanwhile
  halves[trace->execution].trace = trace;
  join(trace->execution);
}

void DispatcherState::join(const std::string& attempt) {
  const auto found = halves.find(attempt);
  if (!found->second.report || !found->second.trace) return;
  auto execution = std::make_shared<Execution>();
  execution->report = std::move(*found->second.report);
  execution->trace = std::move(found->second.trace);
  halves.erase(found);
  intake->forget(attempt);
  const auto* known = board->order_of(attempt);
  if (!known) return;
  execution->order = *known;
  execution->duplicate = !board->resolve(attempt).has_value();
  const auto* campaign = client(execution->order.address);
  if (!campaign) return;
  execution->run = campaign->run;
  self->send(campaign->handle, actors::done_atom_v, ExecutionPtr(std::move(execution)));
}

void DispatcherState::settle(const Board::Returned& returned) {
  for (const auto& attempt : returned.withdrawn) {
    intake->forget(attempt);
    halves.erase(attempt);
  }
  for (const auto& order : returned.given_up) {
    if (const auto* campaign = client(order.address))
      self->send(campaign->handle, lost_atom::value, std::make_shared<const Loss>(Loss{campaign->run, order}));
  }
}

// --- campaigns
// --------------------------------------------------------------------------------------------------------

void DispatcherState::enlist(const EnlistmentPtr& campaign) {
  close(campaign->campaign);
  clients[campaign->campaign] = campaign;
}

void DispatcherState::order(const OrdersPtr& orders) {
  if (!clients.contains(orders->campaign)) return;
  for (const auto& execution : orders->dropped) board->withdraw(execution);
  for (const auto& one : orders->orders) board->enqueue(one);
  distribute();
}

void DispatcherState::close(const std::string& campaign) {
  if (clients.erase(campaign) == 0) return;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> fences;
  const auto returned = board->cancel(campaign, fences);
  for (const auto& [session, fence] : fences) {
    const auto node = nodes.find(session);
    if (node != nodes.end()) self->send(node->second.handle, actors::cancel_atom_v, fence);
  }
  settle(returned);
  distribute();
}

void DispatcherState::tick() {
  settle(board->expire(now()));
  distribute();
  self->delayed_send(DispatcherSelf{self}, lease_time / 4, tick_atom::value);
}

}  // namespace leafcutter::coordinator
