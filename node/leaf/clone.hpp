// Processes with namespaces of their own, which fork() cannot make.
#pragma once

#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer's fork() sees to the locks of its library. Of a clone it is told by these (the interface behind
// sanitizer/linux_syscall_hooks.h, which GCC does not install); a child that it knows nothing of waits for ever for a
// lock that some other thread held.
extern "C" void __sanitizer_syscall_pre_impl_fork();
extern "C" void __sanitizer_syscall_post_impl_fork(long result);
#endif

namespace leafcutter::node {

/// clone3(2) without a stack: returns as fork() does, in the child as well; -1: errno says why.
inline pid_t clone_process(clone_args args) {
#if defined(__SANITIZE_THREAD__)
  __sanitizer_syscall_pre_impl_fork();
#endif
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
#if defined(__SANITIZE_THREAD__)
  const int error = errno;
  __sanitizer_syscall_post_impl_fork(pid);
  errno = error;
#endif
  return static_cast<pid_t>(pid);
}

}  // namespace leafcutter::node
