#include "node/syscalls/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace leafcutter::node {
namespace {

base::Error bad(const std::string& message) { return {base::ErrorCode::protocol, message, {}}; }

base::Expected<std::string> ipv4(std::string_view bytes) {
  if (bytes.size() < sizeof(sockaddr_in)) return bad("the IPv4 address is too short");
  sockaddr_in address{};
  std::memcpy(&address, bytes.data(), sizeof address);
  char text[INET_ADDRSTRLEN];
  ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(ntohs(address.sin_port));
}

base::Expected<std::string> ipv6(std::string_view bytes) {
  // The scope id may be missing (RFC 2133); the kernel takes that too.
  constexpr auto shortest = offsetof(sockaddr_in6, sin6_scope_id);
  if (bytes.size() < shortest) return bad("the IPv6 address is too short");
  sockaddr_in6 address{};
  std::memcpy(&address, bytes.data(), std::min(bytes.size(), sizeof address));
  char text[INET6_ADDRSTRLEN];
  const auto port = ":" + std::to_string(ntohs(address.sin6_port));
  if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    ::inet_ntop(AF_INET, address.sin6_addr.s6_addr + 12, text, sizeof text);
    return text + port;
  }
  ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text);
  return "[" + std::string(text) + "]" + port;
}

std::string unix_name(std::string_view bytes) {
  auto name = bytes.substr(offsetof(sockaddr_un, sun_path));
  if (name.empty()) return "unix:";
  if (name.front() == '\0') return "unix:@" + std::string(name.substr(1));
  return "unix:" + std::string(name.substr(0, name.find('\0')));
}

}  // namespace

base::Expected<std::string> address_text(std::string_view bytes) {
  sa_family_t family = AF_UNSPEC;
  if (bytes.size() < sizeof family) return bad("the address is too short");
  std::memcpy(&family, bytes.data(), sizeof family);
  switch (family) {
    case AF_INET: return ipv4(bytes);
    case AF_INET6: return ipv6(bytes);
    case AF_UNIX: return unix_name(bytes);
    default: return bad("address family " + std::to_string(family) + " is not looked at");
  }
}

}  // namespace leafcutter::node
