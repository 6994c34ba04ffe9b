#include "node/leaf/netlink.hpp"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/unique_fd.hpp"

namespace leafcutter::node {
namespace {

constexpr unsigned char operational = 6;  // IF_OPER_UP of linux/if.h, which does not go together with net/if.h

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Body>
std::string message(unsigned short type, unsigned short flags, const Body& body, const std::string& attributes) {
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<unsigned short>(NLM_F_REQUEST | NLM_F_ACK | flags);
  header.nlmsg_len = static_cast<unsigned>(sizeof header + sizeof body + attributes.size());
  std::string out;
  append(out, header);
  append(out, body);
  return out + attributes;
}

std::string attribute(unsigned short type, const std::string& payload) {
  std::string out;
  append(out, rtattr{static_cast<unsigned short>(RTA_LENGTH(payload.size())), type});
  out += payload;
  out.resize(RTA_ALIGN(out.size()));
  return out;
}

template <class T>
std::string bytes_of(const T& value) {
  std::string out;
  append(out, value);
  return out;
}

unsigned char family_of(const std::string& address) {
  return address.find(':') == std::string::npos ? AF_INET : AF_INET6;
}

base::Expected<std::string> address_bytes(const std::string& text) {
  std::string bytes(family_of(text) == AF_INET ? sizeof(in_addr) : sizeof(in6_addr), '\0');
  if (::inet_pton(family_of(text), text.c_str(), bytes.data()) != 1)
    return base::system_error("address " + text, EINVAL);
  return bytes;
}

base::Status talk(int socket, const std::string& request, const std::string& what) {
  if (::send(socket, request.data(), request.size(), 0) < 0) return base::system_error(what, errno);
  alignas(nlmsghdr) std::array<char, 4096> buffer{};
  const auto n = ::recv(socket, buffer.data(), buffer.size(), 0);
  if (n < 0) return base::system_error(what, errno);
  nlmsghdr header{};
  nlmsgerr answer{};
  if (static_cast<std::size_t>(n) < sizeof header + sizeof answer.error) return base::system_error(what, EPROTO);
  std::memcpy(&header, buffer.data(), sizeof header);
  std::memcpy(&answer.error, buffer.data() + sizeof header, sizeof answer.error);
  if (header.nlmsg_type != NLMSG_ERROR) return base::system_error(what, EPROTO);
  if (answer.error != 0) return base::system_error(what, -answer.error);
  return base::ok();
}

base::Expected<base::UniqueFd> open_netlink() {
  base::UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return base::system_error("open rtnetlink", errno);
  return socket;
}

base::Status bring_up(int socket, const std::string& interface, unsigned& index) {
  index = ::if_nametoindex(interface.c_str());
  if (index == 0) return base::system_error("find " + interface, errno);
  ifinfomsg up{};
  up.ifi_index = static_cast<int>(index);
  up.ifi_flags = IFF_UP;
  up.ifi_change = IFF_UP;
  return talk(socket, message(RTM_NEWLINK, 0, up, ""), "bring " + interface + " up");
}

}  // namespace

base::Status configure_loopback(const std::vector<std::string>& addresses) {
  const auto socket = open_netlink();
  if (!socket) return socket.error();
  unsigned index = 0;
  if (auto status = bring_up(socket->get(), "lo", index); !status) return status;
  for (const auto& text : addresses) {
    const auto address = address_bytes(text);
    if (!address) return address.error();
    ifaddrmsg body{};
    body.ifa_family = family_of(text);
    body.ifa_prefixlen = static_cast<unsigned char>(8 * address->size());
    // Of IPv6 an address of the scope of a host is no source for what leaves it.
    body.ifa_scope = body.ifa_family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
    body.ifa_flags = IFA_F_NODAD;  // else one of IPv6 is of no use until the kernel has asked around for it
    body.ifa_index = index;
    const auto request = message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body,
                                 attribute(IFA_LOCAL, *address) + attribute(IFA_ADDRESS, *address));
    if (auto status = talk(socket->get(), request, "add " + text + " to lo"); !status) return status;
  }
  return base::ok();
}

base::Status add_cable(const std::string& name, const std::string& peer, int peer_network) {
  const auto socket = open_netlink();
  if (!socket) return socket.error();
  ifinfomsg end{};
  end.ifi_flags = IFF_NOARP;
  end.ifi_change = IFF_NOARP;
  const auto hardware = attribute(IFLA_ADDRESS, std::string("\x02\0LEAF", 6));  // locally administered
  const auto far_end =
      bytes_of(end) + attribute(IFLA_IFNAME, peer) + attribute(IFLA_NET_NS_FD, bytes_of(peer_network)) + hardware;
  const auto kind = attribute(IFLA_INFO_KIND, "veth") + attribute(IFLA_INFO_DATA, attribute(VETH_INFO_PEER, far_end));
  const auto request = message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, end,
                               attribute(IFLA_IFNAME, name) + hardware + attribute(IFLA_LINKINFO, kind));
  return talk(socket->get(), request, "connect two networks");
}

namespace {

base::Status route(const std::string& interface, const std::string& destination, unsigned char prefix,
                   const std::string& source, unsigned char type) {
  const auto socket = open_netlink();
  if (!socket) return socket.error();
  unsigned index = 0;
  if (auto status = bring_up(socket->get(), interface, index); !status) return status;
  const auto to = address_bytes(destination);
  if (!to) return to.error();
  rtmsg body{};
  body.rtm_family = family_of(destination);
  body.rtm_dst_len = prefix;
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_LINK;
  body.rtm_type = type;
  auto attributes = type == RTN_THROW ? std::string() : attribute(RTA_OIF, bytes_of(index));
  if (prefix > 0) attributes += attribute(RTA_DST, *to);
  if (!source.empty()) {
    const auto from = address_bytes(source);
    if (!from) return from.error();
    attributes += attribute(RTA_PREFSRC, *from);
  }
  return talk(socket->get(), message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, body, attributes),
              "route " + destination + " over " + interface);
}

}  // namespace

base::Status add_route(const std::string& interface, const std::string& destination, unsigned char prefix,
                       const std::string& source) {
  return route(interface, destination, prefix, source, RTN_UNICAST);
}

base::Status forbid_route(const std::string& destination, unsigned char prefix) {
  return route("lo", destination, prefix, "", RTN_THROW);
}

base::Status make_all_local(const std::string& any) { return route("lo", any, 0, "", RTN_LOCAL); }

namespace {

/// IFLA_OPERSTATE of an interface; asked over rtnetlink, which waits for a change of state that is under way.
base::Expected<unsigned char> operational_state(int socket, unsigned index, const std::string& what) {
  ifinfomsg body{};
  body.ifi_index = static_cast<int>(index);
  const auto request = message(RTM_GETLINK, 0, body, "");
  if (::send(socket, request.data(), request.size(), 0) < 0) return base::system_error(what, errno);
  alignas(nlmsghdr) std::array<char, 16384> buffer{};
  const auto n = ::recv(socket, buffer.data(), buffer.size(), 0);
  if (n < 0) return base::system_error(what, errno);
  auto left = static_cast<int>(n);
  const auto* header = reinterpret_cast<const nlmsghdr*>(buffer.data());
  if (!NLMSG_OK(header, static_cast<unsigned>(left)) || header->nlmsg_type != RTM_NEWLINK)
    return base::system_error(what, EPROTO);
  const auto* body_in = static_cast<const ifinfomsg*>(NLMSG_DATA(header));
  auto length = static_cast<int>(IFLA_PAYLOAD(header));
  for (const auto* entry = IFLA_RTA(body_in); RTA_OK(entry, length); entry = RTA_NEXT(entry, length))
    if (entry->rta_type == IFLA_OPERSTATE) return *static_cast<const unsigned char*>(RTA_DATA(entry));
  return base::system_error(what, ENODATA);
}

}  // namespace

base::Status await_operational(const std::string& interface) {
  const auto what = "wait for " + interface;
  const auto index = ::if_nametoindex(interface.c_str());
  if (index == 0) return base::system_error(what, errno);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (;;) {
    const auto socket = open_netlink();  // a fresh one: nothing of an earlier answer is left in it
    if (!socket) return socket.error();
    const auto state = operational_state(socket->get(), index, what);
    if (!state) return state.error();
    if (*state == operational) return base::ok();
    if (std::chrono::steady_clock::now() >= deadline)
      return base::Error{base::ErrorCode::timeout,
                         interface + " was not operational within 5 s (state " + std::to_string(*state) + ")",
                         {}};
    ::poll(nullptr, 0, 1);
  }
}

}  // namespace leafcutter::node
