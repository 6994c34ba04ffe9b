// Carries out the process faults that strike just before a step of the workload, or when an event was seen: crash,
// power loss, restart storm, pause. What a service is started with is in start_faults.hpp.
#pragma once

#include <functional>
#include <string>

#include "node/leaf/context.hpp"
#include "node/leaf/event_strikes.hpp"
#include "node/leaf/quiescence.hpp"
#include "node/leaf/services.hpp"

namespace leafcutter::node {

/// Called from the workload's threads.
class ProcessFaults {
 public:
  /// `awaiting` is told what comes next, for the message of a leaf that runs out of time.
  ProcessFaults(LeafContext& context, Services& services, Quiescence& quiescence,
                std::function<void(const std::string&)> awaiting);

  /// The step with this label is about to begin: whatever is planned for it strikes. Returns when it may begin.
  void strike(const std::string& label);

  /// Waits, ten seconds at most, until no service is on its way up.
  void wait_steady(const std::string& before);

 private:
  struct Storm;
  /// `when` says it in the evidence: {"before_step": label} or {"after": event}.
  void carry_out(const SiteBook::Strike& hit, const Value& when);
  void wait_quiet();
  void crash(const SiteBook::Strike& hit, const Value& when, bool power_lost);
  void storm(const SiteBook::Strike& hit, const Value& when);
  void pause(const SiteBook::Strike& hit, const Value& when);

  LeafContext& context_;
  Services& services_;
  Quiescence& quiescence_;
  std::function<void(const std::string&)> awaiting_;
  /// A search that may part services needs to know the steps before which it can; nobody else is to see such sites.
  const bool counts_workload_steps_;
  EventStrikes event_strikes_;  ///< last: its thread uses all of the above
};

}  // namespace leafcutter::node
