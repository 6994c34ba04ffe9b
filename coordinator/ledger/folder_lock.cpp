#include "coordinator/ledger/folder_lock.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string_view>

namespace leafcutter::coordinator {

using base::Error;
using base::ErrorCode;

namespace {

constexpr auto orphans_deadline = std::chrono::seconds(5);

/// The process that wrote itself into the lock file; 0 when it does not say.
pid_t holder(int fd) {
  std::array<char, 32> buffer{};
  const auto n = ::pread(fd, buffer.data(), buffer.size(), 0);
  pid_t pid = 0;
  if (n > 0) std::from_chars(buffer.data(), buffer.data() + n, pid);
  return pid;
}

bool gone(pid_t pid) { return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH; }

base::Status lock(int fd, const std::string& folder) {
  const auto deadline = std::chrono::steady_clock::now() + orphans_deadline;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return base::system_error("cannot lock " + folder + "/lock", errno);
    const auto pid = holder(fd);
    // A killed owner's children share its lock for the moment that it takes them to die as well.
    if (gone(pid) && std::chrono::steady_clock::now() < deadline) {
      ::poll(nullptr, 0, 5);
      continue;
    }
    const auto who = pid > 0 ? "process " + std::to_string(pid) : std::string("another process");
    const auto what = gone(pid) ? " is gone, but a child of it still holds " : " works in ";
    return Error{ErrorCode::conflict, who + what + folder + "; wait for it, stop it, or give another folder", {}};
  }
  return base::ok();
}

}  // namespace

base::Expected<FolderLock> FolderLock::take(const std::string& folder) {
  const auto file = folder + "/lock";
  base::UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return base::system_error("cannot open " + file, errno);
  if (auto status = lock(fd.get(), folder); !status) return status.error();
  const auto pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return base::system_error("cannot write " + file, errno);
  return FolderLock(std::move(fd));
}

}  // namespace leafcutter::coordinator
