// Calls on an open file. The descriptor shares the task's offset and flags, so O_APPEND and sequential writes go where
// the task's own call would have put them.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "node/syscalls/perform.hpp"

namespace leafcutter::node {
namespace {

constexpr std::size_t direct_alignment = 4096;  ///< what O_DIRECT may ask of a buffer

struct Free {
  void operator()(void* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc)
};

Performed write_bytes(const Request& request, int fd, const std::string& bytes) {
  const auto room = (bytes.size() / direct_alignment + 1) * direct_alignment;
  const std::unique_ptr<void, Free> aligned(std::aligned_alloc(direct_alignment, room));
  if (!aligned) return not_performed("no memory for the bytes");
  std::memcpy(aligned.get(), bytes.data(), bytes.size());
  const auto offset = static_cast<off_t>(request.word(3));
  const iovec part{aligned.get(), bytes.size()};
  if (!request.still_valid()) return not_performed("the task has gone");
  switch (request.call.nr) {
    case SYS_pwrite64:
    case SYS_pwritev: return performed(::pwrite(fd, aligned.get(), bytes.size(), offset));
    case SYS_pwritev2: return performed(::pwritev2(fd, &part, 1, offset, request.integer(5)));
    default: return performed(::write(fd, aligned.get(), bytes.size()));
  }
}

Performed write_file(const Request& request, int fd) {
  const auto one = request.call.nr == SYS_write || request.call.nr == SYS_pwrite64;
  const auto bytes = one ? outgoing_buffer(request, request.word(1), request.word(2))
                         : outgoing_vector(request, request.word(1), request.word(2));
  if (!bytes) return not_performed(bytes.error().message);
  return write_bytes(request, fd, *bytes);
}

/// An offset that a call passes by address; nothing when it passes none. The task dies before it could read the new
/// value.
base::Expected<std::optional<loff_t>> offset_at(const Request& request, int index) {
  if (request.word(index) == 0) return std::optional<loff_t>();
  const auto value = request.target.value<loff_t>(request.word(index));
  if (!value) return value.error();
  return std::optional<loff_t>(*value);
}

Performed send_file(const Request& request, int out) {
  const auto in = request.target.duplicate(request.integer(1));
  if (!in) return not_performed(in.error().message);
  auto offset = offset_at(request, 2);
  if (!offset) return not_performed(offset.error().message);
  if (!request.still_valid()) return not_performed("the task has gone");
  return performed(::sendfile(out, in->get(), *offset ? &**offset : nullptr, request.word(3)));
}

Performed move_bytes(const Request& request, int out) {
  const auto in = request.target.duplicate(request.integer(0));
  if (!in) return not_performed(in.error().message);
  auto from = offset_at(request, 1);
  if (!from) return not_performed(from.error().message);
  auto to = offset_at(request, 3);
  if (!to) return not_performed(to.error().message);
  auto* const from_at = *from ? &**from : nullptr;
  auto* const to_at = *to ? &**to : nullptr;
  if (!request.still_valid()) return not_performed("the task has gone");
  if (request.call.nr == SYS_copy_file_range)
    return performed(
        ::copy_file_range(in->get(), from_at, out, to_at, request.word(4), static_cast<unsigned>(request.word(5))));
  // A pipe that is empty now would hold up every other task of the service.
  const auto moved = ::splice(in->get(), from_at, out, to_at, request.word(4),
                              static_cast<unsigned>(request.word(5)) | SPLICE_F_NONBLOCK);
  if (moved < 0 && errno == EAGAIN) return not_performed("the pipe holds no bytes yet");
  return performed(moved);
}

}  // namespace

Performed perform_on_file(const Request& request) {
  const auto place = request.call.nr == SYS_copy_file_range || request.call.nr == SYS_splice ? 2 : 0;
  const auto file = request.target.duplicate(request.integer(place));
  if (!file) return not_performed(file.error().message);
  const auto fd = file->get();
  switch (request.call.nr) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2: return write_file(request, fd);
    case SYS_sendfile: return send_file(request, fd);
    case SYS_copy_file_range:
    case SYS_splice: return move_bytes(request, fd);
    default: break;
  }
  if (!request.still_valid()) return not_performed("the task has gone");
  const auto second = static_cast<off_t>(request.word(1));
  const auto third = static_cast<off_t>(request.word(2));
  switch (request.call.nr) {
    case SYS_fsync: return performed(::fsync(fd));
    case SYS_fdatasync: return performed(::fdatasync(fd));
    case SYS_syncfs: return performed(::syncfs(fd));
    case SYS_sync_file_range:
      return performed(::sync_file_range(fd, second, third, static_cast<unsigned>(request.word(3))));
    case SYS_ftruncate: return performed(::ftruncate(fd, second));
    case SYS_fallocate:
      return performed(::fallocate(fd, request.integer(1), third, static_cast<off_t>(request.word(3))));
    default: return not_performed("this call is not carried out for a task");
  }
}

}  // namespace leafcutter::node
