// Calls on a connected socket. None of them may hold the supervisor up for long: a peer that does not read would
// otherwise stop every other task of the service.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "node/syscalls/asked.hpp"
#include "node/syscalls/perform.hpp"

namespace leafcutter::node {
namespace {

using Clock = std::chrono::steady_clock;

bool writable_before(int fd, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wanted{fd, POLLOUT, 0};
    const auto found = ::poll(&wanted, 1, static_cast<int>(left));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

/// Sends what a blocking or non-blocking call would have sent; `to` is the destination's address, usually none.
Performed send_bytes(const Request& request, int fd, const std::string& bytes, int flags, const std::string& to) {
  const auto status = ::fcntl(fd, F_GETFL);
  const auto waits = (flags & MSG_DONTWAIT) == 0 && status >= 0 && (status & O_NONBLOCK) == 0;
  const auto deadline = Clock::now() + std::chrono::milliseconds(perform_wait_ms);
  const auto* address = to.empty() ? nullptr : reinterpret_cast<const sockaddr*>(to.data());
  if (!request.still_valid()) return not_performed("the task has gone");
  std::size_t sent = 0;
  do {
    const auto n = ::sendto(fd, bytes.data() + sent, bytes.size() - sent, flags | MSG_DONTWAIT | MSG_NOSIGNAL, address,
                            static_cast<socklen_t>(to.size()));
    if (n >= 0)
      sent += static_cast<std::size_t>(n);
    else if (errno == EAGAIN && waits && writable_before(fd, deadline))
      continue;
    else if (errno == EAGAIN && waits && sent == 0)
      return not_performed("the peer took no byte within 2 s");
    else
      return sent > 0 ? performed(static_cast<long>(sent)) : performed(-1);
  } while (sent < bytes.size());
  return performed(static_cast<long>(sent));
}

Performed send_to(const Request& request, int fd) {
  const auto bytes = outgoing(request);
  if (!bytes) return not_performed(bytes.error().message);
  const auto to = named_destination(request.call, request.target);
  if (!to) return not_performed(to.error().message);
  return send_bytes(request, fd, *bytes, request.integer(3), *to);
}

Performed send_message(const Request& request, int fd) {
  const auto message = request.target.value<msghdr>(request.word(1));
  if (!message) return not_performed(message.error().message);
  if (message->msg_control != nullptr && message->msg_controllen != 0)
    return not_performed("sending with control data is not carried out for a task");
  const auto bytes = outgoing(request);
  if (!bytes) return not_performed(bytes.error().message);
  const auto to = named_destination(request.call, request.target);
  if (!to) return not_performed(to.error().message);
  return send_bytes(request, fd, *bytes, request.integer(request.call.nr == SYS_sendmsg ? 2 : 3), *to);
}

/// The first message only: a call may always carry fewer than it was given. Its result counts bytes, like the others'.
Performed send_messages(const Request& request, int fd) {
  if ((request.word(2) & 0xffffffffu) == 0) return not_performed("the call carries no message");
  auto sent = send_message(request, fd);
  if (!request.answered || !sent.done || sent.result < 0) return sent;
  const auto length = static_cast<unsigned>(sent.result);
  if (const auto put = request.target.put(request.word(1) + offsetof(mmsghdr, msg_len), length); !put)
    return not_performed(put.error().message);
  return sent;
}

/// The file's bytes go through a buffer of ours: sendfile itself would wait for a peer that does not read.
Performed send_file_part(const Request& request, int fd) {
  const auto in = request.target.duplicate(request.integer(1));
  if (!in) return not_performed(in.error().message);
  off_t offset = ::lseek(in->get(), 0, SEEK_CUR);
  if (request.word(2) != 0) {
    const auto given = request.target.value<off_t>(request.word(2));
    if (!given) return not_performed(given.error().message);
    offset = *given;
  }
  if (offset < 0) return not_performed("the file to send has no position");
  const auto wanted = std::min<std::uint64_t>(request.word(3), request.at_most);
  if (wanted > perform_bytes) return not_performed("more than 64 MiB in one call");
  std::string bytes(wanted, '\0');
  const auto got = ::pread(in->get(), bytes.data(), bytes.size(), offset);
  if (got < 0) return not_performed(base::system_error("read the file to send", errno).message);
  bytes.resize(static_cast<std::size_t>(got));
  if (request.change) request.change(bytes);
  auto sent = send_bytes(request, fd, bytes, 0, "");
  if (!request.answered || !sent.done || sent.result <= 0) return sent;
  if (request.word(2) != 0)
    static_cast<void>(request.target.put(request.word(2), static_cast<off_t>(offset + sent.result)));
  else
    ::lseek(in->get(), sent.result, SEEK_CUR);
  return sent;
}

Performed connect_to(const Request& request, int fd) {
  const auto size = std::min<std::uint64_t>(request.word(2) & 0xffffffffu, sizeof(sockaddr_storage));
  const auto address = request.target.memory(request.word(1), size);
  if (!address) return not_performed(address.error().message);
  const auto flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return not_performed(base::system_error("read the socket's flags", errno).message);
  if (!request.still_valid()) return not_performed("the task has gone");
  const auto waits = (flags & O_NONBLOCK) == 0;
  if (waits) ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);  // shared with the task, which waits in this very call
  auto out = performed(::connect(fd, reinterpret_cast<const sockaddr*>(address->data()), static_cast<socklen_t>(size)));
  if (waits && out.result == -EINPROGRESS &&
      writable_before(fd, Clock::now() + std::chrono::milliseconds(perform_wait_ms))) {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    out.result = -error;
  }
  if (waits) ::fcntl(fd, F_SETFL, flags);
  return out;
}

}  // namespace

Performed perform_on_socket(const Request& request) {
  const auto socket = request.target.duplicate(request.integer(0));
  if (!socket) return not_performed(socket.error().message);
  const auto fd = socket->get();
  switch (request.call.nr) {
    case SYS_connect: return connect_to(request, fd);
    case SYS_sendto: return send_to(request, fd);
    case SYS_sendmsg: return send_message(request, fd);
    case SYS_sendfile: return send_file_part(request, fd);
    case SYS_sendmmsg: return send_messages(request, fd);
    case SYS_write:
    case SYS_writev: {
      const auto bytes = outgoing(request);
      return bytes ? send_bytes(request, fd, *bytes, 0, "") : not_performed(bytes.error().message);
    }
    default: return not_performed("this call is not carried out for a task");
  }
}

}  // namespace leafcutter::node
