#include "node/syscalls/gate.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/unique_fd.hpp"
#include "scenarios/event_kinds.hpp"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL  // Linux 6.9
#endif

namespace leafcutter::node {
namespace {

std::string call_name(std::uint32_t arch, int number) {
  char* name = ::seccomp_syscall_resolve_num_arch(arch, number);
  const std::string out = name != nullptr ? name : "call number " + std::to_string(number);
  std::free(name);
  return out;
}

Value syscall_event(const std::string& call, std::uint64_t n, const std::string& detail) {
  return {{"call", call}, {"family", ""},      {"resource", ""},  {"path", ""},
          {"n", n},       {"injected", false}, {"detail", detail}};
}

}  // namespace

std::string foreign_call(const seccomp_data& call) {
  if (call.arch == AUDIT_ARCH_I386) return call_name(SCMP_ARCH_X86, call.nr) + " of the 32-bit (i386) interface";
  if (call.arch != AUDIT_ARCH_X86_64) return "number " + std::to_string(call.nr) + " of an unknown interface";
  if ((static_cast<std::uint32_t>(call.nr) & x32_bit) != 0)
    return call_name(SCMP_ARCH_X32, call.nr) + " of the x32 interface";
  return "";
}

Gate::Gate(Listener& listener, Recorder& recorder, std::string lane, std::function<void(const std::string&)> failed)
    : listener_(listener), recorder_(recorder), lane_(std::move(lane)), failed_(std::move(failed)) {}

base::Expected<bool> Gate::stops(const seccomp_notif& notification) {
  const auto& call = notification.data;
  if (call.arch == AUDIT_ARCH_X86_64 && (static_cast<std::uint32_t>(call.nr) & x32_bit) == 0 &&
      call.nr != SYS_io_uring_setup)
    return false;
  if (const auto foreign = foreign_call(notification.data); !foreign.empty()) {
    kill(notification, foreign);
    return true;
  }
  if (notification.data.nr != SYS_io_uring_setup) return false;
  if (const auto refused = refuse_io_uring(notification); !refused) return refused.error();
  return true;
}

base::Status Gate::refuse_io_uring(const seccomp_notif& notification) {
  if (++refused_ == 1)
    recorder_.record(lane_, scenarios::events::syscall,
                     syscall_event("io_uring_setup", refused_,
                                   "answered ENOSYS, as a kernel without io_uring does: its operations are no system "
                                   "calls and would pass unseen"));
  const auto sent = listener_.fail(notification.id, ENOSYS);
  if (!sent) return sent.error();
  return base::ok();
}

void Gate::kill(const seccomp_notif& notification, const std::string& what) {
  const auto task = static_cast<pid_t>(notification.pid);
  base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, task, PIDFD_THREAD)));
  if (!process) process.reset(static_cast<int>(::syscall(SYS_pidfd_open, task, 0)));
  if (!listener_.valid(notification.id)) return;  // killed meanwhile; the id may be another's
  const auto why = what +
                   ": its process was killed, because calls of other interfaces cannot be told apart by number "
                   "and would pass unseen; build it for x86-64, or run it without system call rules";
  // Before the kill: what follows from it must not stand before its cause.
  if (++killed_ == 1) recorder_.record(lane_, scenarios::events::syscall, syscall_event(what, killed_, why));
  // SIGKILL to one thread ends its whole process. Kernels before 6.9 open no second thread by its id.
  if (process)
    ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0u);
  else
    ::kill(task, SIGKILL);
  failed_(lane_ + " called " + why);
}

}  // namespace leafcutter::node
