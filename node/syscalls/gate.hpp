// Calls that would take a program past its filter: another call interface (32-bit, x32), whose numbers mean other
// calls, and io_uring, whose operations are no calls at all. The filter brings them here; none is let through.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <functional>
#include <string>

#include "node/observe/recorder.hpp"
#include "node/syscalls/listener.hpp"

namespace leafcutter::node {

/// Set in the number of a call of the x32 interface. (-1, which is no call, has it, too.)
inline constexpr std::uint32_t x32_bit = 0x40000000u;

/// "getpid of the 32-bit (i386) interface"; empty for a native call.
std::string foreign_call(const seccomp_data& call);

class Gate {
 public:
  /// `failed`: as in SupervisorContext.
  Gate(Listener& listener, Recorder& recorder, std::string lane, std::function<void(const std::string&)> failed);

  /// True when the call is one of these and was dealt with. io_uring_setup fails with ENOSYS, as on a kernel that has
  /// none, and programs do without; said once. A call of another interface cannot be refused in a way that its program
  /// expects: its process is killed, what it called is recorded, and the leaf's result is not the program's fault,
  /// which `failed` is told once. Errors: the listener's.
  base::Expected<bool> stops(const seccomp_notif& notification);

 private:
  base::Status refuse_io_uring(const seccomp_notif& notification);
  void kill(const seccomp_notif& notification, const std::string& what);

  Listener& listener_;
  Recorder& recorder_;
  std::string lane_;
  std::function<void(const std::string&)> failed_;
  std::uint64_t refused_ = 0, killed_ = 0;
};

}  // namespace leafcutter::node
