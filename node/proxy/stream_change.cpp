// What loses, changes or ends what passes: the blackhole that drops, corrupt, truncate, limit, cut, reset at the first
// bytes, lose-reply.
#include <algorithm>

#include "node/proxy/stream_stage.hpp"

namespace leafcutter::node::proxy {
namespace {

/// Silent loss: the end of the stream is lost with the rest, until the fault goes.
class DropStage final : public StreamStage {
 public:
  void take(Chunk chunk, GateResult gate, Time, StageReport& report) override {
    if (!gate.struck) {
      passing_.push(std::move(chunk));
    } else if (chunk.is_end()) {
      ends_.push(std::move(chunk));
    } else {
      report.struck({gate.operation, chunk.offset, chunk.size});
    }
  }
  std::optional<Chunk> give(std::size_t most, Time) override {
    if (passing_.empty()) return std::nullopt;
    if (!passing_.front().is_end() && passing_.front().size > most) return passing_.pop_front_bytes(most);
    return passing_.pop();
  }
  std::size_t cost() const override { return passing_.cost() + ends_.cost(); }
  ChunkQueue release() override {
    auto all = std::exchange(passing_, {});
    while (!ends_.empty()) all.push(ends_.pop());
    return all;
  }

 private:
  ChunkQueue passing_, ends_;
};

class CorruptStage final : public QueueStage {
 public:
  CorruptStage(const StageContext& context, Corrupt corrupt)
      : corrupt_(std::move(corrupt)), draws_(context.key, "value") {}

  void take(Chunk chunk, GateResult gate, Time, StageReport& report) override {
    if (gate.struck && !chunk.is_end())
      corrupt_.flips.empty() ? flip_random(chunk, gate, report) : flip_fixed(chunk, gate, report);
    queue_.push(std::move(chunk));
  }

 private:
  void flip_fixed(Chunk& chunk, GateResult gate, StageReport& report) {
    for (const auto& flip : corrupt_.flips) {
      if (flip.offset < chunk.offset || flip.offset - chunk.offset >= chunk.size) continue;
      invert(chunk, flip.offset - chunk.offset, flip.mask);
      report.struck({gate.operation, flip.offset, 1});
    }
  }
  void flip_random(Chunk& chunk, GateResult gate, StageReport& report) {
    for (unsigned i = 0; i < corrupt_.random_bits; ++i) {
      const auto bit = draws_.below(chunk.size * 8);
      invert(chunk, bit / 8, static_cast<std::uint8_t>(1U << (bit % 8)));
      report.struck({gate.operation, chunk.offset + bit / 8, 1});
    }
  }
  static void invert(Chunk& chunk, std::uint64_t at, std::uint8_t mask) {
    auto* byte = chunk.own_bytes() + at;
    *byte = static_cast<char>(static_cast<std::uint8_t>(*byte) ^ mask);
  }
  Corrupt corrupt_;
  Draws draws_;
};

/// The first bytes get through; what happens then is the subclass's.
class CountingStage : public QueueStage {
 public:
  explicit CountingStage(std::uint64_t limit) : limit_(limit) {}
  std::uint64_t counted() const override { return counted_; }
  void count_from(std::uint64_t counted) override { counted_ = counted; }

 protected:
  bool reached() const { return counted_ >= limit_; }
  /// Lets through what is within the limit and leaves the rest in `chunk`.
  void let_through(Chunk& chunk) {
    const auto part = std::min<std::uint64_t>(limit_ - std::min(counted_, limit_), chunk.size);
    counted_ += part;
    if (part > 0) queue_.push(chunk.take_front(part));
  }

 private:
  std::uint64_t limit_, counted_ = 0;
};

class TruncateStage final : public CountingStage {
 public:
  explicit TruncateStage(const Truncate& truncate) : CountingStage(truncate.keep_bytes) {}
  void take(Chunk chunk, GateResult gate, Time, StageReport& report) override {
    if (gate.struck && !chunk.is_end()) {
      let_through(chunk);
      if (chunk.size > 0) report.struck({gate.operation, chunk.offset, chunk.size});
    } else {
      queue_.push(std::move(chunk));
    }
  }
};

/// Limit and Cut: at the limit the direction, or the whole connection, ends.
class EndingStage final : public CountingStage {
 public:
  EndingStage(const StageContext& context, std::uint64_t limit, StreamEnd end)
      : CountingStage(limit), cause_(context.fault.shared_from_this()), end_(end) {}

  void take(Chunk chunk, GateResult gate, Time now, StageReport& report) override {
    if (ended_) return;
    if (!gate.struck || chunk.is_end()) {
      queue_.push(std::move(chunk));
      return;
    }
    let_through(chunk);
    if (!reached()) return;
    ended_ = true;
    report.struck({gate.operation, chunk.offset, chunk.size});
    queue_.push(Chunk::ending(end_, chunk.offset, now, cause_));
  }

 private:
  ArmedFaultPtr cause_;
  StreamEnd end_;
  bool ended_ = false;
};

StreamEnd reset_of(Side side) {
  if (side == Side::client) return StreamEnd::cut_client;
  return side == Side::upstream ? StreamEnd::cut_upstream : StreamEnd::cut_reset;
}

/// Reset at the first bytes, and LoseReply: those are lost, and the connection ends, at once or a while later.
class FirstBytesStage final : public TimedQueueStage {
 public:
  FirstBytesStage(const StageContext& context, StreamEnd end, Duration after)
      : cause_(context.fault.shared_from_this()), end_(end), after_(after) {}

  void take(Chunk chunk, GateResult gate, Time now, StageReport& report) override {
    if (ended_) return;
    if (!gate.struck || chunk.is_end()) {
      const auto arrived = chunk.arrived;
      hold(std::move(chunk), arrived);
      return;
    }
    ended_ = true;
    report.struck({gate.operation, chunk.offset, chunk.size, after_});
    hold(Chunk::ending(end_, chunk.offset, now, cause_), chunk.arrived + after_);
  }
  ChunkQueue release() override {
    // The bytes are lost already, so that the stream cannot go on: what was to come comes now.
    return TimedQueueStage::release();
  }

 private:
  ArmedFaultPtr cause_;
  StreamEnd end_;
  Duration after_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<StreamStage> make_change_stage(const StageContext& context) {
  const auto& effect = context.fault.fault.effect;
  if (std::holds_alternative<Blackhole>(effect)) return std::make_unique<DropStage>();
  if (const auto* corrupt = std::get_if<Corrupt>(&effect)) return std::make_unique<CorruptStage>(context, *corrupt);
  if (const auto* truncate = std::get_if<Truncate>(&effect)) return std::make_unique<TruncateStage>(*truncate);
  if (const auto* limit = std::get_if<Limit>(&effect))
    return std::make_unique<EndingStage>(context, limit->bytes, StreamEnd::finished);
  if (const auto* cut = std::get_if<Cut>(&effect); cut != nullptr && cut->after_bytes)
    return std::make_unique<EndingStage>(context, *cut->after_bytes,
                                         cut->ending == Ending::reset ? StreamEnd::cut_reset : StreamEnd::cut_close);
  if (const auto* reset = std::get_if<Reset>(&effect); reset != nullptr && reset->when == Reset::When::first_bytes)
    return std::make_unique<FirstBytesStage>(context, reset_of(reset->side), reset->after);
  if (const auto* lose = std::get_if<LoseReply>(&effect);
      lose != nullptr && context.key.direction == Direction::to_client)
    return std::make_unique<FirstBytesStage>(
        context, lose->ending == Ending::reset ? StreamEnd::cut_reset : StreamEnd::cut_close, Duration{0});
  if (const auto* filter = std::get_if<Filter>(&effect)) return make_filter_stage(context, *filter);
  return nullptr;
}

}  // namespace leafcutter::node::proxy
