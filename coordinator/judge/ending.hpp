// How a trace ends decides what the absence of an event means: only a leaf that completed and settled shows that
// something did not happen (finite-trace semantics; De Giacomo and Vardi, IJCAI 2013). Cut short, it shows nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "protocols/event.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::coordinator {

/// Collects, event by event, what the judgement at the end depends on.
class Ending {
 public:
  enum class Cause { missing, completed, timeout, infra };

  void see(const protocols::Event& event);

  Cause cause() const { return cause_; }
  std::uint64_t dropped() const { return dropped_; }
  const std::string& detail() const { return detail_; }  ///< of `leaf.end`
  scenarios::Reason infra_reason() const;                ///< runner_failed unless the leaf named another INFRA reason

  /// Why nothing can be concluded from what is not in the trace; nullopt: the trace is the whole story.
  std::optional<scenarios::Reason> absence_unknown() const;
  /// "the leaf's deadline passed", for messages.
  std::string why_unknown() const;

  /// A deadline `within` after `since` or the last readiness after a (re)start, whichever is later.
  std::chrono::nanoseconds deadline(std::chrono::nanoseconds since, std::chrono::nanoseconds within) const;
  /// The trace goes on until after `deadline`, without a loss and with every service up: what is not there was not
  /// there in time.
  bool observed_past(std::chrono::nanoseconds deadline) const;

 private:
  Cause cause_ = Cause::missing;
  std::string reason_, detail_;
  std::uint64_t dropped_ = 0;
  std::optional<bool> settled_;
  std::vector<std::string> busy_;
  std::chrono::nanoseconds last_ready_{0}, last_{0};
  std::set<std::string> down_;
};

}  // namespace leafcutter::coordinator
