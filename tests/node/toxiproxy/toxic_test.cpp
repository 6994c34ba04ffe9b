// What each toxic does to connections, with Toxiproxy's units and documented semantics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "rig.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

using proxy::Clock;
using proxy::echo;
using proxy::slowness;

/// A proxy "db" to an upstream that does `serve`.
struct Line {
  explicit Line(Upstream::Serve serve = echo, ServiceOptions options = {})
      : upstream(std::move(serve)), rig(std::move(options)), listen(rig.proxy("db", upstream.address())) {}

  void toxic(const std::string& type, const std::string& attributes, const std::string& more = {}) const {
    rig.toxic("db", type, attributes, more);
  }
  /// A connection that is open on both sides.
  Peer connection() const {
    auto peer = Peer::dial(listen);
    peer.send("?");
    EXPECT_EQ(peer.receive(1), "?");
    return peer;
  }
  void update(const std::string& toxic, const std::string& body) const {
    rig.expect(200, "PATCH", "/proxies/db/toxics/" + toxic, body);
  }

  Upstream upstream;
  ApiRig rig;
  std::string listen;
};

constexpr auto upstream_way = R"("stream":"upstream")";

TEST(Toxics, LatencyDelaysOneWayFromTheArrivalOfTheBytes) {
  for (const std::string stream : {"upstream", "downstream"}) {
    Line line;
    auto peer = line.connection();
    line.toxic("latency", R"("latency":100)", R"("stream":")" + stream + "\"");
    const auto once = round_trip(peer);
    EXPECT_GE(once, 100ms);
    EXPECT_LT(once, 100ms + 60ms * slowness) << stream << ": one way, not both";
    // Delays of different bytes overlap: ten bytes, 10 ms apart, are back 100 ms after the last was sent.
    const auto begin = Clock::now();
    for (int i = 0; i < 10; ++i) {
      peer.send("y");
      EXPECT_TRUE(peer.quiet_for(10ms) || i > 5);
    }
    EXPECT_EQ(peer.receive(10), "yyyyyyyyyy");
    EXPECT_LT(Clock::now() - begin, 100ms + 10 * 10ms + 80ms * slowness) << stream;
  }
}

TEST(Toxics, JitterSpreadsTheLatencyOnBothSidesAndNeverBelowZero) {
  Line line;
  auto peer = line.connection();
  line.toxic("latency", R"("latency":20,"jitter":15)");
  auto least = proxy::Duration::max(), most = proxy::Duration::zero();
  for (int i = 0; i < 30; ++i) {
    const auto took = round_trip(peer);
    least = std::min(least, took), most = std::max(most, took);
  }
  EXPECT_GE(least, 5ms);
  EXPECT_LT(least, 15ms + 20ms * (slowness - 1));
  EXPECT_GT(most, 25ms);
  line.update("latency_downstream", R"({"attributes":{"latency":1,"jitter":)" + std::to_string(30 * slowness) + "}}");
  int quick = 0;
  for (int i = 0; i < 30; ++i) quick += round_trip(peer) < 3ms * slowness ? 1 : 0;
  EXPECT_GT(quick, 3) << "about half of the draws are negative, and mean no delay";
  EXPECT_LT(quick, 28);
}

TEST(Toxics, BandwidthIsThousandsOfBytesPerSecond) {
  Line line([](Peer& peer) {
    peer.receive(1);
    peer.send(std::string(50'000, 'b'));
  });
  line.toxic("bandwidth", R"("rate":100)");
  auto a = Peer::dial(line.listen), b = Peer::dial(line.listen);
  const auto begin = Clock::now();
  a.send("?"), b.send("?");
  EXPECT_EQ(a.receive(50'000).size(), 50'000U);
  EXPECT_EQ(b.receive(50'000).size(), 50'000U);
  const auto took = Clock::now() - begin;
  EXPECT_GE(took, 495ms);
  EXPECT_LT(took, 600ms * slowness) << "each connection has the rate for itself";
}

TEST(Toxics, BandwidthMayBeSharedByTheProxy) {
  Line line([](Peer& peer) {
    peer.receive(1);
    peer.send(std::string(25'000, 'b'));
  });
  line.toxic("bandwidth", R"("rate":100,"shared":1)");
  EXPECT_EQ(line.rig.expect(200, "GET", "/proxies/db/toxics/bandwidth_downstream").json()["attributes"].dump(),
            R"({"rate":100,"shared":1})");
  auto a = Peer::dial(line.listen), b = Peer::dial(line.listen);
  const auto begin = Clock::now();
  a.send("?"), b.send("?");
  EXPECT_EQ(a.receive(25'000).size(), 25'000U);
  EXPECT_EQ(b.receive(25'000).size(), 25'000U);
  EXPECT_GE(Clock::now() - begin, 495ms);
}

TEST(Toxics, ABandwidthOfZeroStallsUntilItIsRemoved) {
  Line line;
  auto peer = line.connection();
  line.toxic("bandwidth", R"("rate":0)");
  peer.send("x");
  EXPECT_TRUE(peer.quiet_for(150ms));
  line.rig.remove_toxic("db", "bandwidth_downstream");
  EXPECT_EQ(peer.receive(1), "x");
}

TEST(Toxics, SlowCloseDelaysTheEndAlone) {
  Line line([](Peer& peer) {
    peer.receive(1);
    peer.send("data");
  });
  line.toxic("slow_close", R"("delay":200)");
  auto peer = Peer::dial(line.listen);
  const auto begin = Clock::now();
  peer.send("?");
  EXPECT_EQ(peer.receive(4), "data");
  EXPECT_LT(Clock::now() - begin, 100ms * slowness);
  EXPECT_EQ(ending_soon(peer), "end");
  EXPECT_GE(Clock::now() - begin, 200ms);
}

TEST(Toxics, TimeoutDropsEverythingAndThenCloses) {
  Line line;
  auto peer = line.connection();
  const auto begin = Clock::now();
  line.toxic("timeout", R"("timeout":200)");
  peer.send("lost");
  EXPECT_EQ(peer.receive_all(), "");
  EXPECT_EQ(ending_soon(peer), "end");
  EXPECT_GE(Clock::now() - begin, 200ms);
  EXPECT_LT(Clock::now() - begin, 400ms * slowness);
}

TEST(Toxics, TimeoutIsNotReArmedByTraffic) {
  Line line;
  auto peer = line.connection();
  line.toxic("timeout", R"("timeout":250)", upstream_way);
  const auto begin = Clock::now();
  std::size_t sent = 0;
  while (Clock::now() - begin < 5s) {
    if (!peer.quiet_for(40ms)) break;
    peer.try_send("x");
    ++sent;
  }
  EXPECT_GE(sent, 3U) << "there was traffic";
  EXPECT_EQ(ending_soon(peer), "end");
  EXPECT_LT(Clock::now() - begin, 450ms * slowness);
}

TEST(Toxics, ATimeoutOfZeroNeverClosesAndRemovingItDoes) {
  Line line;
  auto peer = line.connection();
  line.toxic("timeout", R"("timeout":0)");
  peer.send("lost");
  EXPECT_TRUE(peer.quiet_for(300ms));
  // Other values are no removal, and neither is a neighbour's.
  line.update("timeout_downstream", R"({"attributes":{"timeout":60000}})");
  line.toxic("latency", R"("latency":1)");
  line.rig.remove_toxic("db", "latency_downstream");
  EXPECT_TRUE(peer.quiet_for(100ms));
  line.rig.remove_toxic("db", "timeout_downstream");
  EXPECT_FALSE(peer.quiet_for(5s));
  EXPECT_EQ(peer.receive_all(), "") << "what was dropped is lost";
  EXPECT_EQ(ending_soon(peer), "end");
}

TEST(Toxics, RemovingATimeoutSparesConnectionsItDidNotTouch) {
  Line line;
  line.toxic("timeout", "", R"("toxicity":0)");
  auto peer = line.connection();
  line.rig.remove_toxic("db", "timeout_downstream");
  EXPECT_LT(round_trip(peer), 5s);
}

TEST(Toxics, ResetPeerResetsBothSides) {
  std::atomic<bool> upstream_was_reset{false};
  Line line([&](Peer& peer) {
    peer.receive(1);
    peer.try_send("?");
    upstream_was_reset = peer.ending() == "ECONNRESET";
  });
  auto peer = line.connection();
  line.toxic("reset_peer", "");
  EXPECT_EQ(peer.ending(), "ECONNRESET") << "at once, although it is idle and was open already";
  EXPECT_TRUE(eventually([&] { return upstream_was_reset.load(); }));
  auto fresh = Peer::dial(line.listen);
  EXPECT_EQ(fresh.ending(), "ECONNRESET");
}

TEST(Toxics, ResetPeerWaitsForItsTimeout) {
  Line line;
  line.toxic("reset_peer", R"("timeout":200)");
  const auto begin = Clock::now();
  auto peer = line.connection();
  EXPECT_EQ(peer.ending(), "ECONNRESET");
  EXPECT_GE(Clock::now() - begin, 200ms);
  EXPECT_LT(Clock::now() - begin, 400ms * slowness);
}

TEST(Toxics, SlicerCutsAndPausesAndChangesNothing) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + i % 26);
  Line line([&](Peer& peer) {
    peer.receive(1);
    peer.send(text);
  });
  line.toxic("slicer", R"("average_size":100,"size_variation":50,"delay":10000)");
  auto peer = Peer::dial(line.listen);
  const auto begin = Clock::now();
  peer.send("?");
  EXPECT_EQ(peer.receive(2000), text);
  // 2000 bytes in pieces of 50 to 150: at least 14, with pauses of 10 ms between them.
  EXPECT_GE(Clock::now() - begin, 120ms);
}

TEST(Toxics, ASlicerWithoutASizeCutsNothing) {
  Line line;
  line.toxic("slicer", R"("delay":1000000)");
  auto peer = line.connection();
  EXPECT_LT(round_trip(peer), 900ms);
}

TEST(Toxics, LimitDataClosesAtExactlyThatManyBytes) {
  Line line([](Peer& peer) {
    peer.receive(1);
    peer.send(std::string(100'000, 'd'));
    peer.receive_all();
  });
  line.toxic("limit_data", R"("bytes":12345)");
  auto peer = Peer::dial(line.listen);
  const auto begin = Clock::now();
  peer.send("?");
  EXPECT_EQ(peer.receive_all().size(), 12345U);
  EXPECT_LT(Clock::now() - begin, 5s) << "by our closing, not by the upstream's deadline";
  EXPECT_EQ(ending_soon(peer), "end");
}

TEST(Toxics, LimitDataGoesOnCountingWhenItIsChanged) {
  Line line;
  line.toxic("limit_data", R"("bytes":1000)");
  auto peer = Peer::dial(line.listen);
  peer.send(std::string(60, 'a'));
  EXPECT_EQ(peer.receive(60).size(), 60U);
  line.update("limit_data_downstream", R"({"attributes":{"bytes":100}})");
  line.toxic("latency", R"("latency":1)");
  line.rig.remove_toxic("db", "latency_downstream");
  const auto begin = Clock::now();
  peer.send(std::string(60, 'b'));
  EXPECT_EQ(peer.receive_all().size(), 40U);
  EXPECT_LT(Clock::now() - begin, 5s);
  EXPECT_EQ(ending_soon(peer), "end");
}

TEST(Toxics, NoopDoesNothing) {
  Line line;
  line.toxic("noop", "");
  auto peer = line.connection();
  EXPECT_LT(round_trip(peer), 5s);
  EXPECT_EQ(line.rig.stats("db").strikes, 0U);
}

TEST(Toxics, TheyAreChainedInTheOrderTheyWereAdded) {
  Line line([](Peer& peer) {
    peer.receive(1);
    peer.send(std::string(1000, 'd'));
    peer.receive_all();
  });
  line.toxic("latency", R"("latency":100)", R"("name":"one")");
  line.toxic("latency", R"("latency":100)", R"("name":"two")");
  line.toxic("limit_data", R"("bytes":10)");
  auto peer = Peer::dial(line.listen);
  const auto begin = Clock::now();
  peer.send("?");
  EXPECT_EQ(peer.receive_all().size(), 10U);
  EXPECT_GE(Clock::now() - begin, 200ms);
}

// --- toxicity ---

/// For each of 24 connections: '1' when it was reset.
std::string resets(const Line& line) {
  std::string drawn;
  for (int i = 0; i < 24; ++i) {
    auto peer = Peer::dial(line.listen);
    peer.try_send("x");
    drawn += peer.receive(1) == "x" ? '0' : '1';
  }
  return drawn;
}

ServiceOptions with_seed(std::uint64_t seed) {
  ServiceOptions options;
  options.engine.seed = seed;
  return options;
}

TEST(Toxicity, IsDrawnForEachConnectionFromTheSeed) {
  std::set<std::string> sequences;
  for (const std::uint64_t seed : {1, 2, 99}) {
    std::string first;
    for (int run = 0; run < 2; ++run) {
      Line line(echo, with_seed(seed));
      line.toxic("reset_peer", "", R"("toxicity":0.5)");
      const auto drawn = resets(line);
      if (run == 0) first = drawn;
      EXPECT_EQ(drawn, first) << "seed " << seed;
    }
    EXPECT_THAT(first, testing::HasSubstr("1"));
    EXPECT_THAT(first, testing::HasSubstr("0"));
    sequences.insert(first);
  }
  EXPECT_EQ(sequences.size(), 3U) << "the seed is not looked at";
}

TEST(Toxicity, OfZeroTouchesNothing) {
  for (const auto* type : {"reset_peer", "timeout", "latency", "limit_data", "slow_close", "slicer", "bandwidth"}) {
    Line line;
    line.toxic(type, "", R"("toxicity":0)");
    for (int i = 0; i < 5; ++i) {
      auto peer = line.connection();
      EXPECT_LT(round_trip(peer), 5s) << type;
    }
    EXPECT_EQ(line.rig.stats("db").strikes, 0U) << type;
  }
}

TEST(Toxicity, StaysWhenANeighbourChanges) {
  Line line(echo, with_seed(5));
  line.toxic("latency", R"("latency":60)", R"("toxicity":0.5,"name":"lag")");
  std::vector<Peer> peers;
  std::vector<bool> slow;
  for (int i = 0; i < 16; ++i) {
    peers.push_back(Peer::dial(line.listen));
    slow.push_back(round_trip(peers.back()) >= 60ms);
  }
  EXPECT_THAT(slow, testing::Contains(true));
  EXPECT_THAT(slow, testing::Contains(false));
  for (int change = 0; change < 3; ++change) {
    if (change == 0) line.toxic("slicer", R"("average_size":1000)");
    if (change == 1) line.update("slicer_downstream", R"({"attributes":{"average_size":999}})");
    if (change == 2) line.rig.remove_toxic("db", "slicer_downstream");
    for (std::size_t i = 0; i < peers.size(); ++i)
      EXPECT_EQ(round_trip(peers[i]) >= 60ms, slow[i]) << "connection " << i << ", change " << change;
  }
  // Other values of its own change what is done, not to whom.
  line.update("lag", R"({"attributes":{"latency":80}})");
  for (std::size_t i = 0; i < peers.size(); ++i) EXPECT_EQ(round_trip(peers[i]) >= 80ms, slow[i]) << i;
}

// --- only ---

TEST(Only, TheFirstConnectionsFailAndTheOthersDoNot) {
  Line line;
  line.toxic("reset_peer", "", R"("only":{"connections":{"last":3}})");
  EXPECT_EQ(resets(line), "111000000000000000000000");
  EXPECT_EQ(line.rig.expect(200, "GET", "/proxies/db/toxics/reset_peer_downstream").json()["only"].dump(),
            R"({"connections":{"first":1,"last":3,"every":1}})");
}

TEST(Only, ConnectionsCountFromWhenTheToxicWasAdded) {
  Line line;
  for (int i = 0; i < 5; ++i) line.connection();
  line.toxic("reset_peer", "", R"("only":{"connections":{"last":2}})");
  EXPECT_EQ(resets(line).substr(0, 4), "1100");
  line.update("reset_peer_downstream", R"({"attributes":{"timeout":0}})");
  EXPECT_EQ(resets(line).substr(0, 4), "0000") << "other attributes do not begin anew";
  line.update("reset_peer_downstream", R"({"only":{"connections":{"first":2,"last":3}}})");
  EXPECT_EQ(resets(line).substr(0, 4), "0110");
}

TEST(Only, EveryNthConnection) {
  Line line;
  line.toxic("reset_peer", "", R"("only":{"connections":{"first":2,"every":4,"last":12}})");
  EXPECT_EQ(resets(line), "010001000100000000000000");
}

TEST(Only, PeersByTheirAddress) {
  Line line;
  line.toxic("reset_peer", "", R"("only":{"peers":["10.0.0.0/8","::1"]})");
  auto spared = line.connection();
  EXPECT_LT(round_trip(spared), 5s);
  line.update("reset_peer_downstream", R"({"only":{"peers":["127.0.0.0/8"]}})");
  EXPECT_EQ(spared.ending(), "ECONNRESET");
}

}  // namespace
}  // namespace leafcutter::node::toxiproxy
