// The one place where a fault of DNS becomes an effect of the engine.
#pragma once

#include "base/error.hpp"
#include "node/proxy/fault.hpp"
#include "protocols/event.hpp"

namespace leafcutter::node::runs {

/// `parameters`: `case` and `delay_ms`, checked against the table of effects.
base::Expected<proxy::Effect> dns_effect(const protocols::Value& parameters);

}  // namespace leafcutter::node::runs
