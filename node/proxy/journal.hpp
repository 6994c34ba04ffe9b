// The thread that brings events to the embedder's hook.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "node/proxy/event_ring.hpp"

namespace leafcutter::node::proxy {

/// Its views are valid as long as the record is.
Event event_of(const EventRecord& record);

class Journal {
 public:
  /// Reads `rings`, which outlive it.
  Journal(EventHook hook, std::vector<EventRing*> rings);
  ~Journal();  ///< brings what is there first

  /// There is something in a ring. Cheap when the thread is awake.
  void wake();
  /// Until the hook has seen all that was written before the call.
  void flush();

 private:
  void run();
  bool bring_some();
  EventHook hook_;
  std::vector<EventRing*> rings_;
  std::atomic<std::uint32_t> signals_{0}, rounds_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace leafcutter::node::proxy
