#include "node/syscalls/perform.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "node/syscalls/asked.hpp"

namespace leafcutter::node {

Performed performed(long returned) { return {.done = true, .result = returned < 0 ? -errno : returned, .why = {}}; }

Performed not_performed(const std::string& why) { return {.done = false, .result = 0, .why = why}; }

base::Expected<std::string> outgoing(const Request& request) {
  auto buffers = buffers_of(request.call, request.target);
  if (!buffers) return buffers.error();
  auto left = request.at_most;
  std::uint64_t total = 0;
  for (auto& stretch : *buffers) {
    stretch.bytes = std::min<std::uint64_t>(stretch.bytes, left);
    left -= stretch.bytes;
    if (stretch.bytes > perform_bytes || (total += stretch.bytes) > perform_bytes)
      return base::Error{base::ErrorCode::io, "more than 64 MiB in one call", {}};
  }
  return request.target.memory(*buffers);
}

Performed perform(const Request& request) {
  if (request.socket && request.call.nr != SYS_splice) return perform_on_socket(request);
  switch (request.call.nr) {
    case SYS_sync: ::sync(); return performed(0);
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
