// One actor of a coordinator on its own, in virtual time, among others that only note what they are told.
#pragma once

#include <caf/event_based_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "coordinator/actors/interfaces.hpp"
#include "tests/actors/toy.hpp"

namespace leafcutter::tests {

/// A parent for actors under test: `furnish` spawns them. Killed, it takes them along; it notes when one ends
/// otherwise.
inline caf::actor spawn_parent(Sim& sim, std::function<void(caf::local_actor&)> furnish,
                               std::vector<caf::actor_addr>* ended = nullptr) {
  auto parent = sim.sys.spawn(
      [](caf::event_based_actor* self, const std::function<void(caf::local_actor&)>& spawn,
         std::vector<caf::actor_addr>* list) -> caf::behavior {
        self->set_exit_handler([self, list](const caf::exit_msg& message) {
          if (list != nullptr)
            list->push_back(message.source);
          else
            self->quit(message.reason);
        });
        spawn(*self);
        return {[](caf::unit_t) {}};
      },
      std::move(furnish), ended);
  sim.run();
  return parent;
}

/// A node that takes leases and does nothing.
struct NoteNode {
  std::vector<actors::Lease> leases;
  std::vector<std::string> learnt;
  std::vector<std::uint64_t> cancelled;
  bool drained = false;

  actors::node_actor spawn(Sim& sim) {
    return sim.sys.spawn([this]() -> actors::node_actor::behavior_type {
      return {[this](actors::learn_atom, const actors::ScenarioText& text) { learnt.push_back(text.identity); },
              [this](actors::lease_atom, const actors::Lease& lease) { leases.push_back(lease); },
              [this](actors::cancel_atom, std::uint64_t fence) { cancelled.push_back(fence); },
              [this](actors::drain_atom) { drained = true; }};
    });
  }
};

/// A campaign that notes what becomes of its orders.
struct NoteCampaign {
  std::vector<coordinator::ExecutionPtr> done;
  std::vector<coordinator::LossPtr> lost;

  coordinator::campaign_actor spawn(Sim& sim) {
    return sim.sys.spawn([this]() -> coordinator::campaign_actor::behavior_type {
      return {[](actors::submit_atom, const coordinator::SubmissionPtr&) { return std::string(); },
              [](actors::watch_atom) { return actors::Progress(); }, [](actors::cancel_atom) {},
              [this](actors::done_atom, const coordinator::ExecutionPtr& execution) { done.push_back(execution); },
              [this](coordinator::lost_atom, const coordinator::LossPtr& loss) { lost.push_back(loss); }};
    });
  }
};

/// A dispatcher that notes the orders of campaigns; the test says what becomes of them.
struct NoteDispatcher {
  std::map<std::string, coordinator::EnlistmentPtr> clients;
  std::vector<actors::LeafOrder> orders;
  std::vector<std::string> closed;
  std::function<void()> on_order;

  coordinator::dispatcher_actor spawn(Sim& sim) {
    return sim.sys.spawn([this]() -> coordinator::dispatcher_actor::behavior_type {
      return {[](actors::hello_atom, const actors::NodeInfo&, const actors::node_actor&) { return actors::Welcome(); },
              [](actors::want_atom, std::uint64_t, std::uint32_t) {},
              [](actors::renew_atom, std::uint64_t) {},
              [](actors::done_atom, const actors::LeafReport&) {},
              [](coordinator::gone_atom, const caf::actor_addr&) {},
              [](coordinator::trace_atom, const coordinator::TracePtr&) {},
              [this](coordinator::enlist_atom, const coordinator::EnlistmentPtr& campaign) {
                clients[campaign->campaign] = campaign;
              },
              [this](coordinator::order_atom, const coordinator::OrdersPtr& more) {
                if (on_order) on_order();
                for (const auto& dropped : more->dropped)
                  std::erase_if(orders, [&](const auto& order) { return order.execution == dropped; });
                orders.insert(orders.end(), more->orders.begin(), more->orders.end());
              },
              [this](coordinator::close_atom, const std::string& campaign) { closed.push_back(campaign); },
              [](coordinator::slots_atom) { return std::uint32_t{3}; }};
    });
  }
};

}  // namespace leafcutter::tests
