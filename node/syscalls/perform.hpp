// Carries a system call out on a waiting task's behalf, so that its effect is there while the task never learns of it:
// on the same open files (pidfd_getfd), with the bytes copied from its memory, and on paths as its own root folder has
// them.
#pragma once

#include <linux/seccomp.h>

#include <functional>
#include <string>

#include "node/syscalls/target.hpp"

namespace leafcutter::node {

/// Bounds on what is copied and waited for.
inline constexpr std::size_t perform_bytes = 64u << 20;
inline constexpr int perform_wait_ms = 2000;

struct Request {
  const seccomp_data& call;
  const Target& target;
  bool socket = false;                ///< the call acts on a socket
  std::function<bool()> still_valid;  ///< asked after the last read of the target and before the effect

  int integer(int index) const { return static_cast<int>(call.args[index]); }
  std::uint64_t word(int index) const { return call.args[index]; }
};

struct Performed {
  bool done = false;
  long result = 0;  ///< what the kernel returned: a count, 0, or -errno
  std::string why;  ///< not done: why it cannot be
};

Performed perform(const Request& request);

/// The parts, by what the call acts on. Each answers "not done" for a call that is not its own.
Performed perform_on_file(const Request& request);
Performed perform_on_path(const Request& request);
Performed perform_on_socket(const Request& request);

/// `returned` as system calls return it; reads errno at once.
Performed performed(long returned);
Performed not_performed(const std::string& why);

/// The bytes a write-like call hands over: one buffer, or a vector of them.
base::Expected<std::string> outgoing_buffer(const Request& request, std::uint64_t address, std::uint64_t bytes);
base::Expected<std::string> outgoing_vector(const Request& request, std::uint64_t address, std::uint64_t count);

}  // namespace leafcutter::node
