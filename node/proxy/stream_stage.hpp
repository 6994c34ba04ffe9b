// One fault at work on one direction of one TCP connection: chunks go in, and come out later, changed, or not at all.
// Pure: time is passed in.
#pragma once

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "node/proxy/armed.hpp"
#include "node/proxy/chunk.hpp"
#include "node/proxy/draws.hpp"
#include "node/proxy/gate.hpp"

namespace leafcutter::node::proxy {

/// Where a stage says that it struck.
class StageReport {
 public:
  virtual ~StageReport() = default;
  virtual void struck(const Strike& strike) = 0;
  /// Bytes to the sender of this direction's bytes.
  virtual void send_back(Passage passage) = 0;
};

class StreamStage {
 public:
  virtual ~StreamStage() = default;

  /// How many bytes it takes now; 0 closes it, for ends too.
  virtual std::size_t room() const { return std::numeric_limits<std::size_t>::max(); }
  /// Bytes within the room, or an end. `gate` says whether the fault strikes them.
  virtual void take(Chunk chunk, GateResult gate, Time now, StageReport& report) = 0;
  /// The next chunk that may leave now, at most that many bytes of it.
  virtual std::optional<Chunk> give(std::size_t most, Time now) = 0;
  /// When give() may yield more by itself.
  virtual std::optional<Time> wake() const { return std::nullopt; }
  virtual std::size_t cost() const = 0;
  /// Everything that it holds, because the fault was removed.
  virtual ChunkQueue release() = 0;
  /// All bytes come out, unseen and in order: they may wait in pipes.
  virtual bool only_delays() const { return false; }
  /// What it holds is not to be in pipes any more. Of those that only delay.
  virtual void load() {}
  /// Bytes of the fault's own, that leave whole and between what passes, from the time they "arrived". False: they have
  /// not been taken.
  virtual bool insert(Chunk&) { return false; }
  /// It cannot strike whatever comes, apart from what it holds: the gate's own limits aside.
  virtual bool exhausted() const { return false; }
  /// Bytes counted towards a limit. They go on counting when the fault's values are changed.
  virtual std::uint64_t counted() const { return 0; }
  virtual void count_from(std::uint64_t) {}
};

struct StageContext {
  const ArmedFault& fault;
  DrawKey key;
  Time activated;
  std::uint64_t position = 0;  ///< bytes of the direction that went by before
};

/// The stage of the fault, or null when the effect is none of a stream in that direction.
std::unique_ptr<StreamStage> make_stage(const StageContext& context);

/// Stages that delay (stream_delay.cpp), those that change or end what passes (stream_change.cpp), and the embedder's
/// (stream_filter.cpp); the last is null when the filter has nothing to do here.
std::unique_ptr<StreamStage> make_delay_stage(const StageContext& context);
std::unique_ptr<StreamStage> make_change_stage(const StageContext& context);
std::unique_ptr<StreamStage> make_filter_stage(const StageContext& context, const Filter& filter);

/// A stage with one queue, from which chunks leave in order. What most are.
class QueueStage : public StreamStage {
 public:
  std::optional<Chunk> give(std::size_t most, Time) override {
    if (queue_.empty()) return std::nullopt;
    if (!queue_.front().is_end() && queue_.front().size > most) return queue_.pop_front_bytes(most);
    return queue_.pop();
  }
  std::size_t cost() const override { return queue_.cost(); }
  ChunkQueue release() override { return std::exchange(queue_, {}); }

 protected:
  ChunkQueue queue_;
};

/// Chunks with the time at which each may leave; never before the one ahead of it.
class TimedQueueStage : public StreamStage {
 public:
  std::optional<Chunk> give(std::size_t most, Time now) override;
  std::optional<Time> wake() const override;
  std::size_t cost() const override { return queue_.cost(); }
  ChunkQueue release() override;
  void load() override { queue_.load(); }

 protected:
  void hold(Chunk chunk, Time due);
  std::size_t waiting() const { return due_.size(); }

 private:
  ChunkQueue queue_;
  std::deque<Time> due_;
};

}  // namespace leafcutter::node::proxy
