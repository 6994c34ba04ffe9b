// Faults in one line.
#pragma once

#include <string>
#include <utility>

#include "node/proxy/fault.hpp"

namespace leafcutter::node::proxy {

inline Fault fault(Effect effect, Selector selector = {}, std::string id = {}) {
  return {std::move(id), std::move(selector), std::move(effect)};
}
inline Fault fault(Effect effect, Flow flow) { return {{}, Selector{flow}, std::move(effect)}; }

}  // namespace leafcutter::node::proxy
