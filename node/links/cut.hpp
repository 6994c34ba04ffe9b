// A partition as the links that it crosses have it: what does not get through on them while it lasts.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "node/proxy/event.hpp"
#include "node/proxy/fault.hpp"

namespace leafcutter::node {

struct Cut {
  std::string id;                            ///< of the fault, in the engine
  std::map<std::string, proxy::Flow> flows;  ///< what is held back, by the link's lane
  /// Something of a link was held back (or lost). On the engine's threads, under their locks: it waits for nothing.
  std::function<void(const std::string& lane, const proxy::Event& event)> met;

  bool crosses(const std::string& lane) const { return flows.contains(lane); }
  proxy::Fault fault(const std::string& lane, proxy::Blackhole::Mode mode) const {
    proxy::Fault hole;
    hole.id = id;
    hole.selector.flow = flows.at(lane);
    hole.effect = proxy::Blackhole{mode, false};
    return hole;
  }
};

}  // namespace leafcutter::node
