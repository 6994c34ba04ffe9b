// Timers of one thread: a binary heap of objects that know their place in it, so that moving one costs O(log n) and no
// memory.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "node/proxy/pacer.hpp"

namespace leafcutter::node::proxy {

class Timed {
 public:
  virtual ~Timed() = default;
  /// Its time has come; it is not in the heap any more.
  virtual void due(Time now) = 0;

 private:
  friend class TimerHeap;
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  std::size_t place_ = nowhere;
  Time at_{};
};

class TimerHeap {
 public:
  void set(Timed& timed, Time at) {
    if (timed.place_ == Timed::nowhere) {
      timed.place_ = heap_.size();
      heap_.push_back(&timed);
    }
    timed.at_ = at;
    down(up(timed.place_));
  }
  void set(Timed& timed, std::optional<Time> at) {
    if (at)
      set(timed, *at);
    else
      clear(timed);
  }
  void clear(Timed& timed) {
    const auto place = std::exchange(timed.place_, Timed::nowhere);
    if (place == Timed::nowhere) return;
    auto* last = heap_.back();
    heap_.pop_back();
    if (last == &timed) return;
    heap_[place] = last;
    last->place_ = place;
    down(up(place));
  }
  std::optional<Time> earliest() const {
    if (heap_.empty()) return std::nullopt;
    return heap_.front()->at_;
  }
  /// The next whose time has come, taken out; or null.
  Timed* pop_due(Time now) {
    if (heap_.empty() || heap_.front()->at_ > now) return nullptr;
    auto* timed = heap_.front();
    clear(*timed);
    return timed;
  }
  std::size_t size() const { return heap_.size(); }

 private:
  void exchange(std::size_t a, std::size_t b) {
    std::swap(heap_[a], heap_[b]);
    heap_[a]->place_ = a;
    heap_[b]->place_ = b;
  }
  std::size_t up(std::size_t place) {
    for (; place > 0 && heap_[place]->at_ < heap_[(place - 1) / 2]->at_; place = (place - 1) / 2)
      exchange(place, (place - 1) / 2);
    return place;
  }
  void down(std::size_t place) {
    for (;;) {
      auto least = place;
      for (const auto child : {2 * place + 1, 2 * place + 2})
        if (child < heap_.size() && heap_[child]->at_ < heap_[least]->at_) least = child;
      if (least == place) return;
      exchange(place, least);
      place = least;
    }
  }
  std::vector<Timed*> heap_;
};

}  // namespace leafcutter::node::proxy
