// What a leaf process is told, and how it answers when it is over.
#pragma once

#include <chrono>
#include <string>

#include "base/error.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::node {

struct LeafJob {
  std::string execution;  ///< unique: "<address>#<attempt>"
  std::string address;
  std::string scenario;  ///< identity of a scenario that the launcher has been given
  scenarios::Plan plan;
  std::string events_endpoint;  ///< where the leaf's DEALER connects: "ipc://..."; below the launcher's run folder
  std::chrono::nanoseconds timeout{std::chrono::seconds(30)};
};

/// How the leaf's process ended; what happened in it is in its events.
struct LeafExit {
  std::string execution;
  bool clean = false;  ///< the leaf said `leaf.end` and exited 0
  std::string detail;  ///< "killed by signal 9", "exit status 70: <last line of its standard error>"
};

std::string encode(const LeafJob& job);
base::Expected<LeafJob> decode_leaf_job(std::string_view bytes);

}  // namespace leafcutter::node
