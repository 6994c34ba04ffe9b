#include "node/runs/event_gates.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "node/runs/records.hpp"

namespace leafcutter::node::runs {
namespace {

using proxy::Cause;
using proxy::EventKind;

constexpr std::array waited_for = {EventKind::accepted, EventKind::connected,   EventKind::connect_failed,
                                   EventKind::struck,   EventKind::passed_over, EventKind::closed};
constexpr std::array causes = {Cause::finished,    Cause::client_reset, Cause::upstream_reset, Cause::fault,
                               Cause::refused,     Cause::timed_out,    Cause::unreachable,    Cause::unresolved,
                               Cause::client_left, Cause::idle,         Cause::failed};

proxy::FaultSet without(const Phase& phase, const std::string& proxy, const std::vector<std::string>& closed) {
  auto set = phase.sets.at(proxy);
  std::erase_if(set.faults, [&](const proxy::Fault& fault) {
    return std::find(closed.begin(), closed.end(), fault.id) != closed.end();
  });
  return set;
}

}  // namespace

std::vector<std::string> awaited_records() {
  std::vector<std::string> names;
  for (const auto kind : waited_for) names.emplace_back(record_type(kind));
  return names;
}

std::optional<EventKind> awaited_kind(std::string_view record) {
  const auto* found =
      std::find_if(waited_for.begin(), waited_for.end(), [&](EventKind kind) { return record_type(kind) == record; });
  if (found == waited_for.end()) return std::nullopt;
  return *found;
}

std::vector<std::string> awaited_causes() {
  std::vector<std::string> names;
  for (const auto cause : causes) names.emplace_back(name_of(cause));
  return names;
}

std::optional<Cause> awaited_cause(std::string_view name) {
  const auto* found = std::find_if(causes.begin(), causes.end(), [&](Cause cause) { return name_of(cause) == name; });
  if (found == causes.end()) return std::nullopt;
  return *found;
}

proxy::FaultSet before_events(const Phase& phase, const std::string& proxy) {
  std::vector<std::string> closed;
  if (const auto waiting = phase.awaited.find(proxy); waiting != phase.awaited.end())
    for (const auto& [fault, after] : waiting->second) closed.push_back(fault);
  return without(phase, proxy, closed);
}

struct EventGates::State {
  struct Gate {
    std::string proxy, fault;
    Awaited after;
    std::uint64_t seen = 0;
    bool is_open() const { return seen >= after.count; }
  };
  std::string phase;
  std::vector<Gate> gates;
  std::vector<Opened> news;
};

EventGates::EventGates() : news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), state_(std::make_shared<State>()) {}

std::shared_ptr<EventGates::State> EventGates::begin(const Phase& phase) {
  auto next = std::make_shared<State>();
  next->phase = phase.name;
  for (const auto& [proxy, faults] : phase.awaited)
    for (const auto& [fault, after] : faults) next->gates.push_back({proxy, fault, after, 0});
  const std::lock_guard lock(mutex_);
  return std::exchange(state_, std::move(next));
}

void EventGates::restore(std::shared_ptr<State> before) {
  const std::lock_guard lock(mutex_);
  state_ = std::move(before);
  if (!state_->news.empty()) (void)::eventfd_write(news_.get(), 1);
}

void EventGates::heard(const proxy::Event& event) {
  const std::lock_guard lock(mutex_);
  // What an earlier phase did may be heard late.
  if (event.phase != state_->phase) return;
  for (auto& gate : state_->gates) {
    if (gate.is_open() || !gate.after.matches(event)) continue;
    ++gate.seen;
    if (!gate.is_open()) continue;
    state_->news.push_back({gate.proxy, gate.fault, gate.after});
    (void)::eventfd_write(news_.get(), 1);
  }
}

std::vector<EventGates::Opened> EventGates::open() {
  eventfd_t rings = 0;
  (void)::eventfd_read(news_.get(), &rings);
  const std::lock_guard lock(mutex_);
  return std::exchange(state_->news, {});
}

proxy::FaultSet EventGates::in_force(const Phase& phase, const std::string& proxy) const {
  std::vector<std::string> closed;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& gate : state_->gates)
      if (gate.proxy == proxy && !gate.is_open()) closed.push_back(gate.fault);
  }
  return without(phase, proxy, closed);
}

}  // namespace leafcutter::node::runs
