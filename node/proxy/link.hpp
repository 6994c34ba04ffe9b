// A link as all threads of the engine share it: what it was told, its sockets, its counters.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "node/proxy/armed.hpp"
#include "node/proxy/engine.hpp"
#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::proxy {

/// Sums over the events of the link. Written by the threads that carry its bytes.
struct LinkCounters {
  std::atomic<std::uint64_t> accepted{0}, active{0}, connected{0}, connect_failed{0}, closed{0};
  std::atomic<std::uint64_t> struck_connections{0}, strikes{0}, discarded{0}, accept_failures{0};
  std::atomic<std::uint64_t> bytes[2]{}, datagrams[2]{};  ///< delivered, by direction
  std::atomic<std::uint64_t> received[2]{};               ///< bytes that came in, by direction
  std::atomic<std::uint64_t> spliced{0};
};

struct Link {
  std::shared_ptr<const std::string> name;
  Transport transport = Transport::tcp;
  std::uint64_t seed = 0;
  std::shared_ptr<const Decisions> decisions;
  std::string listen_text, upstream_text;
  HostPort upstream;
  std::vector<SocketAddress> upstream_addresses;  ///< when it is a literal
  OpenSocket open_socket;
  LinkLimits limits;
  std::vector<base::UniqueFd> listeners;
  bool adopted = false;  ///< the listeners are the embedder's: they are not made to stop listening
  LinkCounters counters;

  // --- the memory budget ---
  std::atomic<std::size_t> held{0}, held_peak{0};
  void charge(std::size_t before, std::size_t after) {
    if (after >= before) {
      const auto now = held.fetch_add(after - before, std::memory_order_relaxed) + after - before;
      auto peak = held_peak.load(std::memory_order_relaxed);
      while (now > peak && !held_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
      }
    } else {
      held.fetch_sub(before - after, std::memory_order_relaxed);
    }
  }

  // --- what the engine's callers change; workers are told by commands ---
  mutable std::mutex mutex;
  bool enabled = true, listening = true;
  ArmedSetPtr set;
  std::map<std::string, std::shared_ptr<FaultCounters>> fault_counters;

  bool should_listen() const { return enabled && !(set && set->refuses_all && !adopted); }
};

}  // namespace leafcutter::node::proxy
