// What passes between a campaign and whoever inquires into its failures (casebook.hpp): whole copies, so that the two
// can live apart.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/campaign/grouping.hpp"
#include "coordinator/campaign/order.hpp"

namespace leafcutter::coordinator {

/// An explored leaf's plan and what it came to.
struct Explored {
  scenarios::Plan plan;
  Result result;
};

/// A failing leaf that may stand for its group.
struct Suspect {
  Failure failure;
  Result leaf;
  std::vector<Explored> explored;  ///< that strikes nowhere but where the failing plan does
};

/// A failing group to inquire into: its suspects are tried in turn until one is confirmed.
struct CaseFile {
  std::string name;  ///< the group's provisional signature
  std::vector<Suspect> suspects;
};

/// Cases that are opened together: their answer tells of all of them.
using Cases = std::vector<std::shared_ptr<const CaseFile>>;

/// What was found out about a failure.
struct Conclusion {
  std::string property;
  std::string message;
  scenarios::Address leaf;
  scenarios::Plan plan;
  bool one_minimal = false, control_passed = false, confirmed = false;
  unsigned runs = 0, fails = 0;
  std::string failing_execution, passing_execution;
};

/// How far the inquiries came.
struct Inquired {
  std::vector<Order> orders;                    ///< to run; confirmations before minimization
  std::map<std::string, Conclusion> concluded;  ///< by the case's name, each once
};

}  // namespace leafcutter::coordinator
