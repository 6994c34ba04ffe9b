// Which sessions of a UDP link a rule strikes, in the numbers of the network fault engine: it counts them from the
// link's beginning, and a rule that waited for an event from there on, those first that were open then.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "node/proxy/fault.hpp"
#include "scenarios/aim.hpp"

namespace leafcutter::node {

/// `open` are counted first, in their order; then those whose numbers come after `last`.
std::vector<proxy::Ordinals> sessions_chosen(const scenarios::Occurrences& occurrences,
                                             const std::set<std::uint64_t>& open, std::uint64_t last);

}  // namespace leafcutter::node
