#include "node/observe/recorder.hpp"

#include <algorithm>
#include <utility>

namespace leafcutter::node {
namespace {

void merge(VectorClock& into, const VectorClock& other) {
  for (const auto& [lane, count] : other) {
    auto& mine = into[lane];
    mine = std::max(mine, count);
  }
}

}  // namespace

Recorder::Recorder(Clock clock, Sink sink) : clock_(std::move(clock)), sink_(std::move(sink)) {}

VectorClock Recorder::record(const std::string& lane, const std::string& kind, Value attrs,
                             std::initializer_list<VectorClock> causes) {
  const std::lock_guard lock(mutex_);
  auto& clock = lanes_[lane];
  for (const auto& cause : causes) merge(clock, cause);
  return append(lane, kind, std::move(attrs), clock_());
}

bool Recorder::record_if(const std::string& lane, const std::function<bool()>& happened, std::vector<Fact> facts) {
  const std::lock_guard lock(mutex_);
  const auto at = clock_();
  if (!happened()) return false;
  for (auto& fact : facts) append(lane, fact.kind, std::move(fact.attrs), at);
  return true;
}

VectorClock Recorder::append(const std::string& lane, const std::string& kind, Value attrs,
                             std::chrono::nanoseconds at) {
  auto& clock = lanes_[lane];
  Event event;
  event.seq = ++clock[lane];
  event.lane = lane;
  event.clock = clock;
  event.at = at;
  event.kind = kind;
  event.attrs = std::move(attrs);
  ++recorded_;
  auto own = clock;
  sink_(std::move(event));
  return own;
}

void Recorder::deliver(const std::string& lane, const VectorClock& cause) {
  const std::lock_guard lock(mutex_);
  merge(lanes_[lane], cause);
}

VectorClock Recorder::now(const std::string& lane) const {
  const std::lock_guard lock(mutex_);
  const auto found = lanes_.find(lane);
  return found == lanes_.end() ? VectorClock{} : found->second;
}

std::uint64_t Recorder::recorded() const {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

}  // namespace leafcutter::node
