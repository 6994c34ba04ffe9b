#include "node/leaf/network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.hpp"
#include "node/leaf/netlink.hpp"

namespace leafcutter::node {
namespace {

using base::UniqueFd;

base::Expected<UniqueFd> current_network() {
  UniqueFd fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!fd) return base::system_error("open the network namespace", errno);
  return fd;
}

base::Status set_network(const std::string& setting, const char* value) {
  const std::string path = "/proc/sys/net/" + setting;
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const auto size = static_cast<ssize_t>(std::strlen(value));
  if (!fd || ::write(fd.get(), value, std::strlen(value)) != size) return base::system_error("write " + path, errno);
  return base::ok();
}

base::Status prepare_current(const std::vector<std::string>& addresses) {
  auto all = addresses;
  if (has_ipv6()) {
    for (const auto& address : addresses) all.push_back(ipv6_address(address));
    // No addresses of the link: both ends of a cable would have the same.
    if (auto status = set_network("ipv6/conf/default/addr_gen_mode", "1"); !status) return status;
  }
  if (auto status = configure_loopback(all); !status) return status;
  // Services use the ports they always used, also those below 1024, without being root.
  return set_network("ipv4/ip_unprivileged_port_start", "0");
}

/// Everything arrives here and, where nobody listens, is refused by the kernel, at once however often.
base::Status refuse_everything() {
  if (auto status = make_all_local("0.0.0.0"); !status) return status;
  if (auto status = set_network("ipv4/icmp_ratelimit", "0"); !status || !has_ipv6()) return status;
  if (auto status = make_all_local("::"); !status) return status;
  return set_network("ipv6/icmp/ratelimit", "0");
}

/// What is for an address outside of the leaf; the filter runs for every packet that a service sends to a link.
base::Expected<UniqueFd> tap(bool six) {
  // Loads a word of the destination; those of the leaf are not for us.
  std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16),
                                      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff00),
                                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0a4d0000, 0, 1),  // 10.77.0.0/24
                                      BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 256)};
  if (six)
    program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 24), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xfd770000, 0, 3),
               BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 28), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),  // fd77::/64
               BPF_STMT(BPF_RET | BPF_K, 0),           BPF_STMT(BPF_RET | BPF_K, 256)};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));  // hears nothing until it is bound
  if (!fd) return base::system_error("packet socket", errno);
  sockaddr_ll name{};
  name.sll_family = AF_PACKET;
  name.sll_protocol = htons(six ? ETH_P_IPV6 : ETH_P_IP);
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
    return base::system_error("packet socket", errno);
  return fd;
}

base::Error unavailable(base::Error error) { return {base::ErrorCode::unavailable, "network: " + error.message, {}}; }

base::Expected<UniqueFd> bound(const std::string& address, std::uint16_t port, int type) {
  const bool six = address.find(':') != std::string::npos;
  UniqueFd fd(::socket(six ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return base::system_error("socket", errno);
  const int one = 1;
  if (type == SOCK_STREAM) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  int bind_result = -1;
  if (six) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    // What a route alone makes local is nobody's address to bind(2), unlike with IPv4.
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof one);
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_port = htons(port);
    ::inet_pton(AF_INET6, address.c_str(), &name.sin6_addr);
    bind_result = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
  } else {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    ::inet_pton(AF_INET, address.c_str(), &name.sin_addr);
    bind_result = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
  }
  if (bind_result != 0 || (type == SOCK_STREAM && ::listen(fd.get(), 1024) != 0))
    return base::system_error("listen on " + address + " port " + std::to_string(port), errno);
  return fd;
}

bool connect_to(int fd, const std::string& address, std::uint16_t port) {
  if (address.find(':') != std::string::npos) {
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_port = htons(port);
    ::inet_pton(AF_INET6, address.c_str(), &name.sin6_addr);
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  }
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &name.sin_addr);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}

/// As proc(5) writes addresses of sockets: words of the machine's byte order, in hexadecimal.
std::string as_in_proc(const std::string& address, std::uint16_t port) {
  std::array<std::uint32_t, 4> words{};
  const bool six = address.find(':') != std::string::npos;
  ::inet_pton(six ? AF_INET6 : AF_INET, address.c_str(), words.data());
  std::string text;
  std::array<char, 16> buffer{};
  for (std::size_t i = 0; i < (six ? 4u : 1u); ++i) {
    std::snprintf(buffer.data(), buffer.size(), "%08X", words[i]);
    text += buffer.data();
  }
  std::snprintf(buffer.data(), buffer.size(), ":%04X ", port);
  return " " + text + buffer.data();
}

/// The first of `addresses` that a UDP socket of this network has, or any address; the first when none does: a datagram
/// to the wrong one would not come back, and trying to bind would be in the way of who starts just now.
std::string where_bound(const std::vector<std::string>& addresses, std::uint16_t port) {
  std::string sockets;
  for (const auto* table : {"/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"})
    if (const auto text = base::read_file(table)) sockets += *text;
  const auto has = [&](const std::string& address) {
    return sockets.find(as_in_proc(address, port)) != std::string::npos;
  };
  const bool everywhere = has("::");  // usually of both families
  for (const auto& address : addresses) {
    const bool six = address.find(':') != std::string::npos;
    if (has(address) || (six ? everywhere : has("0.0.0.0") || everywhere)) return address;
  }
  return addresses.front();
}

/// Some of what it dials ends beyond its own network.
bool needs_anteroom(const scenarios::Scenario& scenario, const std::string& lane) {
  return std::any_of(scenario.links.begin(), scenario.links.end(),
                     [&](const auto& link) { return link.from == lane; }) ||
         std::any_of(scenario.ways_out.begin(), scenario.ways_out.end(),
                     [&](const auto& way) { return way.from == lane && !way.to_loopback(); });
}

/// Would a service with this port of its own find its loopback address taken by us?
bool declares(const scenarios::Scenario& scenario, const std::string& lane, std::uint16_t port, bool datagrams) {
  const auto* service = scenario.service(lane);
  return service != nullptr && std::any_of(service->ports.begin(), service->ports.end(), [&](const auto& own) {
           return own.number == port && (own.protocol == scenarios::Protocol::udp) == datagrams;
         });
}

}  // namespace

EnterNetwork::EnterNetwork(int network, int home) : home_(home) {
  if (::setns(network, CLONE_NEWNET) != 0) error_ = errno;
}

EnterNetwork::~EnterNetwork() {
  if (error_ != 0 || ::setns(home_, CLONE_NEWNET) == 0) return;
  std::fprintf(stderr, "cannot leave a network namespace: %s\n", std::strerror(errno));
  ::_exit(70);
}

base::Status EnterNetwork::status() const {
  if (error_ != 0) return base::system_error("enter a network namespace", error_);
  return base::ok();
}

bool has_ipv6() { return ::access("/proc/sys/net/ipv6", F_OK) == 0; }

std::string ipv6_address(const std::string& address) { return "fd77::" + address.substr(address.rfind('.') + 1); }

std::map<std::string, std::string> service_addresses(const scenarios::Scenario& scenario) {
  std::map<std::string, std::string> addresses = {{scenarios::workload_lane, "10.77.0.200"}};
  for (std::size_t i = 0; i < scenario.services.size(); ++i)
    addresses[scenario.services[i].name] = "10.77.0." + std::to_string(i + 1);
  return addresses;
}

base::Expected<Network> Network::create(const scenarios::Scenario& scenario, bool between) {
  Network network;
  if (scenario.services.size() > 199)
    return base::Error{base::ErrorCode::unavailable, "network: a leaf has room for 199 services", {}};
  network.addresses_ = service_addresses(scenario);
  std::vector<std::string> all;
  for (const auto& [lane, address] : network.addresses_) all.push_back(address);
  if (auto status = prepare_current(all); !status) return unavailable(status.error());
  auto home = current_network();
  if (!home) return unavailable(home.error());
  const int home_fd = home->get();
  network.namespaces_[scenarios::workload_lane] = std::move(*home);
  if (auto status = network.add_outside(); !status) return unavailable(status.error());
  for (const auto& service : scenario.services) {
    if (auto status = network.add_service(service.name, needs_anteroom(scenario, service.name)); !status)
      return unavailable(status.error());
  }
  if (between)
    if (auto status = network.add_between(); !status) return unavailable(status.error());
  if (::setns(home_fd, CLONE_NEWNET) != 0) return unavailable(base::system_error("setns", errno));
  const bool lets_out = std::any_of(scenario.ways_out.begin(), scenario.ways_out.end(), [](const auto& way) {
    return way.from == scenarios::workload_lane && !way.to_loopback();
  });
  if (auto status = network.add_workload(lets_out); !status) return unavailable(status.error());
  if (auto status = network.await_cables(); !status) return unavailable(status.error());
  return network;
}

base::Status Network::add_outside() {
  if (::unshare(CLONE_NEWNET) != 0) return base::system_error("unshare", errno);
  // An address of nobody: errors of IPv6 need one to come from.
  if (auto status = prepare_current({"10.77.0.254"}); !status) return status;
  if (auto status = refuse_everything(); !status) return status;
  auto outside = current_network();
  if (!outside) return outside.error();
  outside_ = std::move(*outside);
  return base::ok();
}

base::Status Network::connect(const std::string& lane, int own, int beyond, const std::string& far_end) {
  const auto& four = address(lane);
  const auto six = has_ipv6() ? ipv6_address(four) : std::string();
  if (auto status = add_cable("outward", far_end, beyond); !status) return status;
  if (auto status = add_route("outward", "0.0.0.0", 0, four); !status) return status;
  if (!six.empty())
    if (auto status = add_route("outward", "::", 0, six); !status) return status;
  ends_.push_back({own, "outward", "", 0});
  const EnterNetwork there(beyond, own);
  if (!there.status()) return there.status();
  if (auto status = add_route(far_end, four, 32, ""); !status) return status;
  if (!six.empty())
    if (auto status = add_route(far_end, six, 128, ""); !status) return status;
  ends_.push_back({beyond, far_end, lane, static_cast<int>(::if_nametoindex(far_end.c_str()))});
  return base::ok();
}

/// At the end, for all of them: the kernel brings them up while others are made.
base::Status Network::await_cables() const {
  for (const auto& end : ends_) {
    const EnterNetwork there(end.network, home());
    if (!there.status()) return there.status();
    if (auto status = await_operational(end.interface); !status) return status;
  }
  return base::ok();
}

base::Expected<std::vector<EgressTap>> Network::tap_egress() const {
  std::map<int, std::map<int, std::string>> places;
  for (const auto& end : ends_)
    if (!end.lane.empty()) places[end.network][end.index] = end.lane;
  std::vector<EgressTap> taps;
  for (const auto& [network, lanes] : places) {
    const EnterNetwork there(network, home());
    if (!there.status()) return there.status().error();
    for (const bool six : {false, true}) {
      if (six && !has_ipv6()) continue;
      auto socket = tap(six);
      if (!socket) return socket.error();
      taps.push_back({std::move(*socket), lanes});
    }
  }
  return taps;
}

base::Status Network::add_between() {
  if (::unshare(CLONE_NEWNET) != 0) return base::system_error("unshare", errno);
  if (auto status = configure_loopback({}); !status) return status;
  auto own = current_network();
  if (!own) return own.error();
  namespaces_[between_lane] = std::move(*own);
  return base::ok();
}

base::Status Network::add_service(const std::string& service, bool dials) {
  if (::unshare(CLONE_NEWNET) != 0) return base::system_error("unshare", errno);
  if (auto status = prepare_current({address(service)}); !status) return status;
  auto own = current_network();
  if (!own) return own.error();
  const int own_fd = own->get();
  namespaces_[service] = std::move(*own);
  if (dials) return connect_anteroom(service, own_fd);
  if (auto status = forbid_route("10.77.0.0", 24); !status) return status;  // its peers are there as well
  if (has_ipv6())
    if (auto status = forbid_route("fd77::", 64); !status) return status;
  const auto& ours = address(service);
  return connect(service, own_fd, outside_.get(), "from" + ours.substr(ours.rfind('.') + 1));
}

/// Its links listen in its own network, where every service's address is its own.
base::Status Network::add_workload(bool dials_out) {
  if (dials_out) return connect_anteroom(scenarios::workload_lane, home());
  return connect(scenarios::workload_lane, home(), outside_.get(), "from200");
}

base::Status Network::connect_anteroom(const std::string& service, int own) {
  if (::unshare(CLONE_NEWNET) != 0) return base::system_error("unshare", errno);
  std::vector<std::string> others;
  for (const auto& [lane, address] : addresses_)
    if (lane != service) others.push_back(address);
  if (auto status = prepare_current(others); !status) return status;
  auto anteroom = current_network();
  if (!anteroom) return anteroom.error();
  if (auto status = refuse_everything(); !status) return status;
  const int beyond = anteroom->get();
  anterooms_[service] = std::move(*anteroom);
  if (::setns(own, CLONE_NEWNET) != 0) return base::system_error("setns", errno);
  return connect(service, own, beyond, "inward");
}

int Network::of(const std::string& lane) const { return namespaces_.at(lane).get(); }

base::Expected<UniqueFd> Network::open_socket(const std::string& lane, int family) const {
  const EnterNetwork inside(of(lane), home());
  if (auto status = inside.status(); !status) return status.error();
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return base::system_error("socket in the network of " + lane, errno);
  return fd;
}

base::Expected<UniqueFd> Network::dial_datagrams(const std::string& lane, std::uint16_t port) const {
  const EnterNetwork inside(of(lane), home());
  if (auto status = inside.status(); !status) return status.error();
  const auto to = where_bound({"127.0.0.1", address(lane), "::1", ipv6_address(address(lane))}, port);
  UniqueFd fd(
      ::socket(to.find(':') == std::string::npos ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return base::system_error("socket in the network of " + lane, errno);
  if (!connect_to(fd.get(), to, port)) return base::system_error("connect to " + to, errno);
  return fd;
}

base::Expected<std::vector<UniqueFd>> Network::listen(const scenarios::Scenario& scenario,
                                                      const scenarios::Link& link) const {
  const int type = link.is_datagrams() ? SOCK_DGRAM : SOCK_STREAM;
  std::vector<UniqueFd> listeners;
  {
    const auto anteroom = anterooms_.find(link.from);
    const bool at_home = anteroom == anterooms_.end() || link.from == scenarios::workload_lane;
    const EnterNetwork inside(at_home ? of(link.from) : anteroom->second.get(), home());
    if (auto status = inside.status(); !status) return status.error();
    std::vector<std::string> callee = {address(link.to)};
    if (has_ipv6()) callee.push_back(ipv6_address(address(link.to)));
    for (const auto& one : callee) {
      auto own = bound(one, link.number, type);
      if (!own) return own.error();
      listeners.push_back(std::move(*own));
    }
  }
  if (declares(scenario, link.from, link.number, link.is_datagrams())) return listeners;
  const EnterNetwork inside(of(link.from), home());
  if (auto status = inside.status(); !status) return status.error();
  for (const auto* loopback : {"127.0.0.1", "::1"})
    if (auto extra = bound(loopback, link.number, type))
      listeners.push_back(std::move(*extra));  // else an earlier link has it
  return listeners;
}

base::Expected<std::vector<UniqueFd>> Network::listen(const scenarios::WayOut& way, const std::string& to) const {
  const EnterNetwork inside(way.to_loopback() ? of(way.from) : anterooms_.at(way.from).get(), home());
  if (auto status = inside.status(); !status) return status.error();
  std::vector<std::string> addresses = {to};
  if (way.to == "localhost") addresses = {"127.0.0.1"};
  if (way.to == "localhost" && has_ipv6()) addresses.emplace_back("::1");
  std::vector<UniqueFd> listeners;
  for (const auto& address : addresses) {
    auto one = bound(address, way.port, SOCK_STREAM);
    if (!one) return one.error();
    listeners.push_back(std::move(*one));
  }
  return listeners;
}

}  // namespace leafcutter::node
