// Faults of a Run that wait for something to happen in it: a connection that was opened, a fault that struck, on their
// own proxy or on another one. Until then they are not in force.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "node/runs/run.hpp"

namespace leafcutter::node::runs {

/// What can be waited for, as documents say it: types of records of the journal.
std::vector<std::string> awaited_records();
/// Nothing: there is none of that name.
std::optional<proxy::EventKind> awaited_kind(std::string_view record);
std::vector<std::string> awaited_causes();
std::optional<proxy::Cause> awaited_cause(std::string_view name);

/// The proxy's faults at the beginning of the phase: those that wait are left out.
proxy::FaultSet before_events(const Phase& phase, const std::string& proxy);

/// Heard on the engine's own thread, asked from another one.
class EventGates {
 public:
  /// A fault that is in force from now on.
  struct Opened {
    std::string proxy, fault;
    Awaited after;
  };

  EventGates();

  /// Nothing has happened yet in this phase. What was before, for restore().
  struct State;
  std::shared_ptr<State> begin(const Phase& phase);
  void restore(std::shared_ptr<State> before);

  void heard(const proxy::Event& event);
  /// Readable when open() would name some.
  int fd() const { return news_.get(); }
  /// Those whose event was seen since the last call.
  std::vector<Opened> open();

  /// The proxy's faults now.
  proxy::FaultSet in_force(const Phase& phase, const std::string& proxy) const;

 private:
  base::UniqueFd news_;
  mutable std::mutex mutex_;  ///< of what follows
  std::shared_ptr<State> state_;
};

}  // namespace leafcutter::node::runs
