// Asks a service whether it is ready, again and again with growing pauses, from inside its own network (no link is
// passed, no site counted).
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "node/leaf/client.hpp"

namespace leafcutter::node {

class Probe {
 public:
  using Attempt = std::function<base::Status(Deadline)>;  ///< once, in the service's network

  /// Runs in a thread of its own until an attempt succeeds (`ready` is called from that thread), the deadline passes or
  /// the probe is dropped. An attempt under way when the probe is dropped ends on its own and calls nothing.
  static std::shared_ptr<Probe> start(int network, int home, Attempt attempt, Deadline deadline,
                                      std::function<void()> ready);
  ~Probe();

  /// Why the last attempt failed.
  std::string last_failure() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The pauses of every kind of probing: 1 ms, doubled up to 50 ms.
std::chrono::milliseconds next_pause(std::chrono::milliseconds pause);
inline constexpr std::chrono::milliseconds first_pause{1};

}  // namespace leafcutter::node
