#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "chain_rig.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

Latency latency(Duration time) { return {FixedTime{time}}; }

TEST(StreamChain, LatencyCountsFromTheArrivalOfEachChunkAndKeepsTheEndBehind) {
  StreamRig rig({fault(latency(100ms))});
  rig.send("a");
  rig.pass(60ms);
  rig.send("b");
  rig.end();
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(Left{100ms, "a"}, Left{160ms, "b"}, Left{160ms, "<end>"}));
  EXPECT_THAT(rig.log.lines, SizeIs(2));
  EXPECT_EQ(rig.log.lines[1], (StrikeLog::Line{"latency", Direction::to_upstream, 2, 1, 1, 100ms}));
}

TEST(StreamChain, AnIdleTimeBeforeTheBytesDoesNotShortenTheirDelay) {
  StreamRig rig({fault(latency(250ms))});
  rig.pass(300ms);
  rig.send("late");
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(Left{550ms, "late"}));
}

TEST(StreamChain, LatenciesInAChainAddUp) {
  StreamRig rig({fault(latency(40ms)), fault(latency(40ms))});
  rig.send("x");
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(Left{80ms, "x"}));
  EXPECT_EQ(rig.log.count("latency#2"), 1u);
}

TEST(StreamChain, OrderIsKeptWhenALaterChunkDrawsAShorterDelay) {
  StreamRig rig({fault(Jitter{0ms, 100ms})});
  std::string sent;
  for (char c = 'a'; c <= 'z'; ++c) {
    rig.send(std::string(1, c));
    sent += c;
    rig.pass(1ms);
  }
  rig.pass(1s);
  EXPECT_EQ(rig.text(), sent);
}

TEST(StreamChain, ACapBoundsTheTail) {
  StreamRig rig({fault(Latency{ParetoTime{0.1, 50ms}, Latency::Draw::each_chunk, 60ms})});
  for (int i = 0; i < 50; ++i) rig.send("x");
  rig.pass(60ms);
  EXPECT_EQ(rig.text().size(), 50u);
}

TEST(StreamChain, ASpreadIsAroundTheDrawAndNeverBelowZero) {
  const auto delays = [](Latency latency) {
    StreamRig rig({fault(latency)});
    for (int i = 0; i < 200; ++i) {
      rig.send("x");
      rig.pass(1s);
    }
    std::vector<Duration> drawn;
    for (const auto& line : rig.log.lines) drawn.push_back(line.delay);
    std::sort(drawn.begin(), drawn.end());
    return drawn;
  };
  const auto around = delays({.time = FixedTime{100ms}, .spread = 50ms});
  EXPECT_GE(around.front(), 50ms);
  EXPECT_LT(around.front(), 55ms);
  EXPECT_GT(around.back(), 145ms);
  EXPECT_LE(around.back(), 150ms);
  EXPECT_NEAR(static_cast<double>(around[100].count()), 100e6, 15e6);
  const auto below = delays({.time = FixedTime{10ms}, .spread = 90ms});
  EXPECT_EQ(below[50], Duration{0}) << "four in nine are below";
  EXPECT_GT(below[150], 10ms);
}

TEST(StreamChain, FirstBytesAreDelayedOnceAndThenNothingIsInTheWay) {
  StreamRig rig({fault(Latency{FixedTime{100ms}, Latency::Draw::first_bytes})});
  rig.send("a");
  rig.pass(10ms);
  rig.send("b");
  rig.pass(90ms);
  EXPECT_THAT(rig.left, ElementsAre(Left{100ms, "a"}, Left{100ms, "b"}));
  rig.send("c");
  EXPECT_THAT(rig.left, SizeIs(3));
  EXPECT_EQ(rig.log.count("latency"), 1u);
  EXPECT_TRUE(rig.chain().idle());
}

TEST(StreamChain, OneDrawForAConnectionDelaysEveryChunkAlike) {
  StreamRig rig({fault(Latency{UniformTime{10ms, 900ms}, Latency::Draw::connection})});
  rig.send("a");
  rig.pass(1s);
  rig.send("b");
  rig.pass(1s);
  ASSERT_THAT(rig.left, SizeIs(2));
  EXPECT_EQ(rig.left[0].at, rig.left[1].at - 1s);
}

TEST(StreamChain, BandwidthTakesExactlySizeOverRate) {
  StreamRig rig({fault(Bandwidth{100'000})});
  rig.send(std::string(50'000, 'x'));
  rig.pass(250ms);
  EXPECT_NEAR(static_cast<double>(rig.text().size()), 25'000, 500);
  rig.pass(250ms);
  EXPECT_EQ(rig.text().size(), 50'000u);
  EXPECT_EQ(rig.left.back().at, 500ms);
}

TEST(StreamChain, LatencyAndThenBandwidth) {
  StreamRig rig({fault(latency(40ms)), fault(Bandwidth{4096})});
  rig.send(std::string(2048, 'x'));
  rig.pass(2s);
  EXPECT_EQ(rig.left.back().at, 540ms);
}

TEST(StreamChain, BandwidthZeroStallsAndLetsGoWhenRemoved) {
  StreamRig rig({fault(Bandwidth{0})});
  rig.send("stuck");
  rig.pass(1h);
  EXPECT_EQ(rig.text(), "");
  rig.replace({});
  EXPECT_EQ(rig.text(), "stuck");
}

TEST(StreamChain, AStalledBlackholeTakesAPieceAndNoMoreAndDeliversEverythingWhenRemoved) {
  StreamRig rig({fault(Blackhole{})});
  rig.send("held");
  EXPECT_EQ(rig.chain().room(), 0u);
  rig.end();
  rig.pass(1h);
  EXPECT_EQ(rig.text(), "");
  EXPECT_EQ(rig.log.count("blackhole"), 1u);
  rig.replace({});
  EXPECT_THAT(rig.left, ElementsAre(Left{1h, "held"}, Left{1h, "<end>"}));
}

TEST(StreamChain, ADroppingBlackholeLosesBytesForGoodAndTheEndUntilItGoes) {
  StreamRig rig({fault(Blackhole{Blackhole::Mode::drop})});
  rig.send("lost");
  rig.end();
  rig.pass(1h);
  EXPECT_EQ(rig.text(), "");
  rig.replace({});
  EXPECT_EQ(rig.text(), "<end>");
  EXPECT_EQ(rig.log.lines[0].bytes, 4u);
}

TEST(StreamChain, ABlackholeThatClosesWhenRemovedEndsTheConnection) {
  StreamRig rig({fault(Blackhole{Blackhole::Mode::drop, true})});
  rig.send("lost");
  rig.replace({});
  EXPECT_EQ(rig.text(), "<cut>");
}

TEST(StreamChain, LimitCutAndTruncateLetExactlyTheirBytesThrough) {
  StreamRig limit({fault(Limit{5})});
  limit.send("123");
  limit.send("45678");
  limit.send("9");
  EXPECT_EQ(limit.text(), "12345<end>");
  StreamRig cut({fault(Cut{{}, 5, Ending::reset})});
  cut.send("12345");
  EXPECT_EQ(cut.text(), "12345<cut rst>") << "exactly at the limit, not at the byte after it";
  StreamRig truncate({fault(Truncate{5})});
  truncate.send("12345678");
  truncate.end();
  EXPECT_EQ(truncate.text(), "12345<end>");
  EXPECT_EQ(truncate.log.lines[0], (StrikeLog::Line{"truncate", Direction::to_upstream, 1, 5, 3, 0ms}));
}

TEST(StreamChain, BelowTheirLimitTheyTouchNothing) {
  for (const Effect& effect : {Effect{Limit{5}}, Effect{Cut{{}, 5}}, Effect{Truncate{5}}}) {
    StreamRig rig({fault(effect)});
    rig.send("1234");
    rig.end();
    EXPECT_EQ(rig.text(), "1234<end>");
    EXPECT_TRUE(rig.log.lines.empty());
  }
}

TEST(StreamChain, ALimitGoesOnCountingWhenItsValueIsChanged) {
  StreamRig rig({fault(Limit{10}, {}, "l")});
  rig.send("1234");
  rig.replace({fault(Limit{6}, {}, "l")});
  rig.send("56789");
  EXPECT_EQ(rig.text(), "123456<end>");
}

TEST(StreamChain, SliceCutsIntoPiecesWithPauses) {
  StreamRig rig({fault(Slice{3, 0, 10ms})});
  rig.send("abcdefgh");
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(Left{0ms, "abc"}, Left{10ms, "def"}, Left{20ms, "gh"}));
}

TEST(StreamChain, SlicesOfOneByteAreNotMadeAllAtOnce) {
  StreamRig rig({fault(Slice{1, 0, 1ms})});
  rig.send(std::string(1 << 20, 'x'));
  EXPECT_LT(rig.chain().cost(), 512u * (chunk_overhead + 1));
  EXPECT_EQ(rig.chain().room(), 0u);
}

TEST(StreamChain, BitsFlipAtTheirOffsetsWhereverTheChunksEnd) {
  StreamRig rig({fault(Corrupt{{{1, 0x20}, {4, 0x01}}})});
  rig.send("ABC");
  rig.send("DEF");
  EXPECT_EQ(rig.text(), "AbCDDF");
  ASSERT_THAT(rig.log.lines, SizeIs(2));
  EXPECT_EQ(rig.log.lines[1].offset, 4u);
}

TEST(StreamChain, RandomBitsFlipExactlyAsOftenAsTheySay) {
  StreamRig rig({fault(Corrupt{{}, 1})});
  const std::string zeros(1000, '\0');
  rig.send(zeros);
  int bits = 0;
  for (const auto c : rig.text()) bits += __builtin_popcount(static_cast<unsigned char>(c));
  EXPECT_EQ(bits, 1);
  EXPECT_NE(rig.text()[rig.log.lines[0].offset], '\0') << "the journal names the byte";
}

TEST(StreamChain, SlowCloseDelaysTheEndAlone) {
  StreamRig rig({fault(SlowClose{200ms})});
  rig.send("a");
  rig.end();
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(Left{0ms, "a"}, Left{200ms, "<end>"}));
}

TEST(StreamChain, TheReplyIsLostAndOnlyOnTheWayToTheClient) {
  StreamRig down({fault(LoseReply{})}, {1, 1, Direction::to_client});
  down.send("reply");
  EXPECT_EQ(down.text(), "<cut>");
  StreamRig up({fault(LoseReply{})});
  up.send("request");
  EXPECT_EQ(up.text(), "request");
}

TEST(StreamChain, AResetAtTheFirstBytesWaitsItsTime) {
  StreamRig rig({fault(Reset{Side::client, 50ms, Reset::When::first_bytes})});
  rig.pass(1s);
  rig.send("x");
  rig.send("y");
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(Left{1050ms, "<rst client>"}));
}

// --- selectors ---

TEST(Selectors, DirectionConnectionChunksAndBytes) {
  StreamRig other({fault(latency(1s), {Flow::to_client})});
  other.send("x");
  EXPECT_EQ(other.text(), "x");
  EXPECT_TRUE(other.chain().idle());

  for (std::uint64_t connection = 1; connection <= 6; ++connection) {
    StreamRig rig({fault(Blackhole{}, {Flow::both, {2, 4, 2}})}, {1, connection});
    rig.send("x");
    EXPECT_EQ(rig.text(), connection == 2 || connection == 4 ? "" : "x") << connection;
  }

  Selector third;
  third.chunks = {3, 3};
  StreamRig chunks({fault(Blackhole{Blackhole::Mode::drop}, third)});
  for (const auto* text : {"a", "b", "c", "d"}) chunks.send(text);
  EXPECT_EQ(chunks.text(), "abd");
  EXPECT_TRUE(chunks.chain().idle()) << "nothing can be struck any more";

  Selector range;
  range.bytes = {2, 5};
  StreamRig bytes({fault(Blackhole{Blackhole::Mode::drop}, range)});
  bytes.send("0123456789");
  bytes.end();
  EXPECT_EQ(bytes.text(), "0156789<end>");
  EXPECT_TRUE(bytes.chain().idle());
}

TEST(Selectors, ProbabilityZeroTouchesNothingAndIsNotEvenInTheWay) {
  for (const auto draw : {Selector::Draw::connection, Selector::Draw::each_chunk}) {
    Selector never;
    never.probability = 0;
    never.draw = draw;
    StreamRig rig({fault(Blackhole{}, never)});
    rig.send("x");
    EXPECT_EQ(rig.text(), "x");
    EXPECT_TRUE(rig.chain().idle());
    EXPECT_TRUE(rig.log.lines.empty() && rig.log.over.empty());
  }
}

std::string hit_connections(std::uint64_t seed, const std::string& id, bool with_neighbour = false) {
  std::string hits;
  for (std::uint64_t connection = 1; connection <= 64; ++connection) {
    Selector half;
    half.probability = 0.5;
    std::vector<Fault> faults{fault(Blackhole{Blackhole::Mode::drop}, half, id)};
    if (with_neighbour) faults.insert(faults.begin(), fault(latency(0ms), half, "neighbour"));
    StreamRig rig(faults, {seed, connection});
    rig.send("x");
    hits += rig.text().empty() ? '1' : '0';
    EXPECT_EQ(rig.log.over[id], rig.text().empty() ? 0 : 1);
  }
  return hits;
}

TEST(Selectors, TheSameSeedDecidesTheSameAndNeighboursChangeNothing) {
  const auto first = hit_connections(1, "a");
  EXPECT_EQ(first, hit_connections(1, "a"));
  EXPECT_EQ(first, hit_connections(1, "a", true));
  EXPECT_NE(first, hit_connections(2, "a"));
  EXPECT_NE(first, hit_connections(1, "b"));
  EXPECT_GT(std::count(first.begin(), first.end(), '1'), 16);
  EXPECT_LT(std::count(first.begin(), first.end(), '1'), 48);
}

TEST(Selectors, ADrawForEveryChunk) {
  Selector each;
  each.probability = 0.25;
  each.draw = Selector::Draw::each_chunk;
  StreamRig rig({fault(Blackhole{Blackhole::Mode::drop}, each)});
  for (int i = 0; i < 2000; ++i) rig.send("x");
  EXPECT_NEAR(static_cast<double>(rig.text().size()), 1500, 80);
}

// --- replacing the set ---

TEST(Replacing, BytesOfARemovedDelayLeaveAtOnceAndInOrder) {
  StreamRig rig({fault(latency(30s))});
  rig.send("a");
  rig.pass(1ms);
  rig.send("b");
  rig.replace({});
  rig.send("c");
  EXPECT_THAT(rig.left, ElementsAre(Left{1ms, "a"}, Left{1ms, "b"}, Left{1ms, "c"}));
  EXPECT_TRUE(rig.chain().idle());
}

TEST(Replacing, AFaultThatStaysKeepsWhatItHoldsAndItsTime) {
  StreamRig rig({fault(latency(100ms)), fault(Limit{100})});
  rig.send("a");
  rig.pass(50ms);
  rig.replace({fault(latency(100ms)), fault(Slice{10})});
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(Left{100ms, "a"}));
  EXPECT_EQ(rig.log.count("latency"), 1u) << "not drawn again";
}

TEST(Replacing, WhatARemovedFaultHeldPassesTheLaterOnesThatStayAndNoneOfTheNew) {
  StreamRig rig({fault(latency(10s)), fault(Bandwidth{1000})});
  rig.send(std::string(500, 'x'));
  rig.replace({fault(Blackhole{}, {}, "new"), fault(Bandwidth{1000})});
  rig.pass(250ms);
  EXPECT_NEAR(static_cast<double>(rig.text().size()), 250, 10);
  rig.pass(250ms);
  EXPECT_EQ(rig.text().size(), 500u);
  EXPECT_EQ(rig.log.count("new"), 0u);
}

TEST(Replacing, WhatIsDecidedStaysDecidedThoughOthersComeAndGo) {
  const auto first = fault(Latency{FixedTime{100ms}, Latency::Draw::first_bytes}, {}, "first");
  Selector rarely;
  rarely.probability = 1e-9;
  const auto unlucky = fault(Blackhole{}, rarely, "unlucky");
  StreamRig rig({first, unlucky});
  rig.send("a");
  rig.pass(1s);
  rig.replace({first, unlucky, fault(Limit{100})});
  rig.send("b");
  EXPECT_THAT(rig.left, ElementsAre(Left{100ms, "a"}, Left{1s, "b"})) << "the first bytes have been";
  EXPECT_EQ(rig.log.over["unlucky"], 1);
}

TEST(Replacing, FaultsThatChangePlacesLetNoBytesOvertake) {
  const auto slow = fault(latency(100ms), {}, "slow"), slower = fault(latency(200ms), {}, "slower");
  StreamRig rig({slow, slower});
  std::string sent;
  for (int i = 0; i < 40; ++i) {
    const std::string piece(1, static_cast<char>('A' + i));
    rig.send(piece);
    sent += piece;
    rig.pass(17ms);
    rig.replace(i % 3 == 0   ? std::vector<Fault>{slower, slow}
                : i % 3 == 1 ? std::vector<Fault>{slow}
                             : std::vector<Fault>{slow, slower});
  }
  rig.pass(10s);
  EXPECT_EQ(rig.text(), sent);
}

TEST(Replacing, NoBytesAreLostOrReorderedByAnySequenceOfSets) {
  const std::vector<Fault> choices{fault(latency(20ms), {}, "l"),     fault(Bandwidth{10'000}, {}, "b"),
                                   fault(Jitter{0ms, 30ms}, {}, "j"), fault(Slice{3, 1, 1ms}, {}, "s"),
                                   fault(Blackhole{}, {}, "h"),       fault(SlowClose{5ms}, {}, "c"),
                                   fault(latency(5ms), {}, "l2")};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    base::Stream draws(seed, "sets", 0);
    StreamRig rig({});
    std::string sent;
    for (int step = 0; step < 30; ++step) {
      std::vector<Fault> set;
      for (const auto& one : choices)
        if (draws.below(3) == 0) set.insert(set.begin() + static_cast<long>(draws.below(set.size() + 1)), one);
      rig.replace(set);
      std::string bytes;
      for (auto i = draws.below(40); i > 0; --i) bytes += static_cast<char>('a' + draws.below(26));
      const auto room = rig.chain().room();
      bytes.resize(std::min(bytes.size(), room));
      rig.send(bytes);
      sent += bytes;
      rig.pass(std::chrono::milliseconds(draws.below(30)));
    }
    rig.end();
    rig.replace({});
    ASSERT_EQ(rig.text(), sent + "<end>") << "seed " << seed;
    ASSERT_TRUE(rig.chain().idle()) << "seed " << seed;
    ASSERT_EQ(rig.chain().cost(), 0u);
  }
}

// --- filters ---

class Shouter final : public StreamOrDatagramFilter {
 public:
  Filtered arrived(std::string_view bytes) override {
    std::string loud;
    for (const auto c : bytes) loud += static_cast<char>(std::toupper(c));
    return {{{loud, 10ms}}, {{"heard", 5ms}}, bytes == "quit", {{"shouted"}}};
  }
};
class ShouterFactory final : public FilterFactory {
 public:
  std::unique_ptr<StreamOrDatagramFilter> make(const FilterContext& context) const override {
    if (context.direction == Direction::to_client) return nullptr;
    return std::make_unique<Shouter>();
  }
};

TEST(Filters, ChangeDelayAnswerAndClose) {
  StreamRig rig({fault(Filter{std::make_shared<ShouterFactory>()})});
  rig.send("hello");
  rig.pass(1s);
  EXPECT_THAT(rig.left, ElementsAre(Left{10ms, "HELLO"}));
  const auto back = rig.chain().take_back();
  ASSERT_THAT(back, SizeIs(1));
  EXPECT_EQ(back[0].passage.bytes, "heard");
  rig.send("quit");
  rig.pass(1s);
  EXPECT_EQ(rig.text(), "HELLOQUIT<cut>");
  EXPECT_EQ(rig.log.count("filter"), 2u);
  StreamRig other({fault(Filter{std::make_shared<ShouterFactory>()})}, {1, 1, Direction::to_client});
  EXPECT_TRUE(other.chain().idle());
}

}  // namespace
}  // namespace leafcutter::node::proxy
