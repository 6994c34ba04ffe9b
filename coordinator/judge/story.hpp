// Which events of a failing trace tell why it failed, and where a passing neighbour of it went another way.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/judge/judge.hpp"
#include "protocols/event.hpp"

namespace leafcutter::coordinator {

/// Did `event` happen before `later`, or is it `later` itself? By vector clocks (Fidge 1988, Mattern 1989).
bool in_cone(const protocols::Event& event, const protocols::Event& later);

/// Does some attribute equal the key, at any depth?
bool mentions(const protocols::Value& attrs, const std::string& key);

/// Indices into `events`, in the order recorded, of the `limit` events that matter most: evidence and faults; exits and
/// restarts, what shares the obligation's key; then what the evidence causally depends on, nearest first.
std::vector<std::size_t> relevant(const std::vector<protocols::Event>& events, const Violation& violation,
                                  std::size_t limit);

/// The plan's faults in the order in which they struck; those that did not come last. They point into the plan.
std::vector<const scenarios::Fault*> in_order_of_strikes(const scenarios::Plan& plan,
                                                         const std::vector<protocols::Event>& events);

/// What a lane did in two runs of nearly the same plan, up to where they part.
struct Divergence {
  std::string lane;
  std::optional<std::size_t> failing, passing;  ///< indices of the first events that differ; none: the lane ended here
};

/// The first difference of every lane that has one, in time order, those before the first fault left out where there
/// are others. Times, processes, ports and connection numbers do not count; nor do kinds that only a plan makes
/// visible. What the services wrote is compared where nothing else differs.
std::vector<Divergence> divergences(const std::vector<protocols::Event>& failing,
                                    const std::vector<protocols::Event>& passing, const std::string& key);

}  // namespace leafcutter::coordinator
