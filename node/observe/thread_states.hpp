// Whether a process stands still, thread by thread, as /proc has it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace leafcutter::node {

struct ThreadStates {
  unsigned alive = 0;    ///< threads
  unsigned stopped = 0;  ///< by a signal
  unsigned moving = 0;   ///< neither stopped nor held inside the kernel
};

/// A thread that waits in the kernel for something no signal can take it away from (a held system call, a parent of
/// vfork) stops before it comes back. `process` is a folder of /proc; all 0 when it has gone.
ThreadStates thread_states(int process);

/// The entries of a folder below /proc that are numbers.
std::vector<pid_t> numbers_in(int folder);

/// Not usable when there is no such folder.
base::UniqueFd folder_at(int parent, const std::string& name);

}  // namespace leafcutter::node
