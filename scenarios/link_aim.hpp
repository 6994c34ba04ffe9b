// Which directions of which connections a rule of links strikes by its probability: a pure function of the rule's seed,
// the link, the connection, the direction and the fault, so that no other fault, connection or thread changes it.
#pragma once

#include <cstdint>

#include "scenarios/plan.hpp"

namespace leafcutter::scenarios {

struct Ways {
  bool up = true, down = true;  ///< to the service, to the caller
  bool any() const { return up || down; }
  bool operator==(const Ways&) const = default;
};

/// The directions that the fault strikes on any connection: of what strikes a connection as a whole, both.
Ways ways_of(const Fault& fault);

/// Those of them that are drawn for this connection (or session). A whole connection has one draw. A fault without an
/// aim strikes always.
Ways drawn_ways(const Fault& fault, std::uint64_t connection);

/// The draw for one request of a connection.
bool drawn_message(const Fault& fault, std::uint64_t connection, std::uint64_t message);

/// A rule whose probability is 0: nothing need be set up for it.
bool never_strikes(const Fault& fault);

/// A rule that waits for an event and then strikes the bytes of connections that are open as well.
bool strikes_open_connections(const Fault& fault);

/// More than one strike may come of the rule.
bool strikes_repeatedly(const Fault& fault);

}  // namespace leafcutter::scenarios
