#include "node/proxy/stream_chain.hpp"

#include <algorithm>

namespace leafcutter::node::proxy {
namespace {

class SlotReport final : public StageReport {
 public:
  SlotReport(StrikeSink& sink, const ArmedFaultPtr& fault, Direction direction, std::vector<BackPassage>& back)
      : sink_(sink), fault_(fault), direction_(direction), back_(back) {}
  void struck(const Strike& strike) override { sink_.struck(*fault_, direction_, strike); }
  void send_back(Passage passage) override { back_.push_back({std::move(passage), fault_}); }

 private:
  StrikeSink& sink_;
  const ArmedFaultPtr& fault_;
  Direction direction_;
  std::vector<BackPassage>& back_;
};

bool closes_when_removed(const ArmedFault& fault) {
  const auto* hole = std::get_if<Blackhole>(&fault.fault.effect);
  return hole != nullptr && hole->close_when_removed;
}

/// The same fault with other values: it has not been removed.
bool succeeds(const ArmedFault& after, const ArmedFault& before) {
  return after.fault.id == before.fault.id && after.fault.effect.index() == before.fault.effect.index();
}

}  // namespace

DrawKey StreamChain::key_of(const ArmedFault& fault) const {
  return draw_key(fault, context_.seed, context_.link, context_.connection, context_.direction, context_.decisions);
}

std::optional<StreamChain::Slot> StreamChain::make_slot(const ArmedFaultPtr& fault, Time now) {
  if (!flows(fault->fault.selector.flow, context_.direction)) return std::nullopt;
  Gate gate(fault->fault, key_of(*fault), fault->selects_peer(context_.peer));
  if (!gate.connection_selected() && !gate.passed_over()) return std::nullopt;
  auto stage = make_stage({*fault, key_of(*fault), now, next_offset_});
  if (!stage) return std::nullopt;
  if (gate.passed_over()) {
    sink_->passed_over(*fault, context_.direction);
    return std::nullopt;
  }
  return Slot{fault, std::move(gate), std::move(stage)};
}

/// A fault whose values changed goes on counting where it was.
void StreamChain::inherit(Slot& slot, const std::vector<Slot>& before) const {
  for (const auto& old : before)
    if (old.stage && succeeds(*slot.fault, *old.fault)) slot.stage->count_from(old.stage->counted());
}

/// Which of the new places each slot keeps. Those kept stand in the old order, so that no bytes overtake others.
std::vector<std::optional<std::size_t>> StreamChain::kept_places(const std::vector<ArmedFaultPtr>& faults) const {
  std::vector<std::optional<std::size_t>> places(slots_.size());
  auto from = faults.begin();
  for (std::size_t old = 0; old < slots_.size(); ++old) {
    const auto found = std::find(from, faults.end(), slots_[old].fault);
    if (found == faults.end()) continue;
    places[old] = static_cast<std::size_t>(found - faults.begin());
    from = found + 1;
  }
  return places;
}

/// Whether this direction was asked about that fault before and has no slot for it: it is not touched, or not any more.
bool StreamChain::settled(const ArmedFaultPtr& fault) const {
  if (std::find(faults_.begin(), faults_.end(), fault) == faults_.end()) return false;
  return std::none_of(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.fault == fault; });
}

/// What is held is not to be in pipes any more, from the first bytes on.
void StreamChain::load() {
  out_.load();
  for (auto slot = slots_.rbegin(); slot != slots_.rend(); ++slot) slot->stage->load();
}

void StreamChain::replace(const std::vector<ArmedFaultPtr>& faults, Time now) {
  const auto places = kept_places(faults);
  std::vector<std::optional<Slot>> after(faults.size());
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (std::find(places.begin(), places.end(), i) != places.end() || settled(faults[i])) continue;
    after[i] = make_slot(faults[i], now);
    if (after[i]) inherit(*after[i], slots_);
  }
  if (std::any_of(after.begin(), after.end(), [](const auto& slot) { return slot && !slot->stage->only_delays(); }))
    load();
  // What a removed fault held goes to the next one that stays, or out; from the last on, so that order is kept.
  std::vector<std::vector<ChunkQueue>> released(faults.size() + 1);
  bool close = false;
  for (std::size_t old = slots_.size(), next = faults.size(); old-- > 0;) {
    if (places[old]) {
      next = *places[old];
      after[next] = std::move(slots_[old]);
    } else {
      const auto& gone = *slots_[old].fault;
      const bool changed = std::any_of(after.begin(), after.end(), [&](const std::optional<Slot>& slot) {
        return slot && slot->fault && succeeds(*slot->fault, gone);
      });
      close = close || (!changed && closes_when_removed(gone));
      released[next].push_back(slots_[old].stage->release());
    }
  }
  slots_.clear();
  std::vector<std::size_t> index(faults.size() + 1);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    index[i] = slots_.size();
    if (after[i]) slots_.push_back(std::move(*after[i]));
  }
  index[faults.size()] = slots_.size();
  faults_ = faults;
  for (std::size_t to = released.size(); to-- > 0;)
    for (auto& queue : released[to])
      while (!queue.empty()) feed(index[to], queue.pop(), now);
  if (close) out_.push(Chunk::ending(StreamEnd::cut_close, next_offset_, now));
  pump(now);
}

void StreamChain::push(Chunk chunk, Time now) {
  if (chunk.is_end() && room() == 0) {
    pending_end_ = std::move(chunk);
    return;
  }
  next_offset_ = std::max(next_offset_, chunk.offset + chunk.size);
  feed(0, std::move(chunk), now);
}

void StreamChain::feed(std::size_t index, Chunk chunk, Time now) {
  if (index == slots_.size()) {
    out_.push(std::move(chunk));
    return;
  }
  auto& slot = slots_[index];
  SlotReport report(*sink_, slot.fault, context_.direction, back_);
  if (chunk.is_end()) {
    const GateResult gate{slot.gate.strikes_end(chunk.offset), 0};
    slot.stage->take(std::move(chunk), gate, now, report);
    return;
  }
  while (chunk.size > 0) {
    const auto part = std::min<std::uint64_t>(slot.gate.edge_after(chunk.offset), chunk.size);
    const auto gate = slot.gate.next(chunk.offset);
    if (part == chunk.size) {
      slot.stage->take(std::move(chunk), gate, now, report);
      return;
    }
    slot.stage->take(chunk.take_front(part), gate, now, report);
  }
}

/// The first slot of a fault that stands behind this one, which may have none itself.
std::size_t StreamChain::behind(const ArmedFaultPtr& fault) const {
  auto place = std::find(faults_.begin(), faults_.end(), fault);
  if (place == faults_.end()) return slots_.size();
  ++place;
  const auto next = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return std::find(place, faults_.end(), slot.fault) != faults_.end();
  });
  return static_cast<std::size_t>(next - slots_.begin());
}

void StreamChain::insert(const ArmedFaultPtr& by, Chunk chunk, Time now) {
  const auto own = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.fault == by; });
  if (own == slots_.end() || !own->stage->insert(chunk)) {
    chunk.offset = next_offset_;
    feed(behind(by), std::move(chunk), now);
  }
  pump(now);
}

bool StreamChain::move_from(std::size_t index, Time now) {
  bool moved = false;
  for (;;) {
    const auto room =
        index + 1 < slots_.size() ? slots_[index + 1].stage->room() : std::numeric_limits<std::size_t>::max();
    if (room == 0) return moved;
    auto chunk = slots_[index].stage->give(room, now);
    if (!chunk) return moved;
    feed(index + 1, std::move(*chunk), now);
    moved = true;
  }
}

void StreamChain::pump(Time now) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = slots_.size(); i-- > 0;) moved = move_from(i, now) || moved;
    if (pending_end_ && room() > 0) {
      feed(0, *std::exchange(pending_end_, std::nullopt), now);
      moved = true;
    }
  }
  retire();
}

/// Takes out what cannot strike any more, so that the bytes need not come this way.
void StreamChain::retire() {
  bool clear = true;
  std::erase_if(slots_, [&](const Slot& slot) {
    clear = clear && slot.stage->cost() == 0;
    return clear && (slot.gate.past(next_offset_) || slot.stage->exhausted());
  });
}

std::optional<Time> StreamChain::wake() const {
  std::optional<Time> earliest;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto wake = slots_[i].stage->wake();
    if (!wake || (i + 1 < slots_.size() && slots_[i + 1].stage->room() == 0)) continue;
    if (!earliest || *wake < *earliest) earliest = wake;
  }
  return earliest;
}

std::size_t StreamChain::cost() const {
  std::size_t cost = out_.cost();
  for (const auto& slot : slots_) cost += slot.stage->cost();
  return cost;
}

}  // namespace leafcutter::node::proxy
