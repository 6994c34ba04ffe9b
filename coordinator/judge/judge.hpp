// From a leaf's trace to its verdict: a pure function of scenario, plan and events. State is fresh for every leaf; one
// pass over the trace, memory bounded by the open obligations.
#pragma once

#include <string>
#include <vector>

#include "protocols/event.hpp"
#include "scenarios/model.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::coordinator {

/// Which events a sentence speaks of: (lane, seq) names an event for good.
struct EventRef {
  std::string lane;
  std::uint64_t seq = 0;
  bool operator==(const EventRef&) const = default;
};

struct Violation {
  std::string property;          ///< its name; "expectations" for a step's own
  std::string message;           ///< one sentence: what was found, what was demanded
  std::string key;               ///< of the obligation, or empty
  std::vector<EventRef> events;  ///< evidence, the offending event first
};

struct Judgement {
  scenarios::Verdict verdict = scenarios::Verdict::pass;
  scenarios::Reason reason = scenarios::Reason::held;
  std::string detail;                 ///< one sentence when not PASS(held)
  std::vector<Violation> violations;  ///< in scenario order
  std::vector<bool> fired;            ///< for each planned fault
  std::vector<std::string> open;      ///< obligations that the end of the trace left undecided
  std::vector<std::string> vacuous;   ///< properties whose antecedent never came about
};

/// `events` in the order recorded. A trace without `leaf.end` is judged as INFRA(runner_failed).
Judgement judge(const scenarios::Scenario& scenario, const scenarios::Plan& plan,
                const std::vector<protocols::Event>& events);

/// The sites of a trace (its `sites` event), sorted.
std::vector<scenarios::SiteCount> sites_of(const std::vector<protocols::Event>& events);

}  // namespace leafcutter::coordinator
