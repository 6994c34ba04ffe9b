#include "node/syscalls/dial.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "node/syscalls/address.hpp"
#include "node/syscalls/object_class.hpp"

namespace leafcutter::node {
namespace {

/// Nothing was dialled on it yet, or nothing that still goes on.
bool is_fresh(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_state == TCP_CLOSE;
}

bool takes(int socket, sa_family_t family) {
  int domain = 0;
  socklen_t size = sizeof domain;
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == family;
}

}  // namespace

std::string dialled_address(const seccomp_data& call, const Target& target) {
  const auto size = call.args[2] & 0xffffffffu;
  if (size < sizeof(sa_family_t) || size > sizeof(sockaddr_storage)) return "";
  const auto bytes = target.memory(call.args[1], size);
  if (!bytes) return "";
  const auto address = address_text(*bytes);
  if (!address) return "";
  const auto socket = target.duplicate(static_cast<int>(call.args[0]));
  sa_family_t family = AF_UNSPEC;
  std::memcpy(&family, bytes->data(), sizeof family);
  if (!socket || class_of_socket(socket->get()) != "socket-tcp" || !takes(socket->get(), family) ||
      !is_fresh(socket->get()))
    return "";
  if (address->starts_with("0.0.0.0:")) return "127.0.0.1" + address->substr(address->rfind(':'));
  if (address->starts_with("[::]:")) return "[::1]" + address->substr(address->rfind(':'));
  return *address;
}

bool calls_can_be_watched() {
#if defined(__x86_64__)
  std::uint32_t action = SECCOMP_RET_USER_NOTIF;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
#else
  return false;
#endif
}

}  // namespace leafcutter::node
