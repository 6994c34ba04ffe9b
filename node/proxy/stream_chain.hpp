// All faults of one direction of one TCP connection, in their order. Pure: chunks and time go in, chunks come out.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/proxy/stream_stage.hpp"

namespace leafcutter::node::proxy {

class StreamChain {
 public:
  struct Context {
    std::uint64_t seed = 0;
    std::string link;
    std::uint64_t connection = 1;
    Direction direction = Direction::to_upstream;
    sockaddr_storage peer{};
    std::uint64_t position = 0;  ///< bytes of the direction that went by before
    const Decisions* decisions = nullptr;
  };

  /// The sink outlives the chain.
  StreamChain(Context context, StrikeSink& sink) : context_(std::move(context)), sink_(&sink) {
    next_offset_ = context_.position;
  }

  /// From now on these, as FaultSet says of bytes that are held.
  void replace(const std::vector<ArmedFaultPtr>& faults, Time now);

  /// How many bytes it takes now.
  std::size_t room() const {
    return slots_.empty() ? std::numeric_limits<std::size_t>::max() : slots_.front().stage->room();
  }
  /// No fault in it looks at bytes, so that chunks may come in pipes. When one that looks comes later, it finds none.
  bool only_delays() const {
    return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.stage->only_delays(); });
  }
  /// Bytes within the room, or an end (which waits for room by itself).
  void push(Chunk chunk, Time now);
  /// Moves on whatever may move; then `out()` holds what is to be delivered.
  void pump(Time now);
  ChunkQueue& out() { return out_; }
  const ChunkQueue& out() const { return out_; }
  /// When pump() may have something to do by itself.
  std::optional<Time> wake() const;
  std::size_t cost() const;
  /// No fault in it can strike any more, and nothing is held.
  bool idle() const { return slots_.empty() && out_.empty() && !pending_end_ && back_.empty(); }

  /// Bytes for the sender, each with its delay, from filters.
  std::vector<BackPassage> take_back() { return std::exchange(back_, {}); }
  /// Bytes that a fault's filter in the other direction sends this way: they pass the faults behind it.
  void insert(const ArmedFaultPtr& by, Chunk chunk, Time now);

 private:
  struct Slot {
    ArmedFaultPtr fault;
    Gate gate;
    std::unique_ptr<StreamStage> stage;
  };

  DrawKey key_of(const ArmedFault& fault) const;
  std::vector<std::optional<std::size_t>> kept_places(const std::vector<ArmedFaultPtr>& faults) const;
  bool settled(const ArmedFaultPtr& fault) const;
  std::optional<Slot> make_slot(const ArmedFaultPtr& fault, Time now);
  void inherit(Slot& slot, const std::vector<Slot>& before) const;
  std::size_t behind(const ArmedFaultPtr& fault) const;
  void feed(std::size_t index, Chunk chunk, Time now);
  bool move_from(std::size_t index, Time now);
  void retire();
  void load();

  Context context_;
  StrikeSink* sink_;
  std::vector<ArmedFaultPtr> faults_;  ///< those decided about; some have no slot, because they do not touch this
  std::vector<Slot> slots_;
  ChunkQueue out_;
  std::optional<Chunk> pending_end_;
  std::vector<BackPassage> back_;
  std::uint64_t next_offset_ = 0;
};

}  // namespace leafcutter::node::proxy
