// The end of one attempt of a service, as the supervisor's thread and the event loop settle it between them: either may
// begin it, and neither may wait for the other for ever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace leafcutter::node {

class Fate {
 public:
  /// From the supervisor's thread: it wants the attempt killed, and will wait until it is gone. False: it has gone
  /// already, and there is nothing to wait for. The power loss is noted in either case.
  bool doom(bool power_lost) {
    const std::lock_guard lock(mutex_);
    power_lost_ = power_lost_ || power_lost;
    waits_ = !closed_;
    return waits_;
  }

  /// From the supervisor's thread, after `doom`. False at the deadline.
  bool wait_gone(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [this] { return gone_; });
  }

  /// From the event loop: no process is left. True: the supervisor's thread waits, and does nothing else, until
  /// `conclude`; false: it will not, and may be joined.
  bool close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    return waits_;
  }

  bool power_lost() const {
    const std::lock_guard lock(mutex_);
    return power_lost_;
  }

  void conclude() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool waits_ = false, closed_ = false, gone_ = false, power_lost_ = false;
};

}  // namespace leafcutter::node
