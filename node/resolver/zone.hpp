// What the resolver of a leaf knows: the addresses of its services by name, and their names by address. Messages in,
// messages out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocols/dns.hpp"
#include "protocols/dns_reply.hpp"

namespace leafcutter::node::resolver {

class Zone {
 public:
  /// Names and their addresses, of IPv4 and IPv6. What is no name or no address cannot be asked for, and is left out.
  explicit Zone(const std::map<std::string, std::vector<std::string>>& addresses);

  /// A, AAAA and ANY of the names, PTR of the addresses and of localhost, with a TTL of 0: each lookup
  /// asks. Any other name does not exist. Nothing when the message is an answer itself.
  std::optional<protocols::DnsMessage> answer(const protocols::DnsMessage& query) const;

 private:
  protocols::DnsMessage known(const protocols::DnsMessage& query) const;
  std::map<std::string, std::vector<protocols::DnsAddress>> addresses_;  ///< by the name's wire form in lower case
  std::map<std::string, protocols::DnsName> names_;                      ///< wire form of the reverse name -> name
};

/// FORMERR to what could not be read, if its header could.
std::optional<std::string> format_error(std::string_view bytes);

}  // namespace leafcutter::node::resolver
