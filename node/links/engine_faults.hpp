// What a planned fault of a connection's bytes is to the network fault engine.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/proxy/fault.hpp"
#include "scenarios/link_aim.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::node {

/// The operation of sites that sessions of datagrams begin at; their resource is "udp".
inline constexpr const char* session_operation = "session";

/// Whether the fault is the engine's to carry out (scenarios::strikes_stream, all faults of datagrams, and what rules
/// do to connections, unless they refuse them).
bool is_engine_fault(const scenarios::Fault& fault);

/// Whether it strikes before the service is dialled.
bool strikes_before_dialling(const scenarios::Fault& fault);

/// Which connection a rule's fault is for.
struct EngineAim {
  scenarios::Ways ways = {};  ///< the directions that are drawn
  bool open = false;          ///< it is open already, and struck in the middle
};

/// One fault of the plan can be several of the engine's (one for each direction, say); their ids are `id`, or begin
/// with `id` and a blank. `link` is the id of the fault's link, which those of its connections that share something
/// name. Errors: bad_input (a kind that the engine does not know).
base::Expected<std::vector<proxy::Fault>> engine_faults(const scenarios::Fault& fault, const std::string& id,
                                                        const std::string& link, const EngineAim& aim = {});

}  // namespace leafcutter::node
