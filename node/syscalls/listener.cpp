#include "node/syscalls/listener.hpp"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP  // Linux 6.6
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

namespace leafcutter::node {

Listener::Listener(base::UniqueFd fd) : fd_(std::move(fd)) {
  seccomp_notif_sizes sizes{};
  if (::syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) sizes = {};
  const auto words = [](std::size_t kernel, std::size_t ours) { return kernel > ours ? (kernel + 7) / 8 : 0; };
  request_.resize(words(sizes.seccomp_notif, sizeof(seccomp_notif)));
  answer_.resize(words(sizes.seccomp_notif_resp, sizeof(seccomp_notif_resp)));
  // Task and supervisor take turns: each is woken on the processor that the other gives up. An older kernel knows no
  // such flag, and wakes them where it likes.
  ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

base::Expected<bool> Listener::receive(seccomp_notif& into) {
  into = {};  // the kernel refuses a buffer that is not zeroed
  void* buffer = &into;
  if (!request_.empty()) {
    std::ranges::fill(request_, 0);
    buffer = request_.data();
  }
  if (::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_RECV, buffer) != 0) {
    if (errno == ENOENT || errno == EINTR) return false;
    return base::system_error("receive a system call notification", errno);
  }
  if (!request_.empty()) std::memcpy(&into, request_.data(), sizeof into);
  return true;
}

bool Listener::valid(std::uint64_t id) const { return ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0; }

base::Expected<bool> Listener::let_run(std::uint64_t id) {
  return send({.id = id, .val = 0, .error = 0, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE});
}

base::Expected<bool> Listener::fail(std::uint64_t id, int error) {
  return send({.id = id, .val = 0, .error = -error, .flags = 0});
}

base::Expected<bool> Listener::answer(std::uint64_t id, std::int64_t value) {
  return send({.id = id, .val = value, .error = 0, .flags = 0});
}

base::Expected<bool> Listener::send(seccomp_notif_resp answer) {
  void* buffer = &answer;
  if (!answer_.empty()) {
    std::ranges::fill(answer_, 0);
    std::memcpy(answer_.data(), &answer, sizeof answer);
    buffer = answer_.data();
  }
  for (;;) {
    if (::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SEND, buffer) == 0) return true;
    if (errno == ENOENT) return false;
    if (errno != EINTR) return base::system_error("answer a system call notification", errno);
  }
}

}  // namespace leafcutter::node
