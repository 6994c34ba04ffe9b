// Carries a system call out on a waiting task's behalf, so that its effect is there while the task never learns of it:
// on the same open files (pidfd_getfd), with the bytes copied from its memory, and on paths as its own root folder has
// them.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "node/syscalls/target.hpp"

namespace leafcutter::node {

/// Bounds on what is copied and waited for.
inline constexpr std::size_t perform_bytes = 64u << 20;
inline constexpr int perform_wait_ms = 2000;

struct Request {
  const seccomp_data& call;
  const Target& target;
  bool socket = false;                        ///< the call acts on a socket
  std::function<bool()> still_valid;          ///< asked after the last read of the target and before the effect
  std::uint64_t at_most = ~std::uint64_t{0};  ///< bytes that are carried, of calls that carry any
  /// The task goes on and learns the result: what the call puts into its memory beside is put there.
  bool answered = false;
  /// Of calls that move bytes between descriptors: what happens to them on the way.
  std::function<void(std::string& bytes)> change = {};

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

/// The bytes a write-like call hands over, `at_most` of them. Errors: io, too many bytes.
base::Expected<std::string> outgoing(const Request& request);

/// What a read-like call would have got.
struct Received {
  Performed performed;  ///< its result is the number of bytes
  std::string bytes;
  std::vector<Stretch> into;  ///< where in the task's memory they belong
  std::string name;           ///< the sender's address, where the call wants one
  int flags = 0;              ///< of a received message
};
/// Reads or receives `at_most` bytes and never waits for them. Nothing of it is in the task's memory yet.
Received receive(const Request& request);
/// Puts it there. What the call has to be answered with, or the error it fails with.
base::Expected<long> deliver(const Request& request, const Received& received);

/// How many bytes a reading call finds on a descriptor of ours that stands where the task's does; `offset` where the
/// call names one. Errors: io.
base::Expected<std::uint64_t> readable_bytes(int fd, std::optional<std::uint64_t> offset);

}  // namespace leafcutter::node
