// A fault set made ready to be used by connections: what is shared by all of them (counters, paces, parsed peers).
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/proxy/decisions.hpp"
#include "node/proxy/draws.hpp"
#include "node/proxy/event.hpp"
#include "node/proxy/fault.hpp"
#include "node/proxy/gate.hpp"
#include "node/proxy/pacer.hpp"

namespace leafcutter::node::proxy {

/// Sums over the events of one fault id of a link; outlive the fault.
struct FaultCounters {
  std::atomic<std::uint64_t> strikes{0}, bytes{0}, passed_over{0};
  std::atomic<std::int64_t> delay{0};
  std::string_view effect;
  std::uint64_t activations = 0;  ///< changed by arm() alone
};

/// Unchanged for as long as anything uses it. A fault that is in two sets in a row is the same object in both.
struct ArmedFault : std::enable_shared_from_this<ArmedFault> {
  Fault fault;
  std::vector<Subnet> peers;
  std::shared_ptr<FaultCounters> counters;
  std::uint64_t activation = 1;
  std::array<std::shared_ptr<SharedPacer>, 2> pacers;  ///< by direction; null: one for each connection

  bool selects_peer(const sockaddr_storage& peer) const {
    if (peers.empty()) return true;
    for (const auto& subnet : peers)
      if (subnet.has(peer)) return true;
    return false;
  }
};
using ArmedFaultPtr = std::shared_ptr<const ArmedFault>;

struct ArmedSet {
  FaultSet set;  ///< as it was given, with ids
  std::vector<ArmedFaultPtr> faults;
  /// A Refuse for everybody: the listener is not to listen.
  bool refuses_all = false;
};
using ArmedSetPtr = std::shared_ptr<const ArmedSet>;

using FindCounters = std::function<std::shared_ptr<FaultCounters>(const std::string& id)>;
using FindBucket = std::function<std::shared_ptr<SharedPacer>(const std::string& bucket, const Bandwidth& bandwidth)>;

/// `set` has been checked. Faults of `before` that are in it unchanged are taken over.
ArmedSetPtr arm(FaultSet set, const ArmedSet* before, const FindCounters& counters, const FindBucket& bucket);

/// Bytes to the sender, from the filter of a fault. When the fault goes they are late no longer.
struct BackPassage {
  Passage passage;
  ArmedFaultPtr by;
};

/// The key of the fault's draws on a connection and direction.
DrawKey draw_key(const ArmedFault& fault, std::uint64_t seed, std::string_view link, std::uint64_t connection,
                 Direction direction, const Decisions* decisions);

/// What a fault did, to whoever writes it down.
struct Strike {
  std::uint64_t operation = 0, offset = 0, bytes = 0;
  Duration delay{0};
  std::string_view detail = {};
  bool acted = true;  ///< false: said of bytes that a filter let through as they came
};

/// Hears of every decision of the faults of one connection.
class StrikeSink {
 public:
  virtual ~StrikeSink() = default;
  virtual void struck(const ArmedFault& fault, Direction direction, const Strike& strike) = 0;
  virtual void passed_over(const ArmedFault& fault, Direction direction) = 0;
};

}  // namespace leafcutter::node::proxy
