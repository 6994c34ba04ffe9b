#include "node/syscalls/target.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/text.hpp"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL  // Linux 6.9
#endif

namespace leafcutter::node {
namespace {

constexpr std::uint64_t page = 4096;

/// As many bytes from `address` as can be read, at most `bytes`.
ssize_t read_some(pid_t task, std::uint64_t address, char* into, std::size_t bytes) {
  iovec local{into, bytes};
  iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(task, &local, 1, &remote, 1, 0);
}

}  // namespace

base::Expected<std::string> Target::memory(std::uint64_t address, std::size_t bytes) const {
  std::string out(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const auto got = read_some(task_, address + done, out.data() + done, bytes - done);
    if (got < 0) return base::system_error("read the task's memory", errno);
    if (got == 0) return base::system_error("read the task's memory", EFAULT);
    done += static_cast<std::size_t>(got);
  }
  return out;
}

base::Expected<std::string> Target::memory(const std::vector<Stretch>& stretches) const {
  std::string out;
  for (const auto& stretch : stretches) {
    auto bytes = memory(stretch.address, stretch.bytes);
    if (!bytes) return bytes.error();
    out += *bytes;
  }
  return out;
}

base::Status Target::fill(const std::vector<Stretch>& stretches, std::string_view bytes) const {
  for (const auto& stretch : stretches) {
    auto piece = bytes.substr(0, stretch.bytes);
    bytes.remove_prefix(piece.size());
    for (auto address = stretch.address; !piece.empty();) {
      iovec local{const_cast<char*>(piece.data()), piece.size()};    // NOLINT(cppcoreguidelines-pro-type-const-cast)
      iovec remote{reinterpret_cast<void*>(address), piece.size()};  // NOLINT(performance-no-int-to-ptr)
      const auto put = ::process_vm_writev(task_, &local, 1, &remote, 1, 0);
      if (put <= 0) return base::system_error("write to the task's memory", put < 0 ? errno : EFAULT);
      piece.remove_prefix(static_cast<std::size_t>(put));
      address += static_cast<std::size_t>(put);
    }
  }
  return base::ok();
}

base::Expected<std::string> Target::text(std::uint64_t address) const {
  std::string out;
  char piece[page];
  while (out.size() < PATH_MAX) {
    const auto here = address + out.size();
    const auto got = read_some(task_, here, piece, page - here % page);
    if (got <= 0) return base::system_error("read a path in the task's memory", got < 0 ? errno : EFAULT);
    const auto length = ::strnlen(piece, static_cast<std::size_t>(got));
    out.append(piece, length);
    if (length < static_cast<std::size_t>(got)) {
      if (out.size() >= PATH_MAX) break;
      return out;
    }
  }
  return base::system_error("read a path in the task's memory", ENAMETOOLONG);
}

base::Expected<std::string> Target::link(const std::string& what) const {
  char name[PATH_MAX];
  const auto length = ::readlink(proc(what).c_str(), name, sizeof name);
  if (length < 0) return base::system_error("read " + what + " of the task", errno);
  return std::string(name, static_cast<std::size_t>(length));
}

base::Expected<std::string> Target::descriptor_name(int fd) const {
  auto name = link("fd/" + std::to_string(fd));
  static constexpr std::string_view removed = " (deleted)";
  if (!name || !name->ends_with(removed)) return name;
  const auto status = descriptor_status(fd);
  if (status && status->st_nlink == 0) name->resize(name->size() - removed.size());
  return name;
}

base::Expected<struct stat> Target::descriptor_status(int fd) const {
  struct stat status {};
  if (::stat(proc("fd/" + std::to_string(fd)).c_str(), &status) != 0)
    return base::system_error("look at descriptor " + std::to_string(fd) + " of the task", errno);
  return status;
}

base::Expected<Target::DescriptorInfo> Target::descriptor_info(int fd) const {
  const auto text = base::read_file(proc("fdinfo/" + std::to_string(fd)));
  if (!text) return text.error();
  const auto number = [&](const std::string& key, int base) -> std::uint64_t {
    const auto at = text->find(key);
    return at == std::string::npos ? 0 : std::strtoull(text->c_str() + at + key.size(), nullptr, base);
  };
  return DescriptorInfo{number("pos:", 10), static_cast<int>(number("flags:", 8))};
}

base::Expected<std::string> Target::folder(int dirfd) const {
  return dirfd == AT_FDCWD ? link("cwd") : link("fd/" + std::to_string(dirfd));
}

base::Expected<std::string> Target::mapped_file(std::uint64_t address) const {
  const auto found = mappings({address, 1});
  if (!found) return found.error();
  if (found->empty()) return base::system_error("find the mapping of an address", ENOMEM);
  return found->front().path;
}

base::Expected<std::vector<Target::Mapping>> Target::mappings(Stretch stretch) const {
  const auto maps = base::read_file(proc("maps"));
  if (!maps) return maps.error();
  std::vector<Mapping> found;
  std::istringstream lines(*maps);
  for (std::string line; std::getline(lines, line);) {
    // "7f2c4a000000-7f2c4a021000 rw-s 00001000 fe:01 4711   /data/a": addresses, rights, offset in the file, ...
    char* after = nullptr;
    const auto begin = std::strtoull(line.c_str(), &after, 16);
    if (*after != '-') continue;
    const auto end = std::strtoull(after + 1, &after, 16);
    const auto from = std::max<std::uint64_t>(stretch.address, begin);
    const auto to = std::min<std::uint64_t>(stretch.address + stretch.bytes, end);
    if (from >= to) continue;
    const auto slash = line.find('/');
    const auto offset = std::strtoull(after + std::strlen(" rw-s "), nullptr, 16);
    found.push_back(
        {slash == std::string::npos ? std::string() : line.substr(slash), offset + (from - begin), to - from});
  }
  return found;
}

base::Expected<base::UniqueFd> Target::duplicate(int fd) const {
  base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, task_, PIDFD_THREAD)));
  if (!process) {
    // Older kernels take only whole processes, whose descriptors a thread nearly always shares.
    const auto leader = status("Tgid:", 10);
    if (!leader) return leader.error();
    process.reset(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(*leader), 0)));
    if (!process) return base::system_error("pidfd_open", errno);
  }
  base::UniqueFd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
  if (!copy) return base::system_error("pidfd_getfd", errno);
  return copy;
}

base::Expected<base::UniqueFd> Target::root() const {
  base::UniqueFd folder(::open(proc("root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return base::system_error("open the task's root folder", errno);
  return folder;
}

base::Expected<mode_t> Target::umask() const {
  const auto mask = status("Umask:", 8);
  if (!mask) return mask.error();
  return static_cast<mode_t>(*mask);
}

base::Expected<unsigned long> Target::status(const std::string& key, int base) const {
  const auto text = base::read_file(proc("status"));
  if (!text) return text.error();
  const auto found = text->find("\n" + key);
  if (found == std::string::npos) return base::Error{base::ErrorCode::io, "the task's status has no " + key, {}};
  return std::strtoul(text->c_str() + found + 1 + key.size(), nullptr, base);
}

}  // namespace leafcutter::node
