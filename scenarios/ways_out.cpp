#include "scenarios/ways_out.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace leafcutter::scenarios {
namespace {

std::string bracketed_if_six(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

std::optional<std::string> canonical_address(const std::string& text) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1)
    return ::inet_ntop(AF_INET, &four, out.data(), out.size()) == nullptr ? "" : out.data();
  in6_addr six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) != 1) return std::nullopt;
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&six);
  const void* bytes = mapped ? static_cast<const void*>(six.s6_addr + 12) : &six;
  return ::inet_ntop(mapped ? AF_INET : AF_INET6, bytes, out.data(), out.size()) == nullptr ? "" : out.data();
}

std::string why_no_destination(const std::string& address) {
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.c_str(), &six) == 1) {
    if (IN6_IS_ADDR_UNSPECIFIED(&six)) return "is the address of no host";
    if (IN6_IS_ADDR_MULTICAST(&six)) return "is the address of a group: only connections to one host can leave a leaf";
    if (six.s6_addr[0] == 0xfd && six.s6_addr[1] == 0x77) return "is an address of the leaf itself; a link leads there";
    return "";
  }
  in_addr four{};
  ::inet_pton(AF_INET, address.c_str(), &four);
  const auto number = ntohl(four.s_addr);
  if (number >> 24 == 0) return "is the address of no host";
  if (number >> 28 >= 0xe) return "is the address of a group: only connections to one host can leave a leaf";
  if (number >> 16 == 0x0a4d) return "is an address of the leaf itself; a link leads there";
  return "";
}

bool WayOut::is_name() const { return !canonical_address(to) && to != "localhost"; }

bool WayOut::to_loopback() const { return to == "localhost" || to == "::1" || (!is_name() && to.starts_with("127.")); }

std::string WayOut::lane() const { return from + " -> " + bracketed_if_six(to) + ":" + std::to_string(port); }

std::map<std::string, std::string> outside_addresses(const Scenario& scenario) {
  std::map<std::string, std::string> addresses;
  for (const auto& way : scenario.ways_out)
    if (way.is_name()) addresses.emplace(way.to, "10.77.1." + std::to_string(addresses.size() + 1));
  return addresses;
}

std::string way_out_text(const WayOut& way) {
  auto text = way.lane();
  if (!way.at_host.empty()) text += " (at " + bracketed_if_six(way.at_host) + ":" + std::to_string(way.at_port) + ")";
  return text;
}

std::string outside_text(const Scenario& scenario) {
  if (scenario.ways_out.empty()) return "";
  std::string list;
  for (const auto& way : scenario.ways_out) list += (list.empty() ? "" : ", ") + way_out_text(way);
  return "leaves depend on what is outside of them: " + list;
}

}  // namespace leafcutter::scenarios
