// To which of scenarios::object_classes() a thing belongs.
#pragma once

#include <linux/seccomp.h>
#include <sys/stat.h>

#include <string>

#include "base/error.hpp"
#include "node/syscalls/calls.hpp"
#include "node/syscalls/target.hpp"

namespace leafcutter::node {

/// By its status: "file", "directory", "pipe" (a FIFO too), "tty" or "other".
std::string class_of(const struct stat& status);

/// Of a descriptor that /proc names so and that has no path: "pipe", "eventfd" or "other".
std::string class_of_nameless(const std::string& descriptor_name);

/// Of a socket of ours: "socket-tcp", "socket-udp", "socket-unix" or "other".
std::string class_of_socket(int socket);

/// What a call on a path finds there, links followed as the task would; when there is nothing, what the call would
/// make. Of calls with two paths: what is renamed or linked. Errors: io.
base::Expected<std::string> class_at_path(const seccomp_data& call, const CallShape& shape, const Target& target);

/// "CLOCK_MONOTONIC", or "other-clock" for one that has no name.
std::string clock_name(int clock);

}  // namespace leafcutter::node
