// One look at a host and port from here. It says which addresses of which family were tried, so that a service that
// listens on one of two is not taken for an outage.
#pragma once

#include <nlohmann/json.hpp>

#include "node/host/profile.hpp"
#include "protocols/audit.hpp"

namespace leafcutter::node::host {

struct ProbeResult {
  protocols::Outcome outcome = protocols::Outcome::lost;
  std::string detail;
  nlohmann::json seen;  ///< "tried": [{family, address, error or connected}], "status", "answers", "milliseconds"
};

ProbeResult run_probe(const ProbeEntry& probe);

}  // namespace leafcutter::node::host
