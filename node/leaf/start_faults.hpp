// The faults that a service is started with: limits, and clocks that are off. Their site is (service, "start",
// "start"), visited at each start; the occurrence is the attempt.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "node/leaf/context.hpp"
#include "node/leaf/start_conditions.hpp"

namespace leafcutter::node {

class StartFaults {
 public:
  StartFaults(LeafContext& context, std::string service);

  /// The service is about to be started: what with. A start is a site only where the scenario, or the plan, has a fault
  /// for it.
  StartConditions about_to_start();

  /// It was, and this was read back.
  void started(const StartEvidence& evidence);

  /// Its process, and everything that it was started with, is gone.
  void ended();

 private:
  LeafContext& context_;
  std::string service_;
  const bool counted_;
  std::vector<SiteBook::Strike> striking_;
};

}  // namespace leafcutter::node
