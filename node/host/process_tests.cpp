#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "node/host/tests.hpp"
#include "node/syscalls/filter.hpp"
#include "node/syscalls/listener.hpp"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

namespace leafcutter::node {
namespace {

constexpr int patience_ms = 3000;
constexpr int injected = EXDEV;  ///< mkdir never returns it by itself

struct Notify {
  std::vector<sock_filter> filter;
  base::UniqueFd ours, theirs;
  std::string why;  ///< filled in by the parent
};

/// The kernel names an unknown flag before it looks at the missing program: seccomp(2).
bool signals_wait() {
  const auto flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, nullptr) != 0 && errno == EFAULT;
}

void notified_child(TestReport& report, void* context) {
  auto& notify = *static_cast<Notify*>(context);
  ::close(notify.ours.release());
  const auto certain = signals_wait();
  if (const auto error = install_filter(notify.filter, notify.theirs.get()); error != 0)
    return report.failed("install a filter with a listener", error);
  if (::mkdir("/leafcutter-self-test", 0700) == 0) {
    ::rmdir("/leafcutter-self-test");
    return report.failed("have a system call fail as told", EIO);
  }
  if (errno != injected) return report.failed("have a system call fail as told");
  report.saw(certain ? "mkdir failed with the error it was told to; signals do not repeat a held call"
                     : "mkdir failed with the error it was told to; before Linux 5.19 a signal repeats a held call, "
                       "which counts twice");
}

void answer_one(int, void* context) {
  auto& notify = *static_cast<Notify*>(context);
  notify.theirs.reset();
  const auto fd = receive_listener(notify.ours.get());
  if (!fd) {
    notify.why = fd.error().message;
    return;
  }
  Listener listener{base::UniqueFd(*fd)};
  pollfd pending{listener.fd(), POLLIN, 0};
  if (::poll(&pending, 1, patience_ms) <= 0) {
    notify.why = "no notification came";
    return;
  }
  seccomp_notif notification;
  const auto received = listener.receive(notification);
  if (!received || !*received) {
    notify.why = received ? "the notification vanished" : received.error().message;
    return;
  }
  if (const auto sent = listener.fail(notification.id, injected); !sent) notify.why = sent.error().message;
}

/// A child that waits until its parent has looked at it, and what it shows.
struct Shown {
  int ready[2] = {-1, -1};
  int fd = -1;
  char secret[8] = "before";
};

/// Forks a child that changes `shown.secret`, opens a file with the word "leaf", says which descriptor it is, and
/// waits.
pid_t show(TestReport& report, Shown& shown) {
  if (::pipe2(shown.ready, O_CLOEXEC) != 0) return report.failed("pipe"), -1;
  const auto child = ::fork();
  if (child < 0) return report.failed("fork"), -1;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::memcpy(shown.secret, "after", 6);
    const auto fd = ::memfd_create("leafcutter-self-test", MFD_CLOEXEC);
    if (fd < 0 || ::pwrite(fd, "leaf", 4, 0) != 4 || ::write(shown.ready[1], &fd, sizeof fd) != sizeof fd) ::_exit(1);
    for (;;) ::pause();
  }
  if (::read(shown.ready[0], &shown.fd, sizeof shown.fd) != sizeof shown.fd)
    return report.failed("hear from the child", EIO), child;
  return child;
}

void stop(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

void process_read(TestReport& report, void*) {
  Shown shown;
  const auto child = show(report, shown);
  if (child < 0) return;
  char found[sizeof shown.secret] = {};
  iovec local{found, sizeof found};
  iovec remote{shown.secret, sizeof shown.secret};
  if (report.error == 0 && ::process_vm_readv(child, &local, 1, &remote, 1, 0) != sizeof found)
    report.failed("read a child's memory (process_vm_readv)");
  else if (report.error == 0 && std::strcmp(found, "after") != 0)
    report.failed("read what the child wrote", EIO);
  else if (report.error == 0)
    report.saw("read a word that only the child had written");
  stop(child);
}

void pidfd_getfd(TestReport& report, void*) {
  Shown shown;
  const auto child = show(report, shown);
  if (child < 0) return;
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  char found[4] = {};
  if (report.error == 0 && process < 0) report.failed("open a child as a descriptor (pidfd_open)");
  if (report.error == 0) {
    const auto copy = static_cast<int>(::syscall(SYS_pidfd_getfd, process, shown.fd, 0));
    if (copy < 0)
      report.failed("copy a child's descriptor (pidfd_getfd)");
    else if (::pread(copy, found, sizeof found, 0) != sizeof found || std::memcmp(found, "leaf", sizeof found) != 0)
      report.failed("read the child's file", EIO);
    else
      report.saw("read a file that only the child had open");
  }
  stop(child);
}

void ipc(TestReport& report, void* context) {
  const auto& address = *static_cast<const sockaddr_un*>(context);
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  const auto server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(server, at, sizeof address) != 0 || ::listen(server, 1) != 0)
    return report.failed("listen on a unix socket");
  char byte = 0;
  if (::connect(client, at, sizeof address) != 0)
    report.failed("connect to a unix socket");
  else if (::send(client, "x", 1, MSG_NOSIGNAL) != 1 || ::recv(::accept(server, nullptr, nullptr), &byte, 1, 0) != 1 ||
           byte != 'x')
    report.failed("pass a byte over a unix socket", EIO);
  else
    report.saw("a byte went through a unix socket");
  ::unlink(address.sun_path);
}

}  // namespace

TestReport test_syscall_notify() {
  TestReport report;
  Notify notify;
  auto filter = build_filter({.families = {"mkdir"}});
  int pair[2];
  if (!filter) return report.failed(filter.error().message, ENOSYS), report;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return report.failed("socketpair"), report;
  notify.filter = std::move(*filter);
  notify.ours.reset(pair[0]);
  notify.theirs.reset(pair[1]);
  report = run_self_test(notified_child, &notify, answer_one);
  if (!report.seen() && !notify.why.empty()) report.failed(notify.why, report.error);
  return report;
}

TestReport test_process_read() { return run_self_test(process_read); }
TestReport test_pidfd_getfd() { return run_self_test(pidfd_getfd); }

TestReport test_ipc() {
  TestReport report;
  std::error_code failed;
  const auto folder = std::filesystem::temp_directory_path(failed);
  const auto path = folder.string() + "/leafcutter-self-test-" + std::to_string(::getpid()) + ".sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (failed || path.size() >= sizeof address.sun_path)
    return report.failed("name a unix socket", ENAMETOOLONG), report;
  path.copy(address.sun_path, path.size());
  return run_self_test(ipc, &address);
}

}  // namespace leafcutter::node
