// Messages between the launcher and the nursery: a length (32 bits, little-endian) and a msgpack map, over a stream
// socket.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "protocols/event.hpp"

namespace leafcutter::node {

/// Scenarios travel over it, so a message may be large; anything larger is a defect of the sender.
inline constexpr std::size_t wire_limit = 64u << 20;

/// Writes one message to a blocking socket, whole.
base::Status send_message(int socket, const protocols::Value& message);

/// Collects bytes and hands out whole messages.
class WireReader {
 public:
  /// Reads what is there without blocking. False: the peer has closed. Errors: io.
  base::Expected<bool> fill(int socket);

  /// The next whole message, or nothing yet. Errors: protocol.
  base::Expected<std::optional<protocols::Value>> next();

 private:
  std::string bytes_;
};

/// "killed by signal 9", "exit status 70".
std::string describe_exit(int wait_status);

}  // namespace leafcutter::node
