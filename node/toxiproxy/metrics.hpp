// GET /metrics: Toxiproxy's two counters of a proxy, and what more the engine knows, in Prometheus' text format 0.0.4.
#pragma once

#include <string>

#include "node/toxiproxy/api.hpp"

namespace leafcutter::node::toxiproxy {

constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics_text(const Book& book, const proxy::EngineStats& engine, const ApiStats& api);

}  // namespace leafcutter::node::toxiproxy
