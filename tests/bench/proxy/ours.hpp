// Our engine as a contender of the bench.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leafcutter::bench_proxy {

/// Names of the rows: plain, and with faults that are in force.
std::vector<std::string> our_modes();
/// Runs the engine until the process is killed.
void serve_ours(const std::string& mode, std::uint16_t listen, std::uint16_t upstream);

}  // namespace leafcutter::bench_proxy
