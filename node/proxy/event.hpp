// What the engine says of itself: an event for every decision and every change of a connection, and counters that are
// the sums of those events.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "node/proxy/fault.hpp"

namespace leafcutter::node::proxy {

enum class EventKind : std::uint8_t {
  link_added,
  link_removed,
  faults_replaced,
  listening_failed,  ///< the listener could not be opened again after Refuse or disabling; `detail` says why
  accept_failed,     ///< accept() lacked descriptors or memory; once until it works again
  accept_resumed,
  accepted,        ///< a connection or UDP session has begun; `peer`
  connected,       ///< it reached the upstream
  connect_failed,  ///< it did not: `cause`, `detail`
  struck,          ///< a fault took effect
  passed_over,     ///< the draw for this connection and fault was against it: probability < 1
  discarded,       ///< UDP: dropped for want of room (budget, sessions), by no fault
  let_through,     ///< a filter could not act on a message and left it as it was: `detail` says why
  closed,          ///< with the totals: `bytes` to the upstream, `bytes_back`, `cause`
};
std::string_view name_of(EventKind kind);

enum class Cause : std::uint8_t {
  none,
  finished,  ///< both directions ended
  client_reset,
  upstream_reset,
  fault,  ///< ended by the fault named in `fault`
  refused,
  timed_out,
  unreachable,
  unresolved,
  scarce,       ///< no descriptors
  idle,         ///< UDP
  client_left,  ///< before it was connected
  removed,      ///< the link was removed, disabled, or the engine stopped
  failed,
};
std::string_view name_of(Cause cause);

/// Views are valid during the call of the hook.
struct Event {
  std::chrono::steady_clock::time_point at;
  EventKind kind = EventKind::struck;
  std::string_view link;
  std::string_view phase;
  std::uint64_t connection = 0;  ///< ordinal on its link, from 1; 0: the event is the link's
  Direction direction = Direction::to_upstream;
  std::string_view fault;   ///< id
  std::string_view effect;  ///< kind
  /// How often a fault of that id was put in force on the link, this one included; unchanged ones that stay are not
  /// put in force again.
  std::uint64_t activation = 0;
  std::uint64_t operation = 0;  ///< which chunk or datagram of the direction, from 1; 0: none
  std::uint64_t offset = 0;     ///< of the first byte concerned in the direction's stream
  std::uint64_t bytes = 0;
  std::uint64_t bytes_back = 0;
  Duration delay{0};  ///< decided
  Cause cause = Cause::none;
  std::string_view detail;
};

/// Called on a thread of the engine's own, in order for each connection. The data path does not wait for it: when the
/// hook is slower than the events for longer than the queue lasts, events are dropped and counted.
using EventHook = std::function<void(const Event&)>;

/// Sums over the `struck` events of one fault.
struct FaultStats {
  std::string effect;
  std::uint64_t strikes = 0, bytes = 0, passed_over = 0;
  Duration delay{0};
};

struct LinkStats {
  std::string name, listen, upstream;
  Transport transport = Transport::tcp;
  bool enabled = true;
  std::string phase;
  std::uint64_t accepted = 0, active = 0, connected = 0, connect_failed = 0, closed = 0;
  std::uint64_t struck_connections = 0;  ///< with at least one `struck`
  std::uint64_t strikes = 0;
  std::uint64_t discarded = 0;
  std::uint64_t accept_failures = 0;
  std::uint64_t bytes_to_upstream = 0, bytes_to_client = 0;      ///< delivered; current, not only of closed connections
  std::uint64_t bytes_from_client = 0, bytes_from_upstream = 0;  ///< TCP: read, delivered or not
  std::uint64_t datagrams_to_upstream = 0, datagrams_to_client = 0;
  std::uint64_t spliced_bytes = 0;
  std::uint64_t held_bytes = 0, held_bytes_peak = 0;  ///< of the memory budget
  std::map<std::string, FaultStats> faults;           ///< by id; kept when the fault goes
};

struct EngineStats {
  std::map<std::string, LinkStats> links;
  std::uint64_t dropped_events = 0;
};

}  // namespace leafcutter::node::proxy
