// What a peer may say to us in BASP, the protocol of CAF's actors (its 32-byte headers and what follows them). CAF
// trusts whoever is connected with everything: to reach any actor by its number, to speak for other peers, to end or
// link what it reaches, and to announce 4 GiB. One guard watches one connection that a peer has opened, and says no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::actors {

class BaspGuard {
 public:
  struct Rules {
    std::size_t payload_at_most = 8u << 20;
    /// The actor that was published; requests and messages reach no other.
    std::function<bool(std::uint64_t actor)> may_reach;
    /// The peer's name among actor systems (a serialized caf::node_id), which every actor handle of it carries. Errors:
    /// another connection has it.
    std::function<base::Status(std::string_view node)> claim;
  };

  static constexpr std::size_t header_bytes = 32;

  explicit BaspGuard(Rules rules) : rules_(std::move(rules)) {}

  /// The next piece as CAF cuts the stream: a header, or the payload that the last header announced. Errors: protocol,
  /// with what the peer did; the connection is not to be used any further.
  base::Status take(std::string_view piece);

  /// Whether the piece that was taken is passed on. What is for others than the published actor is not, and is no
  /// offence: CAF asks its own actors on the other side about theirs when it connects.
  bool passes() const { return !dropping_; }
  /// How long the next piece is.
  std::size_t next_bytes() const { return awaited_bytes_ > 0 ? awaited_bytes_ : header_bytes; }

  bool greeted() const { return !node_.empty(); }

 private:
  base::Status header(std::string_view bytes);
  base::Status payload(std::string_view bytes);

  Rules rules_;
  std::string node_;               ///< as claimed in the handshake; empty before
  std::uint8_t operation_ = 0;     ///< of the last header
  bool dropping_ = false;          ///< the last header and its payload
  std::size_t awaited_bytes_ = 0;  ///< of payload
};

/// Whether a message of these types ("@<>+@atom+@u64") is one that actors of ours send: values, and handles of typed
/// actors. CAF's own messages (exit, down, links) are not. Errors: protocol.
base::Status check_message_types(std::string_view types);

}  // namespace leafcutter::actors
