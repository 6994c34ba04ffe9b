// How much later the next bytes of a latency fault come: one draw for each, or one for all of them.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "node/proxy/decisions.hpp"
#include "node/proxy/draws.hpp"
#include "node/proxy/fault.hpp"

namespace leafcutter::node::proxy {

class LatencyDraw {
 public:
  LatencyDraw(Latency latency, const DrawKey& key)
      : latency_(std::move(latency)), recorded_(key.recorded), draws_(key, "value") {}

  /// It was for the first bytes only, and they have come.
  bool exhausted() const { return latency_.draw == Latency::Draw::first_bytes && drawn_.has_value(); }

  Duration next(std::uint64_t operation, std::uint64_t offset) {
    if (recorded_ != nullptr)
      if (const auto* struck = recorded_->at(operation, offset)) {
        drawn_ = struck->delay;
        return struck->delay;
      }
    if (latency_.draw != Latency::Draw::each_chunk && drawn_) return *drawn_;
    auto delay = draws_.duration(latency_.time);
    if (latency_.spread.count() > 0) {
      const auto spread = latency_.spread.count();
      const auto drawn = draws_.below(2 * static_cast<std::uint64_t>(spread) + 1);
      delay = std::max(Duration{0}, delay + Duration{static_cast<Duration::rep>(drawn) - spread});
    }
    if (latency_.cap) delay = std::min(delay, *latency_.cap);
    drawn_ = delay;
    return delay;
  }

 private:
  Latency latency_;
  const FaultDecisions* recorded_;
  Draws draws_;
  std::optional<Duration> drawn_;
};

}  // namespace leafcutter::node::proxy
