// Socket addresses as text, the form in which the peers of a service are known: "10.77.0.2:7002", "[::1]:80",
// "unix:/run/x".
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::node {

/// `bytes` is a sockaddr as a call passes it. IPv4 in IPv6 is written as IPv4; an abstract unix name starts with
/// "unix:@". Errors: protocol (too short, or another address family).
base::Expected<std::string> address_text(std::string_view bytes);

}  // namespace leafcutter::node
