// Waits until the system under test is quiet: the values of quiet.hpp, fed with what the leaf sees.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "node/leaf/context.hpp"
#include "node/leaf/quiet.hpp"
#include "node/leaf/services.hpp"

namespace leafcutter::node {

/// Used by all threads of the workload.
class Quiescence {
 public:
  Quiescence(LeafContext& context, Services& services);

  /// Waits until nothing has moved for `quiet` and nothing is under way (see QuietWait); false when that took longer
  /// than `within`, and `busy` says what is.
  bool wait(std::chrono::nanoseconds quiet, std::chrono::nanoseconds within, std::vector<std::string>& busy);

 private:
  Silence silence() const;

  LeafContext& context_;
  Services& services_;
  mutable std::mutex mutex_;
  Silence silence_;  ///< as the last wait for quiet left it
};

}  // namespace leafcutter::node
