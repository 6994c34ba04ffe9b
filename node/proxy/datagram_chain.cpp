#include "node/proxy/datagram_chain.hpp"

#include <algorithm>

namespace leafcutter::node::proxy {

class DatagramChain::Exit final : public DatagramExit {
 public:
  Exit(DatagramChain& chain, std::size_t index, Time now) : chain_(chain), index_(index), now_(now) {}
  void go_on(Datagram datagram, Time due) override {
    if (due <= now_) {
      chain_.feed(index_ + 1, std::move(datagram), now_);
      return;
    }
    chain_.hold({due, chain_.order_++, std::move(datagram), chain_.slots_[index_].fault.get()});
  }
  void go_back(Passage passage) override { chain_.back_.push_back({std::move(passage), chain_.slots_[index_].fault}); }
  void close() override { chain_.closed_by_ = chain_.slots_[index_].fault; }
  void struck(const Strike& strike) override {
    chain_.sink_->struck(*chain_.slots_[index_].fault, chain_.context_.direction, strike);
  }

 private:
  DatagramChain& chain_;
  std::size_t index_;
  Time now_;
};

namespace {

/// For std::push_heap, which keeps the greatest in front.
constexpr auto leaves_later = [](const auto& a, const auto& b) {
  return a.due != b.due ? a.due > b.due : a.order > b.order;
};

}  // namespace

void DatagramChain::hold(Held held) {
  held_bytes_ += held.datagram.bytes.size();
  held_.push_back(std::move(held));
  std::push_heap(held_.begin(), held_.end(), leaves_later);
}

std::size_t DatagramChain::behind(const ArmedFault* fault) const {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].fault.get() == fault) return i + 1;
  return slots_.size();
}

void DatagramChain::feed(std::size_t index, Datagram datagram, Time now) {
  if (index >= slots_.size()) {
    out_.push_back(std::move(datagram.bytes));
    return;
  }
  Exit exit(*this, index, now);
  const auto gate = slots_[index].gate.next(0);
  slots_[index].stage->take(std::move(datagram), gate, now, exit);
}

void DatagramChain::push(std::string bytes, Time now) { feed(0, {std::move(bytes), now}, now); }

void DatagramChain::insert(const ArmedFaultPtr& by, std::string bytes, Time now) {
  auto place = std::find(faults_.begin(), faults_.end(), by);
  const auto next = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return place != faults_.end() && std::find(place + 1, faults_.end(), slot.fault) != faults_.end();
  });
  feed(static_cast<std::size_t>(next - slots_.begin()), {std::move(bytes), now}, now);
}

void DatagramChain::pump(Time now) {
  while (!held_.empty() && held_.front().due <= now) {
    std::pop_heap(held_.begin(), held_.end(), leaves_later);
    auto held = std::move(held_.back());
    held_.pop_back();
    held_bytes_ -= held.datagram.bytes.size();
    held.datagram.arrived = held.due;
    feed(behind(held.by), std::move(held.datagram), now);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Exit exit(*this, i, now);
    slots_[i].stage->poll(now, exit);
  }
}

std::optional<Time> DatagramChain::wake() const {
  std::optional<Time> earliest;
  if (!held_.empty()) earliest = held_.front().due;
  for (const auto& slot : slots_)
    if (const auto wake = slot.stage->wake(); wake && (!earliest || *wake < *earliest)) earliest = wake;
  return earliest;
}

std::size_t DatagramChain::cost() const {
  std::size_t cost = held_bytes_ + held_.size() * datagram_overhead;
  for (const auto& slot : slots_) cost += slot.stage->cost();
  return cost;
}

void DatagramChain::replace(const std::vector<ArmedFaultPtr>& faults, Time now) {
  std::vector<Slot> slots;
  std::vector<Datagram> released;
  for (const auto& fault : faults) {
    const auto old = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.fault == fault; });
    if (old != slots_.end()) {
      slots.push_back(std::move(*old));
      continue;
    }
    if (std::find(faults_.begin(), faults_.end(), fault) != faults_.end()) continue;
    const auto key =
        draw_key(*fault, context_.seed, context_.link, context_.session, context_.direction, context_.decisions);
    Gate gate(fault->fault, key, fault->selects_peer(context_.peer));
    if (gate.passed_over()) sink_->passed_over(*fault, context_.direction);
    if (!gate.connection_selected()) continue;
    if (auto stage = make_datagram_stage(*fault, key)) slots.push_back({fault, std::move(gate), std::move(stage)});
  }
  for (auto& slot : slots_)
    if (slot.stage)  // not taken over
      for (auto& datagram : slot.stage->release()) released.push_back(std::move(datagram));
  slots_ = std::move(slots);
  faults_ = faults;
  const auto stays = [&](const Held& held) {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.fault.get() == held.by; });
  };
  std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) { return leaves_later(b, a); });
  const auto gone = std::stable_partition(held_.begin(), held_.end(), stays);
  for (auto held = gone; held != held_.end(); ++held) {
    held_bytes_ -= held->datagram.bytes.size();
    released.push_back(std::move(held->datagram));
  }
  held_.erase(gone, held_.end());
  std::make_heap(held_.begin(), held_.end(), leaves_later);
  for (auto& datagram : released) out_.push_back(std::move(datagram.bytes));
  pump(now);
}

}  // namespace leafcutter::node::proxy
