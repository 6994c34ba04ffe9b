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
  bool overtaken = false;  ///< TCP: while these wait, those behind them may leave; they stay together themselves
};

/// What the filter says of a message: an event each.
struct FilterAct {
  std::string detail;
  std::chrono::nanoseconds delay{0};
  std::uint64_t bytes = 0;
  bool struck = true;  ///< false: the message was let through as it came, for the reason that `detail` says
};

/// What became of the bytes. Passages of a TCP direction stay in order, whatever their delays, but for those that let
/// themselves be overtaken.
struct Filtered {
  std::vector<Passage> onward;
  /// To where the bytes came from, through what stands behind the fault in its set. On TCP each leaves whole, between
  /// two passages of the fault's filter in that direction, if there is one.
  std::vector<Passage> back;
  bool close = false;  ///< behind those the connection is closed; a session is forgotten when nothing of it waits
  std::vector<FilterAct> acts = {};
};

struct FilterContext {
  Transport transport;
  Direction direction;
  std::uint64_t connection;  ///< ordinal on its link
  std::uint64_t seed;  ///< for draws of the filter's own: differs per (engine seed, link, connection, direction, id)
  std::string_view link;
  std::uint64_t position = 0;  ///< TCP: bytes of the direction that went by before the filter was there
};

/// Called on the engine's threads, one call at a time for each object; must not block.
class StreamOrDatagramFilter {
 public:
  virtual ~StreamOrDatagramFilter() = default;
  /// TCP: the next bytes of the stream. UDP: one datagram.
  virtual Filtered arrived(std::string_view bytes) = 0;
  /// TCP: no more bytes come.
  virtual Filtered ended() { return {}; }
  /// The fault goes while the connection stays: what was taken and not yet passed on, to follow what was.
  virtual std::string removed() { return {}; }
  /// How many bytes that would be now. They count towards the link's memory.
  virtual std::size_t held_bytes() const { return 0; }
};

class FilterFactory {
 public:
  virtual ~FilterFactory() = default;
  /// Null: nothing of this connection and direction is touched.
  virtual std::unique_ptr<StreamOrDatagramFilter> make(const FilterContext& context) const = 0;
};

}  // namespace leafcutter::node::proxy
