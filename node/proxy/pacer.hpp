// A token bucket by absolute deadlines (the virtual scheduling form of GCRA, ITU-T I.371): says when bytes will have
// passed, so that neither late wake-ups nor rounding change the rate.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace leafcutter::node::proxy {

using Time = std::chrono::steady_clock::time_point;

class Pacer {
 public:
  /// Credit that lateness (ours, the kernel's, the receiver's) may leave behind; more is forfeited.
  static constexpr auto longest_credit = std::chrono::milliseconds(100);
  static constexpr Time never = Time::max();

  Pacer(std::uint64_t bytes_per_second, std::uint64_t burst_bytes) : rate_(bytes_per_second), burst_(burst_bytes) {}

  /// When `bytes` that have been ready since `ready` will have passed: at or before `now` means at once.
  Time pass(std::uint64_t bytes, Time ready, Time now) {
    if (rate_ == 0) return never;
    const auto begin = std::max(ready, now - longest_credit) - span(burst_);
    if (busy_until_ < begin) {
      busy_until_ = begin;
      remainder_ = 0;
    }
    const auto product = static_cast<Wide>(bytes) * 1'000'000'000 + remainder_;
    remainder_ = static_cast<std::uint64_t>(product % rate_);
    busy_until_ += std::chrono::nanoseconds(static_cast<std::int64_t>(product / rate_));
    return busy_until_;
  }

  /// What passes in about 5 ms, but between a byte and 256 KiB: smooth for the receiver, cheap for us.
  std::uint64_t quantum() const { return std::clamp<std::uint64_t>(rate_ / 200, 1, 256 << 10); }
  std::uint64_t rate() const { return rate_; }
  /// Bytes that have been accepted and have not passed yet.
  std::uint64_t backlog(Time now) const {
    if (rate_ == 0 || busy_until_ <= now) return 0;
    const auto wait = static_cast<Wide>((busy_until_ - now).count());
    return static_cast<std::uint64_t>(wait * rate_ / 1'000'000'000);
  }
  void change(std::uint64_t bytes_per_second, std::uint64_t burst_bytes) {
    rate_ = bytes_per_second;
    burst_ = burst_bytes;
    remainder_ = 0;
  }

 private:
  __extension__ using Wide = unsigned __int128;
  std::chrono::nanoseconds span(std::uint64_t bytes) const {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<Wide>(bytes) * 1'000'000'000 / rate_));
  }

  std::uint64_t rate_, burst_;
  Time busy_until_{};
  std::uint64_t remainder_ = 0;  ///< of the last division, in byte-nanoseconds
};

/// One rate for several connections, which may be on several threads.
class SharedPacer {
 public:
  SharedPacer(std::uint64_t rate, std::uint64_t burst) : pacer_(rate, burst) {}
  Time pass(std::uint64_t bytes, Time ready, Time now) {
    const std::lock_guard lock(mutex_);
    return pacer_.pass(bytes, ready, now);
  }
  std::uint64_t backlog(Time now) const {
    const std::lock_guard lock(mutex_);
    return pacer_.backlog(now);
  }
  std::uint64_t quantum() const {
    const std::lock_guard lock(mutex_);
    return pacer_.quantum();
  }
  void change(std::uint64_t rate, std::uint64_t burst) {
    const std::lock_guard lock(mutex_);
    pacer_.change(rate, burst);
  }

 private:
  mutable std::mutex mutex_;
  Pacer pacer_;
};

}  // namespace leafcutter::node::proxy
