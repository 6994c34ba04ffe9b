// Code of an embedder's on a link: sees the bytes of one direction of one connection or session, and says what goes on,
// what goes back, and when. For faults that know a protocol, such as DNS.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leafcutter::node::proxy {

enum class Transport;
enum class Direction;

/// Bytes (one datagram on UDP) and how much later they leave.
struct Passage {
  std::string bytes;
  std::chrono::nanoseconds delay{0};
};

/// What became of the bytes. Passages of a TCP direction stay in order, whatever their delays.
struct Filtered {
  std::vector<Passage> onward;
  std::vector<Passage> back;  ///< to where the bytes came from
  bool close = false;         ///< then the connection is closed; a session is forgotten
  std::string detail = {};    ///< not empty: the filter acted, and this is said in an event
};

struct FilterContext {
  Transport transport;
  Direction direction;
  std::uint64_t connection;  ///< ordinal on its link
  std::uint64_t seed;  ///< for draws of the filter's own: differs per (engine seed, link, connection, direction, id)
  std::string_view link;
};

/// Called on the engine's threads, one call at a time for each object; must not block.
class StreamOrDatagramFilter {
 public:
  virtual ~StreamOrDatagramFilter() = default;
  /// TCP: the next bytes of the stream. UDP: one datagram.
  virtual Filtered arrived(std::string_view bytes) = 0;
  /// TCP: no more bytes come.
  virtual Filtered ended() { return {}; }
};

class FilterFactory {
 public:
  virtual ~FilterFactory() = default;
  /// Null: nothing of this connection and direction is touched.
  virtual std::unique_ptr<StreamOrDatagramFilter> make(const FilterContext& context) const = 0;
};

}  // namespace leafcutter::node::proxy
