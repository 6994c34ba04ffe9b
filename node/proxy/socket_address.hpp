// Addresses as sockets want them and as users write them, and the few socket calls that links share.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node::proxy {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  /// "127.0.0.1:80", "[::1]:80".
  std::string text() const;
  /// Equal for equal addresses and ports.
  std::string key() const;
};

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};

/// "host:port", "[::1]:port"; `what` names the field in the error.
base::Expected<HostPort> parse_host_port(std::string_view text, std::string_view what);
/// Address literals only; nothing for names.
std::vector<SocketAddress> literal_address(const HostPort& host);
/// Blocks; in the resolver's order, IPv4 first.
base::Expected<std::vector<SocketAddress>> resolve_host(const HostPort& host);

/// The local address of a socket.
SocketAddress local_address(int fd);

constexpr int listen_backlog = 4096;

/// Bound (and listening, on TCP); port 0 takes a free one. The port stays the socket's when it stops listening.
base::Expected<base::UniqueFd> open_listener(SocketAddress address, int type);

void send_at_once(int fd);
/// From now on closing the socket sends RST, and what was not sent yet is lost.
void reset_on_close(int fd);
/// Bytes that the peer's kernel has not acknowledged.
int unacknowledged(int fd);

/// Lacking descriptors or memory: passes by itself.
bool is_scarcity(int error);

}  // namespace leafcutter::node::proxy
