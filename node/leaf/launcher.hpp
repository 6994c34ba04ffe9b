// Starts leaf processes. One small single-threaded process (the nursery) is started once from our own binary; it holds
// the parsed scenario and clones every leaf from itself, each in its own user, mount, pid, network, ipc and uts
// namespaces. It dies with the node, and every leaf dies with it; when it dies alone, the next leaf starts another one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "node/leaf/job.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

/// The descriptor at which the nursery finds its end of the launcher's channel: `run_nursery(nursery_socket)`.
inline constexpr int nursery_socket = 3;

class Launcher {
 public:
  using OnExit = std::function<void(LeafExit)>;  ///< called from the launcher's own thread

  /// `program` is our own binary (/proc/self/exe); it is run as `program leaf-nursery`. `run_folder` holds the node's
  /// sockets and is visible in every leaf at the same path.
  static base::Expected<std::unique_ptr<Launcher>> start(const std::string& program, const std::string& run_folder);
  virtual ~Launcher();

  /// Gives the nursery a scenario; jobs name it by identity. Giving it again is a no-op.
  virtual base::Status give(const scenarios::Scenario& scenario, const std::string& identity) = 0;

  /// Starts a leaf; `on_exit` is called exactly once, also when the nursery dies. Errors: unavailable when nurseries
  /// die faster than is reasonable (see RestartBudget).
  virtual base::Status launch(const LeafJob& job, OnExit on_exit) = 0;

  /// SIGKILL to the leaf's pid 1, and so to everything in it. `on_exit` follows.
  virtual void kill(const std::string& execution) = 0;
};

/// The nursery's main function; never returns to the caller's program. `socket` is its end of the launcher's channel.
int run_nursery(int socket);

}  // namespace leafcutter::node
