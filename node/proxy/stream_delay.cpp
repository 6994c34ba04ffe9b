// Latency, jitter, bandwidth, slicing, slow close, and the blackhole that stalls: bytes leave as they came, but later.
#include <algorithm>

#include "node/proxy/latency_draw.hpp"
#include "node/proxy/stream_stage.hpp"

namespace leafcutter::node::proxy {
namespace {

class LatencyStage final : public TimedQueueStage {
 public:
  LatencyStage(const StageContext& context, Latency latency) : draw_(std::move(latency), context.key) {}

  void take(Chunk chunk, GateResult gate, Time, StageReport& report) override {
    Duration delay{0};
    if (gate.struck && !chunk.is_end() && !exhausted()) {
      delay = draw_.next(gate.operation, chunk.offset);
      report.struck({gate.operation, chunk.offset, chunk.size, delay});
    }
    const auto due = chunk.arrived + delay;
    hold(std::move(chunk), due);
  }
  bool exhausted() const override { return draw_.exhausted(); }
  bool only_delays() const override { return true; }

 private:
  LatencyDraw draw_;
};

class BandwidthStage final : public StreamStage {
 public:
  BandwidthStage(const StageContext& context, const Bandwidth& bandwidth)
      : own_(bandwidth.bytes_per_second, bandwidth.burst_bytes),
        shared_(context.fault.pacers[static_cast<std::size_t>(context.key.direction)]),
        quantum_(shared_ ? shared_->quantum() : own_.quantum()) {}

  void take(Chunk chunk, GateResult gate, Time now, StageReport& report) override {
    const bool charged = gate.struck && !chunk.is_end();
    if (charged) report.struck({gate.operation, chunk.offset, chunk.size});
    charged_.push_back(charged);
    queue_.push(std::move(chunk));
    reserve(now);
  }
  std::optional<Chunk> give(std::size_t most, Time now) override {
    if (queue_.empty()) return std::nullopt;
    if (!charged_.front()) return give_front(queue_.front().size, most);
    reserve(now);
    if (due_ > now) return std::nullopt;
    const auto part = std::min(granted_, most);
    granted_ -= part;
    auto chunk = give_front(part, part);
    chunk.arrived = std::max(chunk.arrived, due_);
    reserve(now);
    return chunk;
  }
  std::optional<Time> wake() const override {
    if (granted_ == 0 || due_ == Pacer::never) return std::nullopt;
    return due_;
  }
  std::size_t cost() const override { return queue_.cost(); }
  ChunkQueue release() override {
    charged_.clear();
    granted_ = 0;
    return std::exchange(queue_, {});
  }
  bool only_delays() const override { return true; }
  void load() override { queue_.load(); }

 private:
  /// Asks for the next bytes of the chunk in front; they leave at `due_`.
  void reserve(Time now) {
    if (granted_ != 0 || queue_.empty() || !charged_.front()) return;
    granted_ = std::min<std::size_t>(quantum_, queue_.front().size);
    const auto ready = queue_.front().arrived;
    due_ = shared_ ? shared_->pass(granted_, ready, now) : own_.pass(granted_, ready, now);
  }
  Chunk give_front(std::size_t part, std::size_t most) {
    part = std::min(part, most);
    if (!queue_.front().is_end() && queue_.front().size > part) return queue_.pop_front_bytes(part);
    charged_.pop_front();
    return queue_.pop();
  }

  Pacer own_;
  std::shared_ptr<SharedPacer> shared_;
  std::size_t quantum_;
  ChunkQueue queue_;
  std::deque<bool> charged_;
  std::size_t granted_ = 0;
  Time due_{};
};

class SliceStage final : public TimedQueueStage {
 public:
  SliceStage(const StageContext& context, const Slice& slice) : slice_(slice), draws_(context.key, "value") {}

  /// Each piece is charged for itself, so that not too many may be made at once.
  std::size_t room() const override { return waiting() >= most_pieces ? 0 : slice_.average_bytes * pieces_at_once; }

  void take(Chunk chunk, GateResult gate, Time, StageReport& report) override {
    if (chunk.is_end() || !gate.struck) {
      const auto arrived = chunk.arrived;
      hold(std::move(chunk), arrived);
      return;
    }
    report.struck({gate.operation, chunk.offset, chunk.size});
    next_ = std::max(next_, chunk.arrived);
    while (chunk.size > 0) {
      hold(chunk.take_front(std::min(piece(), chunk.size)), next_);
      next_ += slice_.pause;
    }
  }

 private:
  std::size_t piece() {
    if (slice_.variation_bytes == 0) return slice_.average_bytes;
    return slice_.average_bytes - slice_.variation_bytes + draws_.below(2 * slice_.variation_bytes + 1);
  }
  static constexpr std::size_t most_pieces = 256, pieces_at_once = 64;
  Slice slice_;
  Draws draws_;
  Time next_{};
};

class SlowCloseStage final : public TimedQueueStage {
 public:
  explicit SlowCloseStage(const SlowClose& close) : close_(close) {}
  void take(Chunk chunk, GateResult, Time, StageReport& report) override {
    auto due = chunk.arrived;
    if (chunk.end == StreamEnd::finished) {
      due += close_.delay;
      report.struck({0, chunk.offset, 0, close_.delay});
    }
    hold(std::move(chunk), due);
  }
  bool only_delays() const override { return true; }

 private:
  SlowClose close_;
};

/// Takes one piece, so that there is evidence of what was stalled, and then no more.
class StallStage final : public QueueStage {
 public:
  static constexpr std::size_t evidence_bytes = 4096;
  std::size_t room() const override { return stalled_ ? 0 : evidence_bytes; }
  void take(Chunk chunk, GateResult gate, Time, StageReport& report) override {
    if (gate.struck && !stalled_) {
      stalled_ = true;
      report.struck({gate.operation, chunk.offset, chunk.size});
    }
    (stalled_ ? queue_ : passing_).push(std::move(chunk));
  }
  std::optional<Chunk> give(std::size_t most, Time) override {
    if (passing_.empty()) return std::nullopt;
    if (!passing_.front().is_end() && passing_.front().size > most) return passing_.pop_front_bytes(most);
    return passing_.pop();
  }
  std::size_t cost() const override { return queue_.cost() + passing_.cost(); }
  ChunkQueue release() override {
    auto all = std::exchange(passing_, {});
    for (auto held = QueueStage::release(); !held.empty();) all.push(held.pop());
    return all;
  }

 private:
  bool stalled_ = false;
  ChunkQueue passing_;  ///< not struck
};

}  // namespace

std::optional<Chunk> TimedQueueStage::give(std::size_t most, Time now) {
  if (queue_.empty() || due_.front() > now) return std::nullopt;
  const auto due = due_.front();
  Chunk chunk;
  if (!queue_.front().is_end() && queue_.front().size > most) {
    chunk = queue_.pop_front_bytes(most);
  } else {
    due_.pop_front();
    chunk = queue_.pop();
  }
  // What follows counts from when it was to leave: our lateness does not add up.
  chunk.arrived = std::max(chunk.arrived, due);
  return chunk;
}

std::optional<Time> TimedQueueStage::wake() const {
  if (due_.empty()) return std::nullopt;
  return due_.front();
}

ChunkQueue TimedQueueStage::release() {
  due_.clear();
  return std::exchange(queue_, {});
}

void TimedQueueStage::hold(Chunk chunk, Time due) {
  if (!due_.empty()) due = std::max(due, due_.back());
  due_.push_back(due);
  queue_.push(std::move(chunk));
}

std::unique_ptr<StreamStage> make_delay_stage(const StageContext& context) {
  const auto& effect = context.fault.fault.effect;
  if (const auto* latency = std::get_if<Latency>(&effect)) return std::make_unique<LatencyStage>(context, *latency);
  if (const auto* jitter = std::get_if<Jitter>(&effect))
    return std::make_unique<LatencyStage>(context, Latency{UniformTime{jitter->min, jitter->max}});
  if (const auto* bandwidth = std::get_if<Bandwidth>(&effect))
    return std::make_unique<BandwidthStage>(context, *bandwidth);
  if (const auto* slice = std::get_if<Slice>(&effect)) return std::make_unique<SliceStage>(context, *slice);
  if (const auto* close = std::get_if<SlowClose>(&effect)) return std::make_unique<SlowCloseStage>(*close);
  if (const auto* hole = std::get_if<Blackhole>(&effect); hole != nullptr && hole->mode == Blackhole::Mode::stall)
    return std::make_unique<StallStage>();
  return nullptr;
}

std::unique_ptr<StreamStage> make_stage(const StageContext& context) {
  if (auto stage = make_delay_stage(context)) return stage;
  return make_change_stage(context);
}

}  // namespace leafcutter::node::proxy
