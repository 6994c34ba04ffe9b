// Bytes that wait in pipes while a fault delays them: they arrive as they were, whatever comes between, and pipes are
// bounded and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "chain_rig.hpp"
#include "loopback.hpp"

namespace leafcutter::node::proxy {
namespace {

constexpr std::size_t megabyte = 1 << 20;

/// No two places look alike for long.
std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (auto& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

/// Sends all and receives at the same time what the upstream echoes.
std::string there_and_back(Peer& client, const std::string& bytes) {
  std::thread sender([&] {
    client.send(bytes);
    client.finish_sending();
  });
  auto back = client.receive_all();
  sender.join();
  return back;
}

TEST(HeldBytes, UnderALatencyTheyAreSplicedAndArriveAsTheyWere) {
  const auto bytes = pattern(24 * megabyte);
  for (const bool splice : {true, false}) {
    EngineOptions options;
    options.splice = splice;
    Rig rig(std::move(options));
    Upstream upstream(echo);
    auto client =
        Peer::dial(rig.link("l", upstream.address(), {fault(Latency{FixedTime{5ms}}), fault(Bandwidth{400'000'000})}));
    EXPECT_TRUE(there_and_back(client, bytes) == bytes) << splice;
    const auto spliced = rig.stats("l").spliced_bytes;
    if (splice)
      EXPECT_GT(spliced, bytes.size()) << "most of what went there and back";
    else
      EXPECT_EQ(spliced, 0u);
    EXPECT_TRUE(eventually([&] { return rig.stats("l").held_bytes == 0; }));
  }
}

TEST(HeldBytes, AFaultThatLooksAtBytesGetsThemInMemory) {
  const auto bytes = pattern(6 * megabyte);
  const auto slow = fault(Latency{FixedTime{10s}}, Flow::to_upstream);
  Corrupt flips;
  flips.flips = {{3 * megabyte + 17, 0x40}};
  std::string arrived;
  std::atomic<bool> complete{false};
  {
    Rig rig;
    Upstream upstream([&](Peer& peer) {
      arrived = peer.receive(bytes.size());
      complete = true;
    });
    auto client = Peer::dial(rig.link("l", upstream.address(), {slow}));
    client.send(bytes);
    EXPECT_TRUE(eventually([&] { return rig.stats("l").held_bytes >= bytes.size(); }));
    // What the latency holds passes the faults behind it when its time has come, or when it goes.
    rig.set("l", {slow, fault(flips, Flow::to_upstream), fault(Latency{FixedTime{1ms}}, Flow::to_upstream)});
    rig.set("l", {fault(flips, Flow::to_upstream), fault(Latency{FixedTime{1ms}}, Flow::to_upstream)});
    EXPECT_TRUE(eventually([&] { return complete.load(); }));
    EXPECT_LT(rig.stats("l").spliced_bytes, megabyte) << "what was looked at is in memory";
    EXPECT_EQ(rig.stats("l").faults.at("corrupt").strikes, 1u);
  }
  ASSERT_EQ(arrived.size(), bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (arrived[i] != bytes[i]) {
      EXPECT_EQ(i, 3 * megabyte + 17);
      EXPECT_EQ(arrived[i] ^ bytes[i], 0x40);
    }
  EXPECT_NE(arrived[3 * megabyte + 17], bytes[3 * megabyte + 17]);
}

TEST(HeldBytes, SomeInPipesAndSomeInMemoryKeepTheirOrder) {
  Rig rig;
  Upstream upstream(echo);
  auto client = Peer::dial(rig.link("l", upstream.address(), {fault(Latency{FixedTime{30ms}})}));
  std::string sent;
  std::thread sender([&] {
    for (int i = 0; i < 40; ++i) {
      const auto part = pattern(i % 2 == 0 ? 300'000 : 7);
      client.send(part);
      sent += part;
    }
    client.finish_sending();
  });
  const auto back = client.receive_all();
  sender.join();
  EXPECT_TRUE(back == sent);
  EXPECT_GT(rig.stats("l").spliced_bytes, sent.size() / 4);
}

TEST(HeldBytes, AConnectionThatEndsGivesItsPipesBack) {
  Rig rig;
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address(), {fault(Latency{FixedTime{1h}})});
  const auto bytes = pattern(4 * megabyte);
  // Far more than there may be pipes at a time.
  for (int turn = 0; turn < 100; ++turn) {
    auto client = Peer::dial(address);
    client.send(bytes);
    EXPECT_TRUE(eventually([&] { return rig.stats("l").held_bytes >= bytes.size(); }));
    client.reset();
    rig.set("l", {fault(Reset{Side::both})});
    EXPECT_TRUE(eventually([&] { return rig.stats("l").active == 0; }));
    rig.set("l", {fault(Latency{FixedTime{1h}})});
  }
  rig.set("l", {fault(Latency{FixedTime{2ms}})});
  const auto before = rig.stats("l").spliced_bytes;
  auto client = Peer::dial(address);
  EXPECT_TRUE(there_and_back(client, bytes) == bytes);
  EXPECT_GT(rig.stats("l").spliced_bytes - before, megabyte) << "there are pipes still";
}

TEST(HeldBytes, PipesAreBoundedAndOnlyEmptyOnesGoRound) {
  PipePool pool;
  std::vector<Pipe> taken;
  while (auto pipe = pool.take()) {
    taken.push_back(std::move(*pipe));
    ASSERT_LE(taken.size(), 128u);
  }
  EXPECT_GE(taken.size(), 4u);
  auto used = std::move(taken.back());
  taken.pop_back();
  used.bytes = 1;
  pool.give_back(std::move(used));
  const auto fresh = pool.take();
  ASSERT_TRUE(fresh) << "one less is there";
  EXPECT_EQ(fresh->bytes, 0u);
  EXPECT_FALSE(pool.take());
  auto& empty = taken.back();
  const int empty_fd = empty.in.get();
  pool.give_back(std::move(empty));
  taken.pop_back();
  EXPECT_EQ(pool.take()->in.get(), empty_fd) << "an empty one goes round";
}

/// A connection's chain under a clock of its own, with bytes that came through a pipe.
TEST(HeldBytes, ReplacingTheSetLoadsFromTheFirstBytesOn) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const base::UniqueFd writer(ends[0]), reader(ends[1]);
  const auto pool = std::make_shared<PipePool>();
  StreamRig rig({{"a", {}, Latency{FixedTime{10ms}}}, {"b", {}, Latency{FixedTime{10ms}}}});
  auto pipe = HeldPipe::from(pool);
  ASSERT_TRUE(pipe);
  std::uint64_t offset = 0;
  const auto hold = [&](std::string_view bytes) {
    ASSERT_EQ(::send(writer.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ASSERT_EQ(pipe->fill_from(reader.get(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    Chunk chunk;
    chunk.pipe = pipe;
    chunk.size = bytes.size();
    chunk.offset = std::exchange(offset, offset + bytes.size());
    chunk.arrived = rig.now();
    rig.chain().push(std::move(chunk), rig.now());
  };
  EXPECT_TRUE(rig.chain().only_delays());
  hold("one ");
  rig.pass(11ms);  // in b
  hold("two ");    // in a
  rig.pass(1ms);
  rig.replace({{"a", {}, Latency{FixedTime{10ms}}},
               {"flip", {}, Corrupt{{{0, 0x20}, {4, 0x20}}}},
               {"b", {}, Latency{FixedTime{10ms}}}});
  EXPECT_FALSE(rig.chain().only_delays());
  EXPECT_EQ(pipe->bytes(), 0u);
  rig.pass(30ms);
  EXPECT_EQ(rig.text(), "one Two ") << "what b held was past the new fault already";
}

}  // namespace
}  // namespace leafcutter::node::proxy
