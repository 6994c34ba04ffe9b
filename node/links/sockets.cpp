#include "node/links/sockets.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

namespace leafcutter::node {
namespace {

Moved moved(ssize_t count, bool reading) {
  if (count > 0) return {Moved::Result::moved, static_cast<std::size_t>(count), 0};
  if (count == 0 && reading) return {Moved::Result::end, 0, 0};
  if (count == 0 || errno == EAGAIN || errno == EWOULDBLOCK) return {};
  return {Moved::Result::failed, 0, errno};
}

}  // namespace

Moved receive(int fd, std::span<char> room) {
  ssize_t count = 0;
  do {
    count = ::recv(fd, room.data(), room.size(), MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  return moved(count, true);
}

Moved transmit(int fd, std::string_view bytes) {
  ssize_t count = 0;
  do {
    count = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  return moved(count, false);
}

void reset_on_close(int fd) {
  const linger at_once{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Arrival arrival(int fd) {
  pollfd state{fd, 0, 0};
  if (::poll(&state, 1, 0) > 0 && (state.revents & (POLLERR | POLLNVAL)) != 0) return Arrival::refused;
  int waiting = 0;
  if (::ioctl(fd, SIOCOUTQ, &waiting) != 0) return Arrival::refused;
  return waiting == 0 ? Arrival::arrived : Arrival::under_way;
}

}  // namespace leafcutter::node
