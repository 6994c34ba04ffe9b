// What a program is started with beside its arguments: limits, and clocks that are ahead or behind. It is held just
// before it is executed until the limits are set from outside and everything has been read back from the kernel.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace leafcutter::node {

struct StartConditions {
  std::map<int, std::uint64_t> limits;                   ///< RLIMIT_*: the soft and the hard limit
  std::optional<std::chrono::nanoseconds> clock_offset;  ///< of the monotonic and the boot clock

  bool any() const { return !limits.empty() || clock_offset.has_value(); }
  /// The kernel counts processes by user and user namespace: a limit of them holds for one service alone only in a user
  /// namespace of its own.
  bool own_user() const;
};

/// As the kernel says they are, of the process that becomes the program.
struct StartEvidence {
  pid_t pid = 0;  ///< as the leaf sees it
  struct Limit {
    std::uint64_t soft = 0, hard = 0;
  };
  std::map<int, Limit> limits;
  std::chrono::nanoseconds monotonic{0}, boottime{0};  ///< offsets
};

/// "RLIMIT_NOFILE".
std::string limit_name(int resource);

/// What is written to /proc/self/timens_offsets, see time_namespaces(7).
std::string offsets_text(std::chrono::nanoseconds offset);

/// Sets the limits of `process` and reads everything back. Errors: unavailable, io.
base::Expected<StartEvidence> impose(const StartConditions& conditions, pid_t process);

/// Where a process between clone and exec waits for its leaf, without a system call that a filter could look at: a word
/// that both see.
class Hold {
 public:
  static base::Expected<Hold> make();
  Hold(Hold&& other) noexcept;
  Hold& operator=(Hold&&) = delete;
  ~Hold();

  /// In the new process: returns when it is released.
  void wait() const noexcept;

  /// In the leaf: until it waits. Errors: io when it ends instead (`handle` is the pidfd of its init), timeout.
  base::Status await_held(int handle) const;
  void release() const noexcept;

 private:
  using Word = std::atomic<std::uint32_t>;
  explicit Hold(Word* word) : word_(word) {}
  Word* word_;
};

}  // namespace leafcutter::node
