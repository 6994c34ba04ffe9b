#include "base/folder_lock.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <vector>

namespace leafcutter::base {
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

Status lock(int fd, const std::string& folder) {
  const auto deadline = std::chrono::steady_clock::now() + orphans_deadline;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return system_error("cannot lock " + folder + "/lock", errno);
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
  return ok();
}

/// False: the folder was removed, and perhaps made anew, since the file was opened.
bool still_there(int fd, const std::string& file) {
  struct stat opened {
  }, named{};
  return ::fstat(fd, &opened) == 0 && ::stat(file.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

bool is_ours(const std::string& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

}  // namespace

Expected<FolderLock> FolderLock::take(const std::string& folder) {
  const auto file = folder + "/lock";
  for (;;) {  // ends: who removes a folder holds its lock, and a folder that has gone cannot be opened
    UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!fd) return system_error("cannot open " + file, errno);
    if (auto status = lock(fd.get(), folder); !status) return status.error();
    if (!still_there(fd.get(), file)) continue;
    const auto pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(fd.get(), 0) != 0 ||
        ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
      return system_error("cannot write " + file, errno);
    return FolderLock(std::move(fd));
  }
}

std::optional<FolderLock> FolderLock::take_if_free(const std::string& folder) {
  const auto file = folder + "/lock";
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !still_there(fd.get(), file)) return std::nullopt;
  return FolderLock(std::move(fd));
}

std::size_t sweep_folders(const std::string& parent, std::string_view prefix) {
  namespace fs = std::filesystem;
  std::error_code code;
  std::vector<std::string> left;
  for (fs::directory_iterator entry(parent, code), end; !code && entry != end; entry.increment(code))
    if (entry->path().filename().native().starts_with(prefix)) left.push_back(entry->path());
  std::size_t removed = 0;
  for (const auto& folder : left) {
    if (!is_ours(folder)) continue;
    const auto held = FolderLock::take_if_free(folder);
    // Under another name first: who makes the folder anew meanwhile gets one of its own.
    const auto aside = folder + ".left-" + std::to_string(::getpid());
    if (held && ::rename(folder.c_str(), aside.c_str()) == 0 && fs::remove_all(aside, code) > 0) ++removed;
  }
  return removed;
}

}  // namespace leafcutter::base
