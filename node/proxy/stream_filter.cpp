// The embedder's filters on a stream: what they let be overtaken waits beside what stays in order.
#include <algorithm>
#include <deque>

#include "node/proxy/stream_stage.hpp"

namespace leafcutter::node::proxy {
namespace {

class FilterStage final : public TimedQueueStage {
 public:
  FilterStage(const StageContext& context, std::unique_ptr<StreamOrDatagramFilter> filter)
      : cause_(context.fault.shared_from_this()), filter_(std::move(filter)) {}

  void take(Chunk chunk, GateResult gate, Time now, StageReport& report) override {
    if (closed_) return;
    next_ = chunk.offset + chunk.size;
    if (!gate.struck || (chunk.is_end() && chunk.end != StreamEnd::finished)) {
      const auto arrived = chunk.arrived;
      hold(std::move(chunk), arrived);
      return;
    }
    auto filtered = chunk.is_end() ? filter_->ended() : filter_->arrived(chunk.bytes());
    for (const auto& act : filtered.acts)
      report.struck({gate.operation, chunk.offset, act.bytes, act.delay, act.detail, act.struck});
    for (auto& back : filtered.back) report.send_back(std::move(back));
    for (const auto& onward : filtered.onward) pass_on(onward, chunk);
    closed_ = filtered.close;
    const auto arrived = chunk.arrived;
    if (closed_)
      hold(Chunk::ending(StreamEnd::cut_close, chunk.offset, now, cause_), arrived);
    else if (chunk.is_end())
      hold(std::move(chunk), overtaken_.empty() ? arrived : std::max(arrived, overtaken_.back().due));
  }

  bool insert(Chunk& chunk) override {
    if (closed_) return true;
    chunk.offset = next_;
    const auto due = chunk.arrived;
    overtake(std::move(chunk), due);
    return true;
  }

  std::optional<Chunk> give(std::size_t most, Time now) override {
    if (!leaving_) {
      if (!overtaken_.empty() && overtaken_.front().due <= now) {
        leaving_ = std::move(overtaken_.front().chunk);
        overtaken_bytes_ -= leaving_->size;
        leaving_->arrived = std::max(leaving_->arrived, overtaken_.front().due);
        overtaken_.pop_front();
      } else {
        leaving_ = TimedQueueStage::give(std::numeric_limits<std::size_t>::max(), now);
      }
    }
    // One passage leaves whole before the next begins, in however many parts.
    if (!leaving_ || leaving_->is_end() || leaving_->size <= most) return std::exchange(leaving_, std::nullopt);
    return leaving_->take_front(most);
  }

  std::optional<Time> wake() const override {
    auto next = TimedQueueStage::wake();
    if (leaving_) return leaving_->arrived;
    if (!overtaken_.empty() && (!next || overtaken_.front().due < *next)) next = overtaken_.front().due;
    return next;
  }

  std::size_t cost() const override {
    return TimedQueueStage::cost() + (leaving_ ? leaving_->size + chunk_overhead : 0) + overtaken_bytes_ +
           overtaken_.size() * chunk_overhead + filter_->held_bytes();
  }

  ChunkQueue release() override {
    ChunkQueue all, end;
    if (leaving_) all.push(*std::exchange(leaving_, std::nullopt));
    for (auto waiting = TimedQueueStage::release(); !waiting.empty();) {
      auto chunk = waiting.pop();
      (chunk.is_end() ? end : all).push(std::move(chunk));
    }
    for (auto& waiting : std::exchange(overtaken_, {})) all.push(std::move(waiting.chunk));
    overtaken_bytes_ = 0;
    if (auto rest = filter_->removed(); !rest.empty()) all.push(Chunk::copy_of(rest, next_ - rest.size(), {}));
    while (!end.empty()) all.push(end.pop());
    return all;
  }

 private:
  struct Waiting {
    Time due;
    Chunk chunk;
  };

  void pass_on(const Passage& passage, const Chunk& of) {
    if (passage.bytes.empty()) return;
    auto chunk = Chunk::copy_of(passage.bytes, of.offset, of.arrived);
    const auto due = of.arrived + passage.delay;
    if (!passage.overtaken) {
      hold(std::move(chunk), due);
      return;
    }
    overtake(std::move(chunk), due);
  }

  void overtake(Chunk chunk, Time due) {
    overtaken_bytes_ += chunk.size;
    const auto behind = std::upper_bound(overtaken_.begin(), overtaken_.end(), due,
                                         [](Time time, const Waiting& waiting) { return time < waiting.due; });
    overtaken_.insert(behind, {due, std::move(chunk)});
  }

  ArmedFaultPtr cause_;
  std::unique_ptr<StreamOrDatagramFilter> filter_;
  std::deque<Waiting> overtaken_;  ///< the first to leave in front
  std::optional<Chunk> leaving_;
  std::size_t overtaken_bytes_ = 0;
  std::uint64_t next_ = 0;  ///< offset behind what came
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<StreamStage> make_filter_stage(const StageContext& context, const Filter& filter) {
  auto made = filter.make->make({Transport::tcp, context.key.direction, context.key.connection,
                                 Draws(context.key, "filter").raw(), context.key.link, context.position});
  return made ? std::make_unique<FilterStage>(context, std::move(made)) : nullptr;
}

}  // namespace leafcutter::node::proxy
