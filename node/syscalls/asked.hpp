// What a call asks for: which bytes of the task's memory it hands over or wants filled, how many, from where, and with
// which flags.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/syscalls/target.hpp"

namespace leafcutter::node {

/// The task's buffers that a reading, writing, sending or receiving call names, in order. Of a call that carries
/// several messages: the first one's. Empty for calls that name none. Errors: io (the memory that lists them is not
/// readable).
base::Expected<std::vector<Stretch>> buffers_of(const seccomp_data& call, const Target& target);

std::uint64_t total_bytes(const std::vector<Stretch>& stretches);

/// Bytes that the call would carry or make room for at most; nothing for calls that carry none. Errors: io.
base::Expected<std::optional<std::uint64_t>> asked_size(const seccomp_data& call, const Target& target);

/// The offset that the call itself names; nothing when it goes on where the file stands.
std::optional<std::uint64_t> named_offset(const seccomp_data& call);

/// The offset whose address is named by a call that moves bytes between two descriptors: where it takes them from, or
/// else where it puts them; nothing when it names none. Errors: io.
base::Expected<std::optional<std::uint64_t>> passed_offset(const seccomp_data& call, const Target& target,
                                                           bool at_source);

/// Where the descriptor stands, or for one with O_APPEND, when `writes`, the end of its file. Errors: io.
base::Expected<std::uint64_t> standing_offset(const Target& target, int fd, bool writes);

/// Flags of open, send, receive and accept calls; 0 for calls without. Errors: io (openat2 names them by address).
base::Expected<std::uint64_t> asked_flags(const seccomp_data& call, const Target& target);

/// The address that a datagram call names as its destination, as bytes; empty when it names none. Errors: io.
base::Expected<std::string> named_destination(const seccomp_data& call, const Target& target);

}  // namespace leafcutter::node
