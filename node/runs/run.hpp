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
  std::string listen_address = {};  ///< of the name in `listen` (listen_names.hpp); empty: the engine looks it up
  proxy::LinkLimits limits = {};
  base::Place listen_at = {}, upstream_at = {};  ///< in the document, for messages

  /// The same proxy: its connections can stay when one document replaces another.
  bool same_as(const ProxySpec& other) const;
};

/// Something that happens in a run, as its journal tells of it.
struct Awaited {
  proxy::EventKind kind = proxy::EventKind::accepted;
  std::string proxy;
  std::string fault = {};                        ///< empty: any, or none
  std::optional<std::uint64_t> connection = {};  ///< nothing: any
  std::optional<proxy::Cause> cause = {};
  std::uint64_t count = 1;  ///< how many times, since the phase began

  bool matches(const proxy::Event& event) const;
  bool operator==(const Awaited&) const = default;
};

struct Phase {
  std::string name;
  std::optional<std::chrono::nanoseconds> duration;  ///< nothing: until stopped
  std::map<std::string, proxy::FaultSet> sets;       ///< of every proxy of the run, by name
  /// Faults that are not in force before something has happened, by proxy and id.
  std::map<std::string, std::map<std::string, Awaited>> awaited = {};
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
