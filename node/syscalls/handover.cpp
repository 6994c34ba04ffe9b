// How the listener leaves the child. The filter is in force from the instant it is installed, and the parent can answer
// notifications only once it holds the listener: if the hand-over itself made a notified call, each would wait for the
// other. Handing over beforehand is impossible (there is no listener yet), an exempted descriptor number would stay
// exempted in the service, and pidfd_getfd by the parent needs a sign that the filter is there. So the three calls of
// the hand-over carry a mark in the argument registers they do not use (handover.hpp), which the filter lets pass; the
// raw syscalls below put it there. Every set of families works, and nothing of it is left in the service but a number
// nobody else sends.
#include "node/syscalls/handover.hpp"

#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/unique_fd.hpp"
#include "node/syscalls/filter.hpp"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

namespace leafcutter::node {
namespace {

constexpr std::chrono::seconds patience{10};

/// The payload beside the descriptor: 0, or why there is none.
struct Note {
  int error = 0;
};

long marked(long number, long a, long b, long c) noexcept {
  return ::syscall(number, a, b, c, handover_mark[0], handover_mark[1], handover_mark[2]);
}

int send_note(int socket, Note note, int listener) noexcept {
  iovec part{&note, sizeof note};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof listener)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (listener >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof listener);
    std::memcpy(CMSG_DATA(header), &listener, sizeof listener);
  }
  for (;;) {
    if (marked(SYS_sendmsg, socket, reinterpret_cast<long>(&message), MSG_NOSIGNAL) == sizeof note) return 0;
    if (errno != EINTR) return errno == 0 ? EIO : errno;
  }
}

int await_byte(int socket) noexcept {
  char byte = 0;
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  for (;;) {
    const auto got = marked(SYS_recvmsg, socket, reinterpret_cast<long>(&message), 0);
    if (got == 1) return 0;
    if (got == 0) return EPIPE;
    if (errno != EINTR) return errno == EAGAIN ? ETIMEDOUT : errno;
  }
}

/// Without WAIT_KILLABLE_RECV (before Linux 5.19) a signal aborts a notified call, which comes again: see
/// effects_again.cpp.
long install(const std::vector<sock_filter>& program) noexcept {
  sock_fprog handed{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  const unsigned long listener = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  const auto fd =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, listener | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &handed);
  if (fd >= 0 || errno != EINVAL) return fd;
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, listener, &handed);
}

std::string why_unavailable(int error) {
  const std::string what = "the service's system call filter was refused: ";
  switch (error) {
    case EBUSY:
      return what +
             "this process tree already has a seccomp listener (a container runtime's, say); run Leafcutter outside of "
             "it";
    case EINVAL: return what + "the kernel does not know seccomp user notification (it came with Linux 5.0)";
    case EACCES:
    case EPERM:
      return what + "the container's own seccomp profile forbids seccomp(2); a profile that allows it would do";
    default: return what + std::strerror(error);
  }
}

base::Status await_message(int socket) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0)
      return base::Error{base::ErrorCode::timeout, "the service did not hand over its listener within 10 s", {}};
    pollfd readable{socket, POLLIN, 0};
    const auto found = ::poll(&readable, 1, static_cast<int>(left));
    if (found > 0) return base::ok();
    if (found < 0 && errno != EINTR) return base::system_error("poll the hand-over socket", errno);
  }
}

}  // namespace

pid_t fork_for_keeper() noexcept {
  return static_cast<pid_t>(::syscall(SYS_clone, CLONE_FILES | CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, 0));
}

int install_filter(const std::vector<sock_filter>& program, int socket, Keeper keeper) noexcept {
  if (program.empty()) return 0;
  const timeval bound{std::chrono::duration_cast<std::chrono::seconds>(patience).count(), 0};
  if (::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound) != 0) return errno;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    const auto error = errno;
    send_note(socket, {error}, -1);
    return error;
  }
  const auto listener = install(program);
  if (listener < 0) {
    const auto error = errno;
    send_note(socket, {error}, -1);
    return error;
  }
  auto error = send_note(socket, {}, static_cast<int>(listener));
  if (error == 0) error = await_byte(socket);
  // Shared with the parent; execve closes the program's own copy (the kernel opens listeners close-on-exec).
  if (keeper == Keeper::parent) return error;
  if (marked(SYS_close, listener, 0, 0) != 0 && error == 0) error = errno;
  return error;
}

base::Expected<int> receive_listener(int socket) {
  if (const auto ready = await_message(socket); !ready) return ready.error();
  Note note;
  iovec part{&note, sizeof note};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return base::system_error("receive the service's listener", errno);
  if (got == 0)
    return base::Error{base::ErrorCode::unavailable, "the service ended before it handed over its listener", {}};
  base::UniqueFd listener;
  const auto* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    listener.reset(fd);
  }
  if (got != sizeof note) return base::Error{base::ErrorCode::internal, "the hand-over's message has a wrong size", {}};
  if (note.error != 0) return base::Error{base::ErrorCode::unavailable, why_unavailable(note.error), {}};
  if (!listener) return base::Error{base::ErrorCode::io, "the hand-over's message came without its descriptor", {}};
  const char byte = 1;
  if (::send(socket, &byte, 1, MSG_NOSIGNAL) != 1)
    return base::system_error("acknowledge the service's listener", errno);
  return listener.release();
}

}  // namespace leafcutter::node
