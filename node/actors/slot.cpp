#include "node/actors/slot.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "base/text.hpp"
#include "protocols/event.hpp"

namespace leafcutter::node {

namespace {

using actors::LeafOrder;
using actors::LeafReport;
using exited_atom = caf::atom_constant<caf::atom("exited")>;
using overdue_atom = caf::atom_constant<caf::atom("overdue")>;

/// The slot with what it says to itself.
using SlotSelf = actors::slot_actor::extend<
    // The leaf process ended. (execution, clean, detail)
    caf::reacts_to<exited_atom, std::string, bool, std::string>,
    // The leaf should have ended by now. (execution)
    caf::reacts_to<overdue_atom, std::string>>;

struct SlotState {
  static inline const char* name = "slot";

  ~SlotState() {
    // Nobody waits any more, but the leaf would go on.
    if (launcher && !execution.empty()) launcher->kill(execution);
  }

  std::string slot;
  std::shared_ptr<Launcher> launcher;
  std::shared_ptr<Courier> courier;

  std::string execution;  ///< of the running leaf; empty: none
  std::chrono::nanoseconds timeout{};
  caf::actor_clock::time_point started{};
  bool overdue = false, cancelled = false;
  caf::typed_response_promise<LeafReport> promise;
};

using SlotPointer = SlotSelf::stateful_pointer<SlotState>;

base::Expected<LeafJob> job_of(const LeafOrder& order, const Courier& courier) {
  const auto packed = protocols::unpack(order.plan);
  if (!packed) return packed.error();
  auto plan = scenarios::plan_from(*packed);
  if (!plan) return plan.error();
  LeafJob job;
  job.execution = order.execution;
  job.address = order.address;
  job.scenario = order.scenario;
  job.plan = std::move(*plan);
  job.events_endpoint = courier.leaf_endpoint();
  job.timeout = order.timeout;
  return job;
}

/// Answers, and is free for the next leaf.
void finish(SlotPointer self, bool clean, std::string detail) {
  auto& state = self->state;
  LeafReport report;
  report.execution = std::exchange(state.execution, {});
  report.slot = state.slot;
  if (state.cancelled) {
    state.courier->discard(report.execution);
    detail = "cancelled";
    clean = false;
  } else {
    // Everything that the leaf sent is stored when it is over: its end waited for that, or it is dead and the courier
    // empties the socket first.
    report.events = state.courier->close(report.execution);
  }
  if (state.overdue && !state.cancelled) {
    clean = false;
    detail = "timed out: the leaf did not end within its deadline of " + base::format_duration(state.timeout) +
             " and " + base::format_duration(leaf_grace) + " more" + (detail.empty() ? "" : "; " + detail);
  }
  report.clean = clean;
  report.detail = std::move(detail);
  report.wall_ms = std::chrono::duration_cast<std::chrono::milliseconds>(self->clock().now() - state.started).count();
  state.promise.deliver(std::move(report));
}

caf::result<LeafReport> execute(SlotPointer self, const LeafOrder& order) {
  auto& state = self->state;
  if (!state.execution.empty()) {
    LeafReport busy;
    busy.execution = order.execution;
    busy.slot = state.slot;
    busy.detail = "the slot runs " + state.execution;
    return busy;
  }
  state.promise = self->make_response_promise<LeafReport>();
  state.execution = order.execution;
  state.timeout = order.timeout;
  state.started = self->clock().now();
  state.overdue = state.cancelled = false;
  const auto job = job_of(order, *state.courier);
  if (!job) {
    finish(self, false, job.error().text());
    return state.promise;
  }
  const SlotSelf handle{self};
  const auto launched = state.launcher->launch(*job, [handle](LeafExit exit) {
    caf::anon_send(handle, exited_atom::value, std::move(exit.execution), exit.clean, std::move(exit.detail));
  });
  if (!launched) {
    finish(self, false, launched.error().text());
    return state.promise;
  }
  self->delayed_send(handle, state.timeout + leaf_grace, overdue_atom::value, order.execution);
  return state.promise;
}

SlotSelf::behavior_type slot(SlotPointer self, const std::string& name, const std::shared_ptr<Launcher>& launcher,
                             const std::shared_ptr<Courier>& courier) {
  self->state.slot = name;
  self->state.launcher = launcher;
  self->state.courier = courier;
  return {
      [=](actors::execute_atom, const LeafOrder& order) { return execute(self, order); },
      [=](actors::cancel_atom, const std::string& execution) {
        if (self->state.execution != execution) return;
        self->state.cancelled = true;
        self->state.launcher->kill(execution);
      },
      [=](exited_atom, const std::string& execution, bool clean, std::string& detail) {
        if (self->state.execution == execution) finish(self, clean, std::move(detail));
      },
      [=](overdue_atom, const std::string& execution) {
        auto& state = self->state;
        if (state.execution != execution) return;
        if (state.overdue) return finish(self, false, "and it could not be killed");
        state.overdue = true;
        state.launcher->kill(execution);
        self->delayed_send(SlotSelf{self}, leaf_grace, overdue_atom::value, execution);
      },
  };
}

}  // namespace

actors::slot_actor spawn_slot(caf::local_actor& parent, std::string name, std::shared_ptr<Launcher> launcher,
                              std::shared_ptr<Courier> courier) {
  return parent.spawn<caf::linked>(slot, std::move(name), std::move(launcher), std::move(courier));
}

}  // namespace leafcutter::node
