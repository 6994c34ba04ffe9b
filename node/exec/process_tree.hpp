// All processes below one of ours: found, signalled, and ended, without namespaces. Whoever ends them must be the
// reaper of their orphans (PR_SET_CHILD_SUBREAPER): then nothing escapes by losing its parent, and "no child is left"
// is proof.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

namespace leafcutter::node {

/// A process, told apart from a later one with the same number by when it was started.
struct ProcessId {
  pid_t pid = 0;
  unsigned long long started = 0;  ///< clock ticks since boot
  pid_t parent = 0;
  char state = '?';  ///< of /proc/PID/stat
};

/// Every process below `root`, zombies included, parents before their children. A look takes time: a process may have
/// been started or have ended meanwhile.
std::vector<ProcessId> processes_below(pid_t root);

/// False when it has gone.
bool signal_process(const ProcessId& process, int signal);

/// Sends SIGSTOP to everything below `root` until a look finds nothing that still runs; returns how many stand still,
/// those included that are held within a system call and will stop before they come back. Gives up after a second.
unsigned stop_below(pid_t root);
void continue_below(pid_t root);

/// Kills everything below the calling process and reaps it; `ended` is told of every process that is reaped. False:
/// something is left at the deadline.
bool end_children(std::chrono::milliseconds within, const std::function<void(pid_t, int status)>& ended);

}  // namespace leafcutter::node
