#include "node/syscalls/perform.hpp"

#include <limits.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace leafcutter::node {

Performed performed(long returned) { return {.done = true, .result = returned < 0 ? -errno : returned, .why = {}}; }

Performed not_performed(const std::string& why) { return {.done = false, .result = 0, .why = why}; }

base::Expected<std::string> outgoing_buffer(const Request& request, std::uint64_t address, std::uint64_t bytes) {
  if (bytes > perform_bytes) return base::Error{base::ErrorCode::io, "more than 64 MiB in one call", {}};
  return request.target.memory(address, bytes);
}

base::Expected<std::string> outgoing_vector(const Request& request, std::uint64_t address, std::uint64_t count) {
  if (count > IOV_MAX) return base::Error{base::ErrorCode::io, "more buffers than the kernel takes", {}};
  const auto raw = request.target.memory(address, count * sizeof(iovec));
  if (!raw) return raw.error();
  std::vector<Stretch> stretches;
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    iovec part{};
    std::memcpy(&part, raw->data() + i * sizeof part, sizeof part);
    if (part.iov_len > perform_bytes || (total += part.iov_len) > perform_bytes)
      return base::Error{base::ErrorCode::io, "more than 64 MiB in one call", {}};
    stretches.push_back({reinterpret_cast<std::uint64_t>(part.iov_base), part.iov_len});
  }
  return request.target.memory(stretches);
}

Performed perform(const Request& request) {
  if (request.socket) return perform_on_socket(request);
  switch (request.call.nr) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendfile:
    case SYS_copy_file_range:
    case SYS_splice:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_syncfs:
    case SYS_ftruncate:
    case SYS_fallocate: return perform_on_file(request);
    default: return perform_on_path(request);
  }
}

}  // namespace leafcutter::node
