#include "node/proxy/pacer.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "node/proxy/timer_heap.hpp"

namespace leafcutter::node::proxy {
namespace {

using namespace std::chrono_literals;
constexpr Time start = Time{} + std::chrono::hours(1000);

/// Sends for ten seconds of virtual time, each wake-up late by up to `late`; what came through in a second.
double rate_with_late_wakeups(std::uint64_t rate, std::chrono::microseconds late) {
  Pacer pacer(rate, 0);
  base::Stream draws(rate, "late", 0);
  std::uint64_t bytes = 0;
  Time now = start;
  while (now < start + 10s) {
    const auto size = pacer.quantum();
    const auto due = pacer.pass(size, start, now);
    if (due > now)
      now = due + std::chrono::nanoseconds(draws.below(static_cast<std::uint64_t>(late.count()) * 1000 + 1));
    bytes += size;
  }
  return static_cast<double>(bytes) / std::chrono::duration<double>(now - start).count();
}

TEST(Pacer, KeepsItsRateThoughEveryWakeUpIsLate) {
  for (const std::uint64_t rate : {1'000ULL, 10'000ULL, 1'000'000ULL, 30'000'000ULL, 200'000'000ULL})
    EXPECT_NEAR(rate_with_late_wakeups(rate, 2ms) / static_cast<double>(rate), 1, 0.02) << rate;
}

TEST(Pacer, TenBytesASecondTakeATenthEach) {
  Pacer pacer(10, 0);
  EXPECT_EQ(pacer.pass(1, start, start), start + 100ms);
  EXPECT_EQ(pacer.pass(1, start, start), start + 200ms);
}

TEST(Pacer, NoCreditForIdleTimeBeyondTheBurst) {
  Pacer pacer(1000, 500);
  EXPECT_LE(pacer.pass(500, start, start), start) << "the burst passes at once";
  EXPECT_EQ(pacer.pass(1000, start, start), start + 1s);
  const auto later = start + 1h;
  EXPECT_EQ(pacer.pass(1500, later, later), later + 1s) << "the burst has come back, and no more than it";
}

TEST(Pacer, AReceiverThatStoppedLeavesNoMoreThanATenthOfASecond) {
  Pacer pacer(1000, 0);
  (void)pacer.pass(10, start, start);
  const auto later = start + 1min;
  EXPECT_EQ(pacer.pass(200, start, later), later + 100ms);
}

TEST(Pacer, RateZeroStallsAndRoundingLosesNothing) {
  Pacer none(0, 0);
  EXPECT_EQ(none.pass(1, start, start), Pacer::never);
  Pacer third(3, 0);
  Time due{};
  for (int i = 0; i < 300; ++i) due = third.pass(1, start, start);
  EXPECT_EQ(due, start + 100s);
}

TEST(Pacer, BacklogIsWhatHasNotPassed) {
  Pacer pacer(1000, 0);
  EXPECT_EQ(pacer.backlog(start), 0u);
  (void)pacer.pass(600, start, start);
  EXPECT_EQ(pacer.backlog(start), 600u);
  EXPECT_EQ(pacer.backlog(start + 500ms), 100u);
}

class Alarm final : public Timed {
 public:
  void due(Time) override { ++rang; }
  int rang = 0;
};

TEST(TimerHeap, GivesTheEarliestWhateverWasSetMovedAndCleared) {
  TimerHeap heap;
  std::vector<Alarm> alarms(200);
  std::vector<std::optional<Time>> expected(alarms.size());
  base::Stream draws(7, "timers", 0);
  for (int i = 0; i < 5000; ++i) {
    const auto which = draws.below(alarms.size());
    if (draws.below(4) == 0) {
      heap.clear(alarms[which]);
      expected[which].reset();
    } else {
      expected[which] = start + std::chrono::nanoseconds(draws.below(1000));
      heap.set(alarms[which], *expected[which]);
    }
    std::optional<Time> least;
    for (const auto& one : expected)
      if (one && (!least || *one < *least)) least = one;
    ASSERT_EQ(heap.earliest(), least);
  }
  EXPECT_EQ(heap.pop_due(start - 1ns), nullptr);
  std::size_t popped = 0;
  const auto size = heap.size();
  while (heap.pop_due(start + 1s) != nullptr) ++popped;
  EXPECT_EQ(popped, size);
}

}  // namespace
}  // namespace leafcutter::node::proxy
