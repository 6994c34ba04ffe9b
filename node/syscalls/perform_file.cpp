// Calls on an open file. The descriptor shares the task's offset and flags, so O_APPEND and sequential writes go where
// the task's own call would have put them.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

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
  const auto bytes = outgoing(request);
  if (!bytes) return not_performed(bytes.error().message);
  return write_bytes(request, fd, *bytes);
}

/// An offset that a call passes by address and moves; nothing when it passes none.
class PassedOffset {
 public:
  static base::Expected<PassedOffset> read(const Request& request, int index) {
    PassedOffset out;
    out.address_ = request.word(index);
    if (out.address_ == 0) return out;
    const auto value = request.target.value<loff_t>(out.address_);
    if (!value) return value.error();
    out.value_ = *value;
    return out;
  }
  loff_t* pointer() { return address_ == 0 ? nullptr : &value_; }
  /// Where the next bytes are in `fd`, which is ours; -1: at no place.
  loff_t place(int fd) const { return address_ == 0 ? ::lseek(fd, 0, SEEK_CUR) : value_; }
  void move_on(int fd, long bytes) {
    if (address_ == 0)
      ::lseek(fd, bytes, SEEK_CUR);
    else
      value_ += bytes;
  }
  /// A task that goes on reads the new value.
  void put_back(const Request& request) const {
    if (address_ != 0 && request.answered) static_cast<void>(request.target.put(address_, value_));
  }

 private:
  std::uint64_t address_ = 0;
  loff_t value_ = 0;
};

/// From file to file, through a buffer of ours, where the bytes are changed.
Performed move_changed(const Request& request, int in, PassedOffset& from, int out, PassedOffset& to,
                       std::uint64_t wanted) {
  if (wanted > perform_bytes) return not_performed("more than 64 MiB in one call");
  struct stat source {
  }, destination{};
  const auto known = ::fstat(in, &source) == 0 && ::fstat(out, &destination) == 0;
  if (!known || !S_ISREG(source.st_mode) || !S_ISREG(destination.st_mode))
    return not_performed("only bytes on their way from a file to a file or a socket can be changed");
  std::string bytes(wanted, '\0');
  const auto got = ::pread(in, bytes.data(), bytes.size(), from.place(in));
  if (got < 0) return performed(got);
  bytes.resize(static_cast<std::size_t>(got));
  request.change(bytes);
  if (!request.still_valid()) return not_performed("the task has gone");
  const auto put = to.pointer() != nullptr ? performed(::pwrite(out, bytes.data(), bytes.size(), *to.pointer()))
                                           : performed(::write(out, bytes.data(), bytes.size()));
  if (put.result <= 0) return put;
  from.move_on(in, put.result);
  if (to.pointer() != nullptr) to.move_on(out, put.result);
  from.put_back(request);
  to.put_back(request);
  return put;
}

Performed send_file(const Request& request, int out) {
  const auto in = request.target.duplicate(request.integer(1));
  if (!in) return not_performed(in.error().message);
  auto offset = PassedOffset::read(request, 2);
  if (!offset) return not_performed(offset.error().message);
  const auto bytes = std::min<std::uint64_t>(request.word(3), request.at_most);
  if (request.change) {
    PassedOffset nowhere;
    return move_changed(request, in->get(), *offset, out, nowhere, bytes);
  }
  if (!request.still_valid()) return not_performed("the task has gone");
  const auto sent = performed(::sendfile(out, in->get(), offset->pointer(), bytes));
  offset->put_back(request);
  return sent;
}

Performed move_bytes(const Request& request, int out) {
  const auto in = request.target.duplicate(request.integer(0));
  if (!in) return not_performed(in.error().message);
  auto from = PassedOffset::read(request, 1);
  if (!from) return not_performed(from.error().message);
  auto to = PassedOffset::read(request, 3);
  if (!to) return not_performed(to.error().message);
  const auto bytes = std::min<std::uint64_t>(request.word(4), request.at_most);
  if (request.change) return move_changed(request, in->get(), *from, out, *to, bytes);
  if (!request.still_valid()) return not_performed("the task has gone");
  const auto flags = static_cast<unsigned>(request.word(5));
  Performed moved;
  if (request.call.nr == SYS_copy_file_range) {
    moved = performed(::copy_file_range(in->get(), from->pointer(), out, to->pointer(), bytes, flags));
  } else {
    // A pipe that is empty now would hold up every other task of the service.
    moved = performed(::splice(in->get(), from->pointer(), out, to->pointer(), bytes, flags | SPLICE_F_NONBLOCK));
    if (moved.result == -EAGAIN) return not_performed("the pipe holds no bytes yet");
  }
  from->put_back(request);
  to->put_back(request);
  return moved;
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
