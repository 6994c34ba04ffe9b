// The network fault engine as a leaf has it: one for all links, started when the first one needs it, and heard by
// whoever added the link that an event is of.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/proxy/engine.hpp"

namespace leafcutter::node {

class EngineHost {
 public:
  /// Called on the engine's threads, before anybody can see what the event tells of: it calls nothing of this class and
  /// waits for nothing.
  using Hear = std::function<void(const proxy::Event&)>;

  EngineHost() = default;
  ~EngineHost() { stop(); }
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  // Each may wait for the engine's threads. Errors: unavailable (no engine), or what the engine says.
  base::Status add(proxy::LinkConfig config, Hear hear);
  void remove(const std::string& name);
  base::Status set_faults(std::map<std::string, proxy::FaultSet> sets);

  /// Links where faults that take time (latency, jitter, bandwidth, slices, reordering) hold bytes back just now: they
  /// will still arrive, and nothing else shows it.
  std::vector<std::string> holding();

  /// Ends every link; no event comes after it.
  void stop();

 private:
  void heard(const proxy::Event& event);

  std::mutex mutex_;  ///< of `hears_` and `slow_`
  std::map<std::string, Hear, std::less<>> hears_;
  std::set<std::string, std::less<>> slow_;  ///< links with faults that take time
  std::mutex starting_;                      ///< of `engine_` being made, and of `stopped_`
  std::unique_ptr<proxy::Engine> engine_;
  bool stopped_ = false;
};

}  // namespace leafcutter::node
