// A launcher that survives its nursery: when that process has gone, the next launch starts another one and gives it the
// scenarios again. What ran in the old one has ended by then, and is run again by whoever wants it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>

#include "base/error.hpp"
#include "node/leaf/launcher.hpp"

namespace leafcutter::node {

/// How often something may be started again: at most `count` times within `span`, so that a nursery that cannot live on
/// this host is told of and not started for ever. A value.
class RestartBudget {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  RestartBudget(std::size_t count, std::chrono::seconds span) : count_(count), span_(span) {}

  /// Zero: it may, and has been counted. Otherwise how long it may not.
  std::chrono::nanoseconds take(Instant now);

 private:
  std::size_t count_;
  std::chrono::seconds span_;
  std::deque<Instant> taken_;
};

inline constexpr std::size_t nursery_restarts = 5;
inline constexpr std::chrono::seconds nursery_restart_span{60};

/// `start` begins a nursery; its launcher answers with ErrorCode::io once that has gone.
using StartNursery = std::function<base::Expected<std::unique_ptr<Launcher>>()>;

base::Expected<std::unique_ptr<Launcher>> start_reviving(
    StartNursery start, std::function<RestartBudget::Instant()> now = std::chrono::steady_clock::now);

}  // namespace leafcutter::node
