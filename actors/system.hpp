// The actor system's set-up, the same on every side: heartbeats on, bounded threads, our own message types, our own
// application identifier. Loopback only until transport security is in place: another listen address is refused.
#pragma once

#include <caf/actor_system_config.hpp>
#include <string>

#include "base/error.hpp"

namespace leafcutter::actors {

class SystemConfig : public caf::actor_system_config {
 public:
  /// `network`: load the middleman, so that actors can be published and reached.
  explicit SystemConfig(bool network);
};

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};

/// "127.0.0.1:4730", "localhost:4730", "[::1]:4730". Errors: bad_input.
base::Expected<HostPort> parse_host_port(const std::string& text);

/// Loopback addresses pass; anything else is bad_input (keys are needed and there are none).
base::Status require_loopback(const HostPort& address);

}  // namespace leafcutter::actors
