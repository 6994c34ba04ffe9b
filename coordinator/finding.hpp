// What a user gets in the end: failing leaves with the same signature, the smallest plan that still fails, how
// reliably, and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/judge/judge.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::coordinator {

using scenarios::Value;

struct Finding {
  std::string signature;  ///< 12 hex digits
  std::string property;
  std::string message;                 ///< the violation's sentence in the minimal leaf
  scenarios::Address leaf;             ///< the first explored leaf that failed this way; replays the failure
  std::vector<std::string> exemplars;  ///< up to 3 addresses
  std::uint64_t seen = 1;              ///< explored leaves with this signature
  scenarios::Plan plan;                ///< minimal
  bool one_minimal = false;
  unsigned runs = 0, fails = 0;  ///< of the minimal plan, while it was confirmed
  bool control_passed = false;   ///< the fault-free control, at the same time, held
  bool confirmed = false;
  std::string failing_execution;         ///< whose trace shows the minimal plan fail
  std::string passing_execution;         ///< nearest passing neighbour, or empty
  std::vector<std::string> explanation;  ///< at most 40 lines
};

Value to_value(const Finding& finding);
base::Expected<Finding> finding_from(const Value& value);

/// At most 40 lines of at most 100 columns: what failed, the minimal plan, the events that matter in time order by
/// lane, the first event where the passing neighbour went another way, and how to replay. `passing` may be empty.
std::vector<std::string> explain(const scenarios::Scenario& scenario, const Finding& finding,
                                 const std::vector<protocols::Event>& failing,
                                 const std::vector<protocols::Event>& passing);

/// One line for people: "shop -> broker  POST /announce  {id: order-1}  -> 201".
std::string one_line(const protocols::Event& event);

}  // namespace leafcutter::coordinator
