// Reads state back when the workload is over: the scenario's properties of kind `check`.
#pragma once

#include <functional>

#include "node/leaf/context.hpp"
#include "node/leaf/services.hpp"

namespace leafcutter::node {

/// Records one `check` event a property. In the workload's thread. A check that could not be run to its end has neither
/// exit nor status, and says why in `detail`.
void run_checks(LeafContext& context, const std::function<void(const std::string&)>& awaiting);

}  // namespace leafcutter::node
