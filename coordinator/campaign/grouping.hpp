// Failing leaves that are most likely one defect, before anything is run to find out: one group is confirmed and
// minimized once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/ledger/ledger.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::coordinator {

/// A leaf that violated a property; one that violated two is two failures.
struct Failure {
  scenarios::Address address;
  std::string property;
  Plan plan;
};

/// The properties that a result violated, each once, in its order; empty unless it is FAIL.
std::vector<std::string> violated(const Result& result);

struct FailureGroup {
  std::string property;
  std::vector<Failure> members;     ///< same signature before minimization; fewest faults, then lowest address first
  std::vector<Failure> attributed;  ///< a member's faults and more: explained by it, never run again
  std::size_t candidates = 0;       ///< members of the epoch that opened the group: only these may represent it
};

class FailureGroups {
 public:
  /// The failures of one epoch, in any order, once it is complete; epochs in their order. True when something was
  /// added.
  bool add(std::vector<Failure> failures);

  /// By provisional signature.
  const std::map<std::string, FailureGroup>& all() const { return groups_; }

 private:
  FailureGroup* explaining(const Failure& failure);
  std::map<std::string, FailureGroup> groups_;
};

}  // namespace leafcutter::coordinator
