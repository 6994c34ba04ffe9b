// What quiescence is decided by: when something of the system under test last moved, and what is still under way.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace leafcutter::node {

/// Thread-safe. Effects of injected faults (an injected delay that runs out, say) are not to be reported as movement.
class Activity {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  /// Bytes passed a link, a watched file was written, a process started or ended.
  void touch() { last_.store(std::chrono::steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed); }

  Instant last() const { return Instant(Instant::duration(last_.load(std::memory_order_relaxed))); }

  /// Something that must end before the leaf is quiet: "request shop -> broker POST /announce", "restart shop".
  void begin(const std::string& what) {
    touch();
    const std::lock_guard lock(mutex_);
    ++busy_[what];
  }
  void end(const std::string& what) {
    touch();
    const std::lock_guard lock(mutex_);
    const auto found = busy_.find(what);
    if (found != busy_.end() && --found->second <= 0) busy_.erase(found);
  }

  std::vector<std::string> busy() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [what, count] : busy_) names.push_back(what);
    return names;
  }

 private:
  std::atomic<std::chrono::steady_clock::rep> last_{std::chrono::steady_clock::now().time_since_epoch().count()};
  mutable std::mutex mutex_;
  std::map<std::string, int> busy_;
};

}  // namespace leafcutter::node
