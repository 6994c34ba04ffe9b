#include "node/proxy/socket_address.hpp"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace leafcutter::node::proxy {

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

void SocketAddress::set_port(std::uint16_t port) {
  if (family() == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
}

std::string SocketAddress::text() const {
  char buffer[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, buffer, sizeof buffer);
    return "[" + std::string(buffer) + "]:" + std::to_string(port());
  }
  ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, buffer, sizeof buffer);
  return std::string(buffer) + ":" + std::to_string(port());
}

std::string SocketAddress::key() const {
  std::string key(1, static_cast<char>(family()));
  const auto port_bytes = port();
  key.append(reinterpret_cast<const char*>(&port_bytes), sizeof port_bytes);
  if (family() == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    key.append(reinterpret_cast<const char*>(&v6.sin6_addr), sizeof v6.sin6_addr);
    key.append(reinterpret_cast<const char*>(&v6.sin6_scope_id), sizeof v6.sin6_scope_id);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    key.append(reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr);
  }
  return key;
}

base::Expected<HostPort> parse_host_port(std::string_view text, std::string_view what) {
  const auto bad = [&](std::string_view why) {
    return base::Error{base::ErrorCode::bad_input, std::string(what) + ": \"" + std::string(text) + "\" " +
                                                       std::string(why) +
                                                       "; 127.0.0.1:8080 or [::1]:8080 or name:8080 would do"};
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("has no port");
  auto host = text.substr(0, colon);
  const auto digits = text.substr(colon + 1);
  HostPort result;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result.port);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
    return bad("has no port from 0 to 65535 at its end");
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return bad("has an IPv6 address without brackets");
  if (host.empty()) return bad("has no host");
  result.host = host;
  return result;
}

std::vector<SocketAddress> literal_address(const HostPort& host) {
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  if (::inet_pton(AF_INET, host.host.c_str(), &v4.sin_addr) == 1) {
    address.storage.ss_family = AF_INET;
    address.length = sizeof(sockaddr_in);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
    address.storage = {};
    if (::inet_pton(AF_INET6, host.host.c_str(), &v6.sin6_addr) != 1) return {};
    address.storage.ss_family = AF_INET6;
    address.length = sizeof(sockaddr_in6);
  }
  address.set_port(host.port);
  return {address};
}

base::Expected<std::vector<SocketAddress>> resolve_host(const HostPort& host) {
  if (auto literal = literal_address(host); !literal.empty()) return literal;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.host.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  if (error != 0)
    return base::Error{base::ErrorCode::io, "cannot resolve \"" + host.host + "\": " + ::gai_strerror(error)};
  std::vector<SocketAddress> addresses;
  for (const auto* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    SocketAddress address;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
    address.set_port(host.port);
    addresses.push_back(address);
  }
  if (addresses.empty())
    return base::Error{base::ErrorCode::io, "\"" + host.host + "\" has neither an IPv4 nor an IPv6 address"};
  std::stable_sort(addresses.begin(), addresses.end(),
                   [](const auto& a, const auto& b) { return a.family() == AF_INET && b.family() != AF_INET; });
  return addresses;
}

SocketAddress local_address(int fd) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (::getsockname(fd, address.get(), &address.length) != 0) return {};
  return address;
}

namespace {

base::Expected<base::UniqueFd> bound_socket(const SocketAddress& address, int type) {
  base::UniqueFd fd(::socket(address.family(), type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return base::system_error("listen on " + address.text() + ": socket", errno);
  const int on = 1;
  if (type == SOCK_STREAM) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), address.get(), address.length) != 0) {
    const int why = errno;
    auto error = base::system_error("listen on " + address.text(), why);
    if (why == EADDRINUSE) {
      error.code = base::ErrorCode::conflict;
      error.message += "; another process has the port; port 0 takes a free one";
    } else if (why == EACCES) {
      error.message += "; this port is for root alone; one from 1024 on would do";
    } else if (why == EADDRNOTAVAIL) {
      error.message += "; this host has no such address; 127.0.0.1 would do";
    }
    return error;
  }
  return fd;
}

}  // namespace

base::Expected<base::UniqueFd> open_listener(SocketAddress address, int type) {
  auto fd = bound_socket(address, type);
  if (!fd) return fd;
  if (type != SOCK_STREAM) return fd;
  if (address.port() == 0) {
    // A port that the kernel chose is lost when the socket stops listening, one that was asked for is not.
    auto again = bound_socket(local_address(fd->get()), type);
    if (!again) return again;
    fd = std::move(again);
  }
  if (::listen(fd->get(), listen_backlog) != 0)
    return base::system_error("listen on " + local_address(fd->get()).text(), errno);
  return fd;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void reset_on_close(int fd) {
  const linger at_once{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

int unacknowledged(int fd) {
  int waiting = 0;
  return ::ioctl(fd, SIOCOUTQ, &waiting) == 0 ? waiting : 0;
}

bool is_scarcity(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

}  // namespace leafcutter::node::proxy
