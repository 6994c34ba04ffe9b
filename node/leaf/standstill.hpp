// Brings a running service to a standstill (SIGSTOP) and lets it go on (SIGCONT): every process of its pid namespace
// but the first, which is ours and only waits for the others. SIGKILL ends stopped processes like any, so nothing of a
// leaf that ends, or is killed, stays behind.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node {

/// Of one attempt of a service. Holds no process; when they are gone there is nothing to stop. Thread-safe.
class Standstill {
 public:
  /// `init`: the first process of the service's pid namespace, which nobody has reaped yet. Errors: io.
  static base::Expected<std::shared_ptr<Standstill>> of(pid_t init);

  /// Returns when no process of the service runs any code of its own, and how many that are; 0 when none is there, and
  /// when they could not be brought to that in two seconds: then they go on.
  /// Processes that had stopped by themselves are left alone. Several may want the standstill at once: it lasts until
  /// the last of them has let go.
  unsigned stop();

  /// Undoes one `stop` that did not return 0. Returns how many processes run again: 0 while somebody else still holds
  /// the service, and when nothing is left of it.
  unsigned go_on();

  /// Every process of the service is gone.
  void ended();
  bool has_ended() const;
  /// Called by `ended`, on its thread; at once when that has been.
  void on_ended(std::function<void()> told);

 private:
  explicit Standstill(base::UniqueFd init) : init_(std::move(init)) {}
  base::UniqueFd processes() const;
  struct Look {
    unsigned count = 0;   ///< processes that are, or shall be, at a standstill
    unsigned moving = 0;  ///< those of them that are not
  };
  unsigned stop_new(int proc);
  Look look(int proc);
  unsigned let_go(int proc) const;

  const base::UniqueFd init_;  ///< /proc/PID of it: never another process, even when the number is used again
  mutable std::mutex mutex_;
  unsigned holders_ = 0;
  std::set<pid_t> signalled_;      ///< as their own namespace numbers them
  std::set<pid_t> by_themselves_;  ///< had stopped already
  bool ended_ = false;
  std::vector<std::function<void()>> told_;
};

}  // namespace leafcutter::node
