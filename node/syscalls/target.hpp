// The task whose call is being looked at: its memory, descriptors and folders, read while it waits for the answer. What
// was read may be believed only when the notification is still valid afterwards (the task may have died, and its id be
// another's): ask the caller's `valid` after the last read.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node {

/// A stretch of the target's memory.
struct Stretch {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
};

class Target {
 public:
  /// `task` as the supervisor's own pid namespace counts.
  explicit Target(pid_t task) : task_(task) {}

  pid_t task() const { return task_; }

  /// Exactly `bytes` bytes. Errors: io (a part of it is not mapped or not readable).
  base::Expected<std::string> memory(std::uint64_t address, std::size_t bytes) const;

  /// A string of at most PATH_MAX bytes, read page by page: it may end at the end of a mapping.
  base::Expected<std::string> text(std::uint64_t address) const;

  /// One after the other.
  base::Expected<std::string> memory(const std::vector<Stretch>& stretches) const;

  /// Fills the stretches with `bytes`, from the first on, as a reading call does. Errors: io (a part is not writable;
  /// what comes before it is filled).
  base::Status fill(const std::vector<Stretch>& stretches, std::string_view bytes) const;
  /// A plain struct of the kernel's interface.
  template <class T>
  base::Status put(std::uint64_t address, const T& value) const {
    return fill({{address, sizeof value}}, {reinterpret_cast<const char*>(&value), sizeof value});
  }

  /// A plain struct of the kernel's interface.
  template <class T>
  base::Expected<T> value(std::uint64_t address) const {
    const auto bytes = memory(address, sizeof(T));
    if (!bytes) return bytes.error();
    T out;
    bytes->copy(reinterpret_cast<char*>(&out), sizeof out);
    return out;
  }

  /// What /proc says the descriptor is: a path, "socket:[4711]", "pipe:[12]". The mark of a removed file is taken off.
  base::Expected<std::string> descriptor_name(int fd) const;
  base::Expected<struct stat> descriptor_status(int fd) const;

  /// Where an open file stands, and the flags it was opened with.
  struct DescriptorInfo {
    std::uint64_t position = 0;
    int flags = 0;
  };
  base::Expected<DescriptorInfo> descriptor_info(int fd) const;

  /// Folder that a relative path starts from; AT_FDCWD is the working directory.
  base::Expected<std::string> folder(int dirfd) const;

  /// The file mapped at `address`; empty for memory without one.
  base::Expected<std::string> mapped_file(std::uint64_t address) const;

  /// The parts of files that are mapped in a stretch of memory, in order.
  struct Mapping {
    std::string path;
    std::uint64_t offset = 0, bytes = 0;  ///< of the file
  };
  base::Expected<std::vector<Mapping>> mappings(Stretch stretch) const;

  /// A descriptor of ours for the same open file (offset and flags are shared).
  base::Expected<base::UniqueFd> duplicate(int fd) const;

  /// The target's root folder as its mount namespace has it: "/", but for a task that called chroot.
  base::Expected<std::string> root_path() const { return link("root"); }

  /// The target's root folder, for openat2 with RESOLVE_IN_ROOT.
  base::Expected<base::UniqueFd> root() const;

  base::Expected<mode_t> umask() const;

 private:
  std::string proc(const std::string& what) const { return "/proc/" + std::to_string(task_) + "/" + what; }
  base::Expected<std::string> link(const std::string& what) const;
  /// A number of /proc/TASK/status, in the base it is written in.
  base::Expected<unsigned long> status(const std::string& key, int base) const;

  pid_t task_;
};

}  // namespace leafcutter::node
