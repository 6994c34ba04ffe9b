// Lets time pass where time itself is what is meant: between the datagrams of a sender that keeps a rate, or beside
// what is measured. Whoever waits for something to happen waits for that, with a deadline.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace leafcutter::tests {

/// Until then at the earliest, by the kernel's timer; a signal may end it before.
inline void pace_until(std::chrono::steady_clock::time_point when) {
  const auto left = std::max<std::chrono::nanoseconds>(when - std::chrono::steady_clock::now(), {});
  const timespec span{static_cast<time_t>(left.count() / 1'000'000'000),
                      static_cast<long>(left.count() % 1'000'000'000)};
  ::ppoll(nullptr, 0, &span, nullptr);
}

inline void pace(std::chrono::nanoseconds span) { pace_until(std::chrono::steady_clock::now() + span); }

}  // namespace leafcutter::tests
