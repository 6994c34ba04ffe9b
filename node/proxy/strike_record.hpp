// A strike counted and told of, the same for streams and datagrams.
#pragma once

#include <utility>

#include "node/proxy/armed.hpp"
#include "node/proxy/link.hpp"

namespace leafcutter::node::proxy {

/// `struck_before`: whether some fault has struck this connection or session; set.
inline void count_strike(const ArmedFault& fault, const Strike& strike, LinkCounters& link, bool& struck_before) {
  if (!strike.acted) return;
  auto& counters = *fault.counters;
  counters.strikes.fetch_add(1, std::memory_order_relaxed);
  counters.bytes.fetch_add(strike.bytes, std::memory_order_relaxed);
  counters.delay.fetch_add(strike.delay.count(), std::memory_order_relaxed);
  link.strikes.fetch_add(1, std::memory_order_relaxed);
  if (!std::exchange(struck_before, true)) link.struck_connections.fetch_add(1, std::memory_order_relaxed);
}

/// What kind of event says it.
inline EventKind kind_of_event(const Strike& strike) {
  return strike.acted ? EventKind::struck : EventKind::let_through;
}

/// What the record of a connection says of a strike.
inline EventRecord strike_record(EventRecord event, const ArmedFault& fault, Direction direction,
                                 const Strike& strike) {
  event.fault = fault.shared_from_this();
  event.direction = direction;
  event.operation = strike.operation;
  event.offset = strike.offset;
  event.bytes = strike.bytes;
  event.delay = strike.delay;
  event.detail = strike.detail;
  return event;
}

}  // namespace leafcutter::node::proxy
