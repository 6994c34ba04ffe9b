#include "base/files.hpp"

#include <unistd.h>

#include <cerrno>

namespace leafcutter::base {

Expected<bool> read_at(int fd, char* out, std::size_t size, std::uint64_t offset, const std::string& what) {
  while (size > 0) {
    const auto got = ::pread(fd, out, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read " + what, errno);
    if (got == 0) return false;
    out += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

Status write_at(int fd, std::string_view bytes, std::uint64_t offset, const std::string& what) {
  while (!bytes.empty()) {
    const auto put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_error("write " + what, errno);
    offset += static_cast<std::uint64_t>(put);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return ok();
}

}  // namespace leafcutter::base
