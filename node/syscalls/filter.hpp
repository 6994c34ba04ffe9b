// The seccomp filter of one service, laid out from its filter plan.
// Built before fork (libseccomp allocates); installed by the child between fork and exec with async-signal-safe calls
// only.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

#include "base/error.hpp"
#include "node/syscalls/filter_plan.hpp"

namespace leafcutter::node {

/// Notifies the supervisor of every call of the families, and of what it must refuse (gate.hpp): calls of the 32-bit
/// and x32 interfaces, which would pass unseen, and io_uring_setup. Fails the calls that have an answer without asking
/// anybody; lets everything else run at full speed. An empty plan: an empty program, no filter.
base::Expected<std::vector<sock_filter>> build_filter(const FilterPlan& plan);

/// Who has the listener once it is handed over, beside the supervisor.
enum class Keeper {
  nobody,  ///< when the supervisor's process dies, notified calls fail with ENOSYS
  parent,  ///< the child came from fork_for_keeper(): its parent keeps a copy, and calls wait until that one dies, too
};

/// A child for install_filter(Keeper::parent). It shares the caller's descriptors until it executes its program or
/// ends, and only then the caller goes on, so that the caller keeps the listener that the child opens. The kernel
/// closes the descriptors of a killed process before it kills those that are to die with it: a program whose only
/// listener was there would see its calls fail with ENOSYS for a moment. The caller must be a process that stays until
/// the program is as good as dead, as the init of its pid namespace does. As fork(2); async-signal-safe.
pid_t fork_for_keeper() noexcept;

/// In the child, after fork: no_new_privs, installs `program`, sends the listener over `socket` (SOCK_SEQPACKET) and
/// waits for one byte that says it arrived; afterwards the child's program holds no listener. Returns 0 or an errno
/// value; after an error the child must not exec. Works for every set of families: see handover.cpp. An empty program
/// installs nothing and sends nothing.
int install_filter(const std::vector<sock_filter>& program, int socket, Keeper keeper = Keeper::nobody) noexcept;

/// In the parent: takes the listener and acknowledges it. The parent must have closed its copy of the child's end, or a
/// child that dies is noticed only by the time-out (10 s). Errors: unavailable with the child's errno, timeout.
base::Expected<int> receive_listener(int socket);

}  // namespace leafcutter::node
