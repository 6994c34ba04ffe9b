// Carries a Run out on an engine: its proxies as links, its phases one after the other. Thin: what comes when is
// decided in run.hpp, what happens to bytes in the engine. To be called from one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/proxy/engine.hpp"
#include "node/runs/event_gates.hpp"
#include "node/runs/records.hpp"
#include "node/runs/run.hpp"

namespace leafcutter::node::runs {

struct RunnerOptions {
  std::optional<std::uint64_t> seed;  ///< instead of the document's
  unsigned threads = 1;
  proxy::EventHook hook = {};
  std::shared_ptr<const proxy::Decisions> decisions = {};  ///< of an earlier run, see EngineOptions
  Time start = std::chrono::steady_clock::now();           ///< of the first phase
  bool may_be_replaced = false;                            ///< what another document waits for is heard, too
};

class Runner {
 public:
  /// Every proxy listens when it returns, under the faults of the first phase. Errors: bad_input at the place in the
  /// document (a port in use, a name that cannot be resolved to listen on).
  static base::Expected<std::unique_ptr<Runner>> start(Run run, RunnerOptions options);

  const Run& run() const { return run_; }
  std::uint64_t seed() const { return seed_; }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  Time started() const { return started_; }
  /// Where it stands, as of the last advance().
  const PhasePoint& point() const { return point_; }
  proxy::Engine& engine() { return *engine_; }

  /// Brings the phase of that moment into force, and faults of it whose event was seen. True when it is another one
  /// than before.
  base::Expected<bool> advance(Time now);
  /// The faults that waited, and that the last advance() put in force.
  const std::vector<EventGates::Opened>& begun() const { return begun_; }
  /// Readable when such a fault can be put in force: another reason to call advance().
  int events() const { return gates_.fd(); }
  /// When to call advance() next; nothing: no phase ends by itself.
  std::optional<Time> deadline() const;

  /// Another document instead: its first phase begins now. Proxies that are the same in both keep their connections;
  /// the seed stays. On failure the old one goes on where it was. The number of proxies that had to be opened or
  /// closed.
  base::Expected<std::size_t> replace(Run next, Time now);

  /// Ends every connection; the hook has seen every event when it returns.
  void end();
  /// Of all links, those that are gone included.
  Totals totals() const;
  std::uint64_t dropped_records() const;

 private:
  Runner() = default;
  base::Status open(const ProxySpec& spec, const Run& run);
  void close(const std::string& name);
  base::Status try_ports(const Run& next) const;
  base::Status exchange_proxies(const Run& next, std::size_t& changed);
  std::map<std::string, proxy::FaultSet> sets_in_force() const;

  Run run_;
  std::uint64_t seed_ = 0;
  EventGates gates_;
  bool heard_ = false;  ///< the engine tells the gates what happens
  std::vector<EventGates::Opened> begun_;
  std::unique_ptr<proxy::Engine> engine_;
  std::vector<Endpoint> endpoints_;
  Time started_{};
  PhasePoint point_;
  Totals gone_;
};

}  // namespace leafcutter::node::runs
