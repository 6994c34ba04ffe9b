// A Run document as values: proxies, and the phases in which faults act on them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/proxy/engine.hpp"

namespace leafcutter::node::runs {

struct ProxySpec {
  std::string name;
  proxy::Transport transport = proxy::Transport::tcp;
  std::string listen, upstream;
  proxy::LinkLimits limits = {};
  base::Place listen_at = {}, upstream_at = {};  ///< in the document, for messages

  /// The same proxy: its connections can stay when one document replaces another.
  bool same_as(const ProxySpec& other) const;
};

struct Phase {
  std::string name;
  std::optional<std::chrono::nanoseconds> duration;  ///< nothing: until stopped
  std::map<std::string, proxy::FaultSet> sets;       ///< of every proxy of the run, by name
};

struct Run {
  int schema_version = 1;
  std::string name;
  std::uint64_t seed = 0;
  std::vector<ProxySpec> proxies;
  std::vector<Phase> phases;
  std::string digest;  ///< SHA-256 of the document, hex
};

/// Where a run stands, a given time after its start.
struct PhasePoint {
  std::size_t phase = 0;  ///< index; of the last one when `finished`
  bool finished = false;
  std::optional<std::chrono::nanoseconds> until;  ///< when that changes, since the start; nothing: never by itself
};

/// Deadlines are sums from the start on, so that late wake-ups do not add up.
PhasePoint phase_at(const Run& run, std::chrono::nanoseconds since_start);

}  // namespace leafcutter::node::runs
