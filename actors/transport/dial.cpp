#include "actors/transport/dial.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <memory>

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;

constexpr std::chrono::milliseconds dial_within{3000};
constexpr int addresses_at_most = 4;

Expected<base::UniqueFd> dial_one(const addrinfo& address) {
  base::UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return base::system_error("socket", errno);
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return base::system_error("connect", errno);
  pollfd wait{fd.get(), POLLOUT, 0};
  if (::poll(&wait, 1, static_cast<int>(dial_within.count())) <= 0) return Error{ErrorCode::timeout, "no answer"};
  int failure = 0;
  socklen_t size = sizeof failure;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size) != 0 || failure != 0)
    return base::system_error("connect", failure);
  return fd;
}

}  // namespace

Expected<base::UniqueFd> dial(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0)
    return Error{ErrorCode::io, "no address of " + host};
  const std::unique_ptr<addrinfo, decltype([](addrinfo* all) { ::freeaddrinfo(all); })> owner(list);
  Expected<base::UniqueFd> dialled = Error{ErrorCode::io, "no address of " + host};
  int tried = 0;
  for (const auto* at = list; at != nullptr && tried < addresses_at_most && !dialled; at = at->ai_next, ++tried)
    dialled = dial_one(*at);
  return dialled;
}

}  // namespace leafcutter::actors
