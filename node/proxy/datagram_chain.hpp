// All faults of one direction of one UDP session, in their order. Pure: datagrams and time go in, datagrams come out,
// later, changed, more often, in another order, or not at all.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/proxy/armed.hpp"
#include "node/proxy/draws.hpp"
#include "node/proxy/gate.hpp"

namespace leafcutter::node::proxy {

struct Datagram {
  std::string bytes;
  Time arrived{};
};

/// What a datagram is charged beyond its bytes.
constexpr std::size_t datagram_overhead = 128;

/// What becomes of a datagram behind a stage: it goes on at `due` (at once if that is now or past).
class DatagramExit {
 public:
  virtual ~DatagramExit() = default;
  virtual void go_on(Datagram datagram, Time due) = 0;
  virtual void go_back(Passage passage) = 0;
  virtual void struck(const Strike& strike) = 0;
  /// The session ends, when what waits has left.
  virtual void close() = 0;
};

class DatagramStage {
 public:
  virtual ~DatagramStage() = default;
  virtual void take(Datagram datagram, GateResult gate, Time now, DatagramExit& exit) = 0;
  /// For stages that hold datagrams themselves.
  virtual void poll(Time, DatagramExit&) {}
  virtual std::optional<Time> wake() const { return std::nullopt; }
  virtual std::size_t cost() const { return 0; }
  virtual std::vector<Datagram> release() { return {}; }
};

/// The stage of the fault (datagram_stage.cpp), or null when a filter has nothing to do here.
std::unique_ptr<DatagramStage> make_datagram_stage(const ArmedFault& fault, const DrawKey& key);

class DatagramChain {
 public:
  struct Context {
    std::uint64_t seed = 0;
    std::string link;
    std::uint64_t session = 1;
    Direction direction = Direction::to_upstream;
    sockaddr_storage peer{};
    const Decisions* decisions = nullptr;
  };

  DatagramChain(Context context, StrikeSink& sink) : context_(std::move(context)), sink_(&sink) {}

  /// From now on these. Datagrams held by a fault that goes are let through at once.
  void replace(const std::vector<ArmedFaultPtr>& faults, Time now);
  void push(std::string bytes, Time now);
  void pump(Time now);
  /// Datagrams to be delivered now, in order.
  std::vector<std::string> take_out() { return std::exchange(out_, {}); }
  /// And those for the sender, from filters.
  std::vector<BackPassage> take_back() { return std::exchange(back_, {}); }
  /// One that a fault's filter in the other direction sends this way: it passes the faults behind it.
  void insert(const ArmedFaultPtr& by, std::string bytes, Time now);
  /// The fault that ends the session, or null.
  const ArmedFaultPtr& closed_by() const { return closed_by_; }
  std::optional<Time> wake() const;
  std::size_t cost() const;
  bool idle() const { return slots_.empty() && held_.empty(); }

 private:
  struct Slot {
    ArmedFaultPtr fault;
    Gate gate;
    std::unique_ptr<DatagramStage> stage;
  };
  /// Delayed by a slot; then it goes on behind that.
  struct Held {
    Time due;
    std::uint64_t order;
    Datagram datagram;
    const ArmedFault* by;
  };
  class Exit;

  void feed(std::size_t index, Datagram datagram, Time now);
  void hold(Held held);
  std::size_t behind(const ArmedFault* fault) const;

  Context context_;
  StrikeSink* sink_;
  std::vector<ArmedFaultPtr> faults_;
  std::vector<Slot> slots_;
  std::vector<Held> held_;  ///< a heap, the earliest in front
  std::uint64_t order_ = 0;
  std::size_t held_bytes_ = 0;
  std::vector<std::string> out_;
  std::vector<BackPassage> back_;
  ArmedFaultPtr closed_by_;
};

}  // namespace leafcutter::node::proxy
