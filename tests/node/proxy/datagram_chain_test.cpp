#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain_rig.hpp"
#include "node/proxy/gilbert_elliott.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::size_t through(DatagramRig& rig, int count) {
  for (int i = 0; i < count; ++i) rig.send("x");
  return rig.left.size();
}

TEST(DatagramChain, DelayIsForEachDatagramAndJitterMayReorder) {
  DatagramRig fixed({fault(Latency{FixedTime{100ms}})});
  fixed.send("a");
  fixed.pass(30ms);
  fixed.send("b");
  fixed.pass(1s);
  EXPECT_THAT(fixed.left, ElementsAre(Left{100ms, "a"}, Left{130ms, "b"}));
  DatagramRig jitter({fault(Jitter{0ms, 100ms})});
  for (char c = 'a'; c <= 'z'; ++c) jitter.send(std::string(1, c));
  jitter.pass(1s);
  EXPECT_THAT(jitter.left, SizeIs(26));
  EXPECT_FALSE(std::is_sorted(jitter.left.begin(), jitter.left.end(),
                              [](const auto& a, const auto& b) { return a.what < b.what; }));
}

TEST(DatagramChain, IndependentLossHasItsRate) {
  DatagramRig rig({fault(Loss{0.2})});
  EXPECT_NEAR(static_cast<double>(through(rig, 10'000)), 8000, 150);
  EXPECT_EQ(rig.log.count("loss") + rig.left.size(), 10'000u);
  DatagramRig none({fault(Loss{0})});
  EXPECT_EQ(through(none, 1000), 1000u);
  EXPECT_THAT(none.log.lines, IsEmpty());
  DatagramRig all({fault(Blackhole{Blackhole::Mode::drop})});
  EXPECT_EQ(through(all, 10), 0u);
}

TEST(DatagramChain, GilbertAndElliottLoseInBurstsOfTheRightLength) {
  // Stationary share of bad: 0.01 / (0.01 + 0.25); mean burst 1 / 0.25.
  Draws draws({1, "l", 1, Direction::to_upstream, "f"}, "value");
  GilbertElliott model({0.01, 0.25, 0, 1});
  int lost = 0, bursts = 0;
  bool before = false;
  constexpr int count = 200'000;
  for (int i = 0; i < count; ++i) {
    const bool loses = model.loses(draws);
    lost += loses;
    bursts += loses && !before;
    before = loses;
  }
  EXPECT_NEAR(static_cast<double>(lost) / count, 0.01 / 0.26, 0.004);
  EXPECT_NEAR(static_cast<double>(lost) / bursts, 4, 0.3);
  DatagramRig rig({fault(BurstLoss{1, 0, 0, 1})});
  EXPECT_EQ(through(rig, 5), 0u);
}

TEST(DatagramChain, DuplicatesAreCopies) {
  DatagramRig rig({fault(Duplicate{2}, {Flow::both, {}, {2, 2}})});
  rig.send("a");
  rig.send("b");
  EXPECT_THAT(rig.texts(), ElementsAre("a", "b", "b", "b"));
}

TEST(DatagramChain, ReorderLetsTheGapPassOrItsTime) {
  DatagramRig rig({fault(Reorder{2, 50ms}, {Flow::both, {}, {1, 1}})});
  for (const auto* text : {"a", "b", "c", "d"}) rig.send(text);
  EXPECT_THAT(rig.texts(), ElementsAre("b", "c", "a", "d"));
  DatagramRig alone({fault(Reorder{2, 50ms})});
  alone.send("a");
  alone.pass(1s);
  EXPECT_THAT(alone.left, ElementsAre(Left{50ms, "a"}));
}

TEST(DatagramChain, BandwidthPacesAndDropsFromTheTail) {
  Bandwidth bandwidth{1000};
  bandwidth.queue_bytes = 500;
  DatagramRig rig({fault(bandwidth)});
  for (int i = 0; i < 10; ++i) rig.send(std::string(100, 'x'));
  rig.pass(10s);
  EXPECT_THAT(rig.left, SizeIs(5));
  EXPECT_EQ(rig.left[0].at, 100ms);
  EXPECT_EQ(rig.left[4].at, 500ms);
}

TEST(DatagramChain, CorruptAndTruncateKeepAndCutSizes) {
  DatagramRig corrupt({fault(Corrupt{{{1, 0x20}, {900, 1}}})});
  corrupt.send("ABC");
  EXPECT_THAT(corrupt.texts(), ElementsAre("AbC"));
  DatagramRig truncate({fault(Truncate{2})});
  truncate.send("ABC");
  truncate.send("A");
  EXPECT_THAT(truncate.texts(), ElementsAre("AB", "A"));
  EXPECT_EQ(truncate.log.count("truncate"), 1u);
}

TEST(DatagramChain, ADatagramDelayedByAnOldSetIsNotLateAfterRecovery) {
  DatagramRig rig({fault(Latency{FixedTime{30s}}), fault(Reorder{5, 30s})});
  rig.send("a");
  rig.replace({});
  EXPECT_THAT(rig.left, ElementsAre(Left{0ms, "a"}));
  EXPECT_TRUE(rig.chain().idle());
  DatagramRig held({fault(Reorder{5, 30s})});
  held.send("b");
  held.replace({});
  EXPECT_THAT(held.left, ElementsAre(Left{0ms, "b"}));
}

TEST(DatagramChain, AFaultThatStaysKeepsItsDatagramsAndDraws) {
  DatagramRig rig({fault(Latency{FixedTime{100ms}})});
  rig.send("a");
  rig.pass(50ms);
  rig.replace({fault(Latency{FixedTime{100ms}}), fault(Loss{0})});
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(Left{100ms, "a"}));
}

TEST(DatagramChain, TheSameSeedLosesTheSame) {
  const auto lost = [](std::uint64_t seed) {
    DatagramRig rig({fault(Loss{0.5})}, {seed});
    for (int i = 0; i < 200; ++i) rig.send(std::to_string(i));
    return rig.texts();
  };
  EXPECT_EQ(lost(1), lost(1));
  EXPECT_NE(lost(1), lost(2));
}

}  // namespace
}  // namespace leafcutter::node::proxy
