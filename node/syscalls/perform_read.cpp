// Reading and receiving for a task that goes on: what was got is put into its memory, as the kernel would have done.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "node/syscalls/asked.hpp"
#include "node/syscalls/perform.hpp"

namespace leafcutter::node {
namespace {

bool takes_message(int number) { return number == SYS_recvmsg || number == SYS_recvmmsg; }

int receive_flags(const Request& request) {
  switch (request.call.nr) {
    case SYS_recvfrom:
    case SYS_recvmmsg: return request.integer(3);
    case SYS_recvmsg: return request.integer(2);
    default: return 0;
  }
}

/// One message, or as much of a stream as is there.
Performed receive_some(const Request& request, int fd, Received& into) {
  sockaddr_storage from{};
  iovec part{into.bytes.data(), into.bytes.size()};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const auto flags = receive_flags(request) & ~(MSG_WAITALL | MSG_WAITFORONE);
  const auto got = performed(::recvmsg(fd, &message, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
  into.flags = message.msg_flags & ~MSG_CMSG_CLOEXEC;
  into.name.assign(reinterpret_cast<const char*>(&from), std::min<std::size_t>(message.msg_namelen, sizeof from));
  return got;
}

Performed read_some(const Request& request, int fd, std::string& bytes) {
  iovec part{bytes.data(), bytes.size()};
  const auto offset = named_offset(request.call);
  const auto flags = request.call.nr == SYS_preadv2 ? request.integer(5) : 0;
  // -1: where the file stands.
  return performed(::preadv2(fd, &part, 1, offset ? static_cast<off_t>(*offset) : -1, flags));
}

/// A received message's fields are in the task's msghdr; of several messages, in the first one's.
base::Status put_message(const Request& request, const Received& received) {
  const auto at = request.word(1);
  const auto message = request.target.value<msghdr>(at);
  if (!message) return message.error();
  auto changed = *message;
  changed.msg_flags = received.flags;
  changed.msg_controllen = 0;
  if (message->msg_name != nullptr) {
    const auto room = std::min<std::size_t>(received.name.size(), message->msg_namelen);
    const auto name = reinterpret_cast<std::uint64_t>(message->msg_name);
    if (auto put = request.target.fill({{name, room}}, received.name); !put) return put;
    changed.msg_namelen = static_cast<socklen_t>(received.name.size());
  }
  if (auto put = request.target.put(at, changed); !put) return put;
  if (request.call.nr != SYS_recvmmsg) return base::ok();
  return request.target.put(at + offsetof(mmsghdr, msg_len), static_cast<unsigned>(received.performed.result));
}

base::Status put_sender(const Request& request, const Received& received) {
  if (request.word(4) == 0) return base::ok();
  const auto room = request.target.value<socklen_t>(request.word(5));
  if (!room) return room.error();
  const auto bytes = std::min<std::size_t>(received.name.size(), *room);
  if (auto put = request.target.fill({{request.word(4), bytes}}, received.name); !put) return put;
  return request.target.put(request.word(5), static_cast<socklen_t>(received.name.size()));
}

}  // namespace

Received receive(const Request& request) {
  Received out;
  const auto cannot = [&](const std::string& why) {
    out.performed = not_performed(why);
    return out;
  };
  const auto buffers = buffers_of(request.call, request.target);
  if (!buffers) return cannot(buffers.error().message);
  if (takes_message(request.call.nr)) {
    const auto message = request.target.value<msghdr>(request.word(1));
    if (!message) return cannot(message.error().message);
    if (message->msg_control != nullptr && message->msg_controllen != 0)
      return cannot("receiving with room for control data is not carried out for a task");
  }
  const auto wanted = std::min(total_bytes(*buffers), request.at_most);
  if (wanted > perform_bytes) return cannot("more than 64 MiB in one call");
  const auto copy = request.target.duplicate(request.integer(0));
  if (!copy) return cannot(copy.error().message);
  out.into = *buffers;
  out.bytes.resize(wanted);
  if (!request.still_valid()) return cannot("the task has gone");
  out.performed = request.socket ? receive_some(request, copy->get(), out) : read_some(request, copy->get(), out.bytes);
  if (out.performed.result >= 0)
    out.bytes.resize(std::min<std::size_t>(wanted, static_cast<std::size_t>(out.performed.result)));
  return out;
}

base::Expected<long> deliver(const Request& request, const Received& received) {
  if (!request.still_valid()) return base::Error{base::ErrorCode::io, "the task has gone", {}};
  if (auto put = request.target.fill(received.into, received.bytes); !put) return put.error();
  if (takes_message(request.call.nr))
    if (auto put = put_message(request, received); !put) return put.error();
  if (request.call.nr == SYS_recvfrom)
    if (auto put = put_sender(request, received); !put) return put.error();
  return request.call.nr == SYS_recvmmsg ? 1L : received.performed.result;
}

base::Expected<std::uint64_t> readable_bytes(int fd, std::optional<std::uint64_t> offset) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return base::system_error("look at a descriptor", errno);
  if (!S_ISREG(status.st_mode)) {
    int waiting = 0;
    if (::ioctl(fd, FIONREAD, &waiting) != 0) return base::system_error("ask how many bytes wait", errno);
    return static_cast<std::uint64_t>(std::max(waiting, 0));
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto at = offset ? *offset : static_cast<std::uint64_t>(::lseek(fd, 0, SEEK_CUR));
  return at < size ? size - at : 0;
}

}  // namespace leafcutter::node
