#include "moments.hpp"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

namespace leafcutter::node::tests {
namespace {

/// As system calls return it: -errno.
long bare_call(long number, long a, long b, long c, long d, long e, long f) {
  register long fourth asm("r10") = d;
  register long fifth asm("r8") = e;
  register long sixth asm("r9") = f;
  long result = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
}

long with_errno(long result) {
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

struct Awaited {
  Moment moment = Moment::after_look;
  unsigned left = 0;
  std::function<bool(const seccomp_data&)> of;
  std::function<void(const Waiting&)> then;
  bool came = false;
};

std::mutex& moments_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::optional<Awaited>& awaited() {
  static std::optional<Awaited> now;
  return now;
}
Waiting& last_received() {
  static Waiting last;
  return last;
}

void reached(Moment moment, bool checked = false) {
  const auto kept = errno;
  std::function<void(const Waiting&)> then;
  Waiting call;
  {
    const std::lock_guard lock(moments_mutex());
    auto& now = awaited();
    call = last_received();
    call.checked = checked;
    if (!now || now->came || now->moment != moment || !now->of(call.notification.data)) return;
    if (--now->left > 0) return;
    now->came = true;
    then = now->then;
  }
  then(call);
  errno = kept;
}

void received(int listener, const seccomp_notif& notification) {
  const std::lock_guard lock(moments_mutex());
  last_received() = {listener, notification};
}

}  // namespace

bool Waiting::has_gone() const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  auto id = notification.id;
  while (bare_call(SYS_ioctl, listener, static_cast<long>(SECCOMP_IOCTL_NOTIF_ID_VALID), reinterpret_cast<long>(&id), 0,
                   0, 0) == 0) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

AtMoment::AtMoment(Moment moment, unsigned which, std::function<bool(const seccomp_data&)> of,
                   std::function<void(const Waiting&)> then) {
  const std::lock_guard lock(moments_mutex());
  awaited() = Awaited{moment, which, std::move(of), std::move(then)};
}

AtMoment::~AtMoment() {
  const std::lock_guard lock(moments_mutex());
  awaited().reset();
}

bool AtMoment::came() const {
  const std::lock_guard lock(moments_mutex());
  return awaited() && awaited()->came;
}

}  // namespace leafcutter::node::tests

using leafcutter::node::tests::Moment;

extern "C" {

// NOLINTBEGIN(cert-dcl50-cpp,readability-inconsistent-declaration-parameter-name)
int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  auto* argument = va_arg(list, void*);
  va_end(list);
  if (request == SECCOMP_IOCTL_NOTIF_SEND) leafcutter::node::tests::reached(Moment::before_answer);
  const auto result = leafcutter::node::tests::with_errno(leafcutter::node::tests::bare_call(
      SYS_ioctl, fd, static_cast<long>(request), reinterpret_cast<long>(argument), 0, 0, 0));
  if (result == 0 && request == SECCOMP_IOCTL_NOTIF_RECV) {
    seccomp_notif notification{};
    std::memcpy(&notification, argument, sizeof notification);
    leafcutter::node::tests::received(fd, notification);
  }
  if (result == 0 && request == SECCOMP_IOCTL_NOTIF_ID_VALID)
    leafcutter::node::tests::reached(Moment::after_look, true);
  return static_cast<int>(result);
}

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (auto& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  const auto result = leafcutter::node::tests::with_errno(leafcutter::node::tests::bare_call(
      number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]));
  // A folder below the task's root is opened by openat2.
  if (number == SYS_pidfd_getfd || number == SYS_openat2) leafcutter::node::tests::reached(Moment::after_look);
  return result;
}

ssize_t process_vm_readv(pid_t pid, const iovec* into, unsigned long into_count, const iovec* from,
                         unsigned long from_count, unsigned long flags) noexcept {
  const auto result = leafcutter::node::tests::with_errno(leafcutter::node::tests::bare_call(
      SYS_process_vm_readv, pid, reinterpret_cast<long>(into), static_cast<long>(into_count),
      reinterpret_cast<long>(from), static_cast<long>(from_count), static_cast<long>(flags)));
  leafcutter::node::tests::reached(Moment::after_look);
  return result;
}
// NOLINTEND(cert-dcl50-cpp,readability-inconsistent-declaration-parameter-name)
}
