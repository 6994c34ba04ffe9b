#include "node/leaf/event_strikes.hpp"

#include <utility>

#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {

EventStrikes::EventStrikes(SiteBook& sites, CarryOut carry_out) : sites_(sites), carry_out_(std::move(carry_out)) {
  const auto& faults = sites.plan().faults;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const auto* kind = scenarios::fault_kind(faults[i].kind);
    if (kind != nullptr && (kind->mechanism == scenarios::Mechanism::process || kind->between) && faults[i].aim &&
        !faults[i].aim->after.empty())
      waiting_.push_back({i, faults[i]});
  }
  if (waiting_.empty()) return;
  registration_ = sites.wake_at_release([this] {
    const std::lock_guard lock(mutex_);
    ++wakes_;
    changed_.notify_all();
  });
  thread_ = std::thread([this] { run(); });
}

EventStrikes::~EventStrikes() {
  if (!thread_.joinable()) return;
  sites_.forget_wake(registration_);
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void EventStrikes::run() {
  for (std::uint64_t known = 0;;) {
    // The book is asked without our lock: it wakes us under its own.
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      if (sites_.waits(at->index)) {
        ++at;
        continue;
      }
      const auto strike = std::move(*at);
      at = waiting_.erase(at);
      carry_out_(strike);
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || wakes_ != known; });
    if (stop_) return;
    known = wakes_;
  }
}

}  // namespace leafcutter::node
