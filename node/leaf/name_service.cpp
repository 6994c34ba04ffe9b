#include "node/leaf/name_service.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "node/leaf/isolation.hpp"
#include "scenarios/dns_lanes.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::node {
namespace {

using base::UniqueFd;

constexpr std::uint16_t dns_port = 53;

base::Expected<UniqueFd> resolver_socket(const char* address, int type) {
  UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return base::system_error("socket", errno);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(dns_port);
  ::inet_pton(AF_INET, address, &name.sin_addr);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
      (type == SOCK_STREAM && ::listen(fd.get(), 128) != 0))
    return base::system_error(std::string("listen on ") + address + " port 53", errno);
  return fd;
}

/// In the service's network. The address of its resolv.conf must be there; a resolver that finds no such file asks
/// 127.0.0.1, which is there unless a link has that port.
base::Expected<resolver::ServerSockets> resolver_sockets(const LeafContext& context, const std::string& service) {
  const EnterNetwork inside(context.network.of(service), context.network.home());
  if (auto status = inside.status(); !status) return status.error();
  resolver::ServerSockets sockets;
  for (const auto* address : {resolver_address, "127.0.0.1"}) {
    for (const int type : {SOCK_DGRAM, SOCK_STREAM}) {
      auto fd = resolver_socket(address, type);
      if (fd)
        (type == SOCK_DGRAM ? sockets.datagrams : sockets.streams).push_back(std::move(*fd));
      else if (address == resolver_address)
        return fd.error();
    }
  }
  return sockets;
}

}  // namespace

base::Expected<std::unique_ptr<NameService>> NameService::start(LeafContext& context) {
  const auto asking = scenarios::services_that_ask(context.scenario, context.job.plan);
  if (asking.empty()) return std::unique_ptr<NameService>();
  std::map<std::string, std::vector<std::string>> known;
  for (const auto& [name, address] : context.network.addresses()) {
    known[name] = {address};
    if (has_ipv6()) known[name].push_back(ipv6_address(address));
  }
  for (const auto& [name, address] : scenarios::outside_addresses(context.scenario)) known[name] = {address};
  std::unique_ptr<NameService> names(new NameService(known));
  for (const auto& service : asking) {
    auto sockets = resolver_sockets(context, service);
    if (!sockets)
      return base::Error{sockets.error().code, "resolver of " + service + ": " + sockets.error().message, {}};
    names->servers_.push_back(std::make_unique<resolver::Server>(
        context.io, context.activity, resolver::Lookups(names->zone_, context.sites, context.recorder, service),
        std::move(*sockets)));
    names->servers_.back()->start();
  }
  return names;
}

}  // namespace leafcutter::node
