#include "node/actors/node.hpp"

#include <algorithm>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <optional>
#include <set>

#include "node/actors/slot.hpp"
#include "node/actors/workbench.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::node {

namespace {

using namespace std::chrono_literals;
using actors::LeafReport;
using actors::Lease;
using actors::ScenarioText;
using actors::Welcome;

using reach_atom = caf::atom_constant<caf::atom("reach")>;
using beat_atom = caf::atom_constant<caf::atom("beat")>;
using leave_atom = caf::atom_constant<caf::atom("leave")>;

/// The node with what it says to itself.
using NodeSelf = actors::node_actor::extend<
    // Dials the coordinator, or says hello to it.
    caf::reacts_to<reach_atom>,
    // Time to renew. (session)
    caf::reacts_to<beat_atom, std::uint64_t>,
    // Ends once all events are delivered, or after so many looks more.
    caf::reacts_to<leave_atom, std::uint32_t>>;

/// A remote coordinator that does not answer within this is asked again; CAF answers no request whose connection died.
constexpr auto answer_within = 3s;
constexpr auto first_retry = 250ms;
constexpr auto last_retry = 4s;
/// A drained node waits this long for its last events to be acknowledged, looking so often.
constexpr auto look_every = 50ms;
constexpr std::uint32_t looks = 200;

struct NodeState {
  static inline const char* name = "node";

  NodeOptions options;
  std::shared_ptr<Launcher> launcher;
  std::shared_ptr<Courier> courier;
  std::optional<Workbench> bench;
  std::vector<actors::slot_actor> slots;
  std::map<std::string, std::string> scenarios;  ///< identity -> why it cannot be run here, or empty

  actors::coordinator_actor coordinator;  ///< none while a remote one is not connected
  std::string host;                       ///< of a remote coordinator; empty: a local one
  std::uint16_t port = 0;
  std::chrono::milliseconds retry = first_retry;
  std::uint64_t session = 0;  ///< 0: not admitted
  caf::timespan renew_every{};
  bool draining = false;
};

using NodePointer = NodeSelf::stateful_pointer<NodeState>;

void news(NodePointer self, const std::string& text) {
  if (self->state.options.on_news) self->state.options.on_news(text);
}

void stop(NodePointer self, const caf::error& reason) {
  for (const auto& slot : self->state.slots) self->send_exit(slot, caf::exit_reason::user_shutdown);
  self->quit(reason);
}

void reach_later(NodePointer self) {
  auto& state = self->state;
  self->delayed_send(NodeSelf{self}, state.retry, reach_atom::value);
  state.retry = std::min<std::chrono::milliseconds>(state.retry * 2, last_retry);
}

/// Kills what runs: it is leased to others, or nobody wants it.
void abandon(NodePointer self, const std::vector<Workbench::Running>& running) {
  for (const auto& each : running) self->send(self->state.slots[each.slot], actors::cancel_atom_v, each.execution);
}

void ask_for_work(NodePointer self) {
  auto& state = self->state;
  if (state.session == 0) return;
  self->send(state.coordinator, actors::want_atom_v, state.session, state.draining ? 0u : state.bench->free());
}

void leave_when_idle(NodePointer self) {
  auto& state = self->state;
  if (state.draining && state.bench->idle()) self->send(NodeSelf{self}, leave_atom::value, looks);
}

// --- running
// ----------------------------------------------------------------------------------------------------------

void report(NodePointer self, const Workbench::Task& task, LeafReport report) {
  auto& state = self->state;
  report.session = task.session;
  report.fence = task.fence;
  if (state.session == task.session) self->send(state.coordinator, actors::done_atom_v, std::move(report));
}

void refuse(NodePointer self, const Workbench::Task& task, const std::string& why) {
  LeafReport refusal;
  refusal.execution = task.order.execution;
  refusal.detail = why;
  report(self, task, std::move(refusal));
}

void run(NodePointer self);

void finished(NodePointer self, std::size_t slot, LeafReport result) {
  if (const auto task = self->state.bench->finished(slot)) report(self, *task, std::move(result));
  run(self);
  ask_for_work(self);
  leave_when_idle(self);
}

void start(NodePointer self, const Workbench::Start& start) {
  auto& state = self->state;
  const auto known = state.scenarios.find(start.task.order.scenario);
  if (known == state.scenarios.end() || !known->second.empty()) {
    refuse(self, start.task,
           known == state.scenarios.end() ? "unknown scenario " + start.task.order.scenario : known->second);
    state.bench->finished(start.slot);
    return;
  }
  // No time-out here: the slot is in this process and bounds its leaf itself.
  self->request(state.slots[start.slot], caf::infinite, actors::execute_atom_v, start.task.order)
      .then([=, slot = start.slot](LeafReport& result) { finished(self, slot, std::move(result)); },
            [=, slot = start.slot, execution = start.task.order.execution](caf::error& error) {
              LeafReport failed;
              failed.execution = execution;
              failed.detail = "the slot failed: " + self->system().render(error);
              finished(self, slot, std::move(failed));
            });
}

/// Starts whatever can start; a task that is refused leaves its slot to the next.
void run(NodePointer self) {
  for (auto starts = self->state.bench->start(); !starts.empty(); starts = self->state.bench->start()) {
    for (const auto& each : starts) start(self, each);
  }
}

/// Empty when the scenario can be run here.
std::string learn(NodeState& state, const ScenarioText& text) {
  scenarios::LoadOptions options;
  options.variant = text.variant;
  options.check_programs = false;
  const auto loaded = scenarios::load_text(text.text, text.file, options);
  if (!loaded.scenario) {
    return "this node cannot read the scenario: " + (loaded.errors.empty() ? "unknown" : loaded.errors.front().text());
  }
  // Results of different programs must not meet under one name.
  if (scenarios::identity(*loaded.scenario) != text.identity) {
    return "the programs below " + loaded.scenario->folder +
           " are not those of the coordinator; a copy of its folder would do";
  }
  const auto given = state.launcher->give(*loaded.scenario, text.identity);
  return given ? std::string() : given.error().text();
}

// --- the coordinator
// --------------------------------------------------------------------------------------------------

void welcomed(NodePointer self, const Welcome& welcome) {
  auto& state = self->state;
  if (!welcome.admitted) {
    news(self, "refused: " + welcome.refusal);
    return stop(self, caf::exit_reason::user_shutdown);
  }
  // An older session's work has been leased again.
  abandon(self, state.bench->cancel_all());
  state.session = welcome.session;
  state.renew_every = welcome.renew_every;
  state.retry = first_retry;
  if (!welcome.events_endpoint.empty()) state.courier->connect(welcome.events_endpoint);
  self->delayed_send(NodeSelf{self}, state.renew_every, beat_atom::value, state.session);
  news(self, "admitted");
  ask_for_work(self);
}

void say_hello(NodePointer self) {
  auto& state = self->state;
  actors::NodeInfo info;
  info.name = state.options.name;
  info.slots = state.options.slots;
  info.incarnation = state.options.incarnation;
  info.capabilities = state.options.capabilities;
  self->request(state.coordinator, answer_within, actors::hello_atom_v, info, actors::node_actor{self})
      .then([=](const Welcome& welcome) { welcomed(self, welcome); }, [=](const caf::error&) { reach_later(self); });
}

void dial(NodePointer self) {
  auto& state = self->state;
  self->request(self->system().middleman().actor_handle(), answer_within, caf::connect_atom::value, state.host,
                state.port)
      .then(
          [=](const caf::node_id&, const caf::strong_actor_ptr& peer, const std::set<std::string>& interface) {
            const bool ours =
                peer && self->system().assignable(interface, self->system().message_types<actors::coordinator_actor>());
            if (!ours) return reach_later(self);
            self->state.coordinator = caf::actor_cast<actors::coordinator_actor>(peer);
            // First, so that a connection that is lost already is noticed.
            self->monitor(self->state.coordinator);
            say_hello(self);
          },
          [=](const caf::error&) { reach_later(self); });
}

void reach(NodePointer self) {
  auto& state = self->state;
  if (state.session != 0 || state.draining) return;
  if (state.coordinator)
    say_hello(self);
  else
    dial(self);
}

void coordinator_lost(NodePointer self) {
  auto& state = self->state;
  abandon(self, state.bench->cancel_all());
  state.session = 0;
  if (state.host.empty() || state.draining) return stop(self, caf::exit_reason::user_shutdown);
  state.coordinator = nullptr;
  news(self, "the connection to the coordinator is lost");
  reach_later(self);
}

NodeSelf::behavior_type behaviour(NodePointer self) {
  self->set_down_handler([=](const caf::down_msg& down) {
    if (self->state.coordinator && down.source == self->state.coordinator.address()) coordinator_lost(self);
  });
  return {
      [=](actors::learn_atom, const ScenarioText& text) {
        self->state.scenarios[text.identity] = learn(self->state, text);
      },
      [=](actors::lease_atom, const Lease& lease) {
        if (lease.session != self->state.session || self->state.draining) return;
        self->state.bench->add(lease);
        run(self);
        ask_for_work(self);
      },
      [=](actors::cancel_atom, std::uint64_t fence) {
        abandon(self, self->state.bench->cancel(fence));
        ask_for_work(self);
      },
      [=](actors::drain_atom) {
        self->state.draining = true;
        self->state.bench->drop_waiting();
        ask_for_work(self);
        leave_when_idle(self);
      },
      [=](reach_atom) { reach(self); },
      [=](beat_atom, std::uint64_t session) {
        auto& state = self->state;
        if (session != state.session) return;
        self->send(state.coordinator, actors::renew_atom_v, session);
        ask_for_work(self);
        self->delayed_send(NodeSelf{self}, state.renew_every, beat_atom::value, session);
      },
      [=](leave_atom, std::uint32_t left) {
        if (left == 0 || self->state.courier->flush(0ms) == 0) return stop(self, caf::exit_reason::user_shutdown);
        self->delayed_send(NodeSelf{self}, look_every, leave_atom::value, left - 1);
      },
  };
}

NodeSelf::behavior_type node(NodePointer self, const NodeOptions& options, const std::shared_ptr<Launcher>& launcher,
                             const std::shared_ptr<Courier>& courier, const actors::coordinator_actor& coordinator,
                             const std::string& host, std::uint16_t port) {
  auto& state = self->state;
  state.options = options;
  state.launcher = launcher;
  state.courier = courier;
  state.bench.emplace(options.name, options.slots);
  for (std::size_t slot = 0; slot < options.slots; ++slot) {
    state.slots.push_back(spawn_slot(*self, state.bench->slot_name(slot), launcher, courier));
  }
  state.host = host;
  state.port = port;
  state.coordinator = coordinator;
  if (coordinator) self->monitor(coordinator);
  self->send(NodeSelf{self}, reach_atom::value);
  return behaviour(self);
}

}  // namespace

actors::node_actor spawn_node(caf::actor_system& system, NodeOptions options, std::shared_ptr<Launcher> launcher,
                              std::shared_ptr<Courier> courier, actors::coordinator_actor coordinator) {
  return system.spawn(node, std::move(options), std::move(launcher), std::move(courier), std::move(coordinator),
                      std::string(), std::uint16_t{0});
}

actors::node_actor connect_node(caf::actor_system& system, NodeOptions options, std::shared_ptr<Launcher> launcher,
                                std::shared_ptr<Courier> courier, const std::string& host, std::uint16_t port) {
  return system.spawn(node, std::move(options), std::move(launcher), std::move(courier), actors::coordinator_actor{},
                      host, port);
}

}  // namespace leafcutter::node
