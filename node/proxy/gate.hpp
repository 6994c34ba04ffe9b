// Whom and what a fault strikes: a selector applied to one connection and direction, chunk after chunk.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "node/proxy/draws.hpp"
#include "node/proxy/fault.hpp"

namespace leafcutter::node::proxy {

/// Addresses with a common prefix, IPv4 or IPv6. An IPv4 address in IPv6's clothes is IPv4.
class Subnet {
 public:
  static std::optional<Subnet> parse(std::string_view text);
  bool has(const sockaddr_storage& address) const;

 private:
  std::array<std::uint8_t, 16> bytes_{};
  unsigned bits_ = 0;  ///< of the 128
};

struct GateResult {
  bool struck = false;
  std::uint64_t operation = 0;  ///< which chunk it was, from 1
};

class Gate {
 public:
  /// `selected_peer`: the client is among the selector's peers.
  Gate(const Fault& fault, const DrawKey& key, bool selected_peer);

  /// Whether this connection and direction are selected at all; the draw, if it is one for the connection, included.
  bool connection_selected() const { return selected_; }
  /// The draw for the connection was against it, and nothing else was.
  bool passed_over() const { return passed_over_; }

  /// The next chunk, whose first byte is at `offset`; it does not cross an edge (see `edge_after`).
  GateResult next(std::uint64_t offset);
  /// The end of the stream, after `offset` bytes. Draws nothing.
  bool strikes_end(std::uint64_t offset) const { return offset >= selector_->bytes.from && !past(offset); }
  /// How many of the bytes from `offset` on are all inside or all outside of the selected range.
  std::uint64_t edge_after(std::uint64_t offset) const;
  /// Nothing at `offset` or later can be struck.
  bool past(std::uint64_t offset) const;

 private:
  bool drawn() const { return selector_->probability > 0 && selector_->probability < 1; }
  const Selector* selector_;
  const FaultDecisions* recorded_;
  bool selected_ = false, passed_over_ = false, each_chunk_ = false;
  std::uint64_t chunks_ = 0;
  Draws draws_;
};

/// Whether the fault has anything to do in that direction.
bool flows(Flow flow, Direction direction);

}  // namespace leafcutter::node::proxy
