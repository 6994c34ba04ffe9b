// What earlier fault proxies got wrong about time and rates: delays that began before the bytes came, rates that were
// missed, errors that added up. predecessors_index_test.cpp says which defect is whose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <limits>

#include "chain_rig.hpp"
#include "loopback.hpp"
#include "tests/support/pace.hpp"

namespace leafcutter::node::proxy {
namespace {

TEST(Predecessors, LatencyCountsFromTheArrivalWhateverTheIdleTime) {
  Rig rig;
  Upstream upstream(echo);
  std::vector<std::thread> cases;
  for (const auto flow : {Flow::to_upstream, Flow::to_client})
    for (const Effect& effect : {Effect(Latency{FixedTime{250ms}}), Effect(Jitter{250ms, 250ms})})
      for (const auto idle : {0ms, 100ms, 300ms}) {
        const auto name =
            std::string(kind_of(effect)) + (flow == Flow::to_client ? " down " : " up ") + std::to_string(idle.count());
        const auto address = rig.link(name, upstream.address(), {fault(effect, flow)});
        cases.emplace_back([&rig, name, address, idle] {
          auto client = Peer::dial(address);
          EXPECT_TRUE(client.quiet_for(idle));
          const auto took = round_trip(client);
          EXPECT_GE(took, 250ms) << name;
          EXPECT_LT(took, 250ms + 100ms * slowness) << name;
          const auto stats = rig.stats(name);
          ASSERT_EQ(stats.faults.size(), 1u);
          EXPECT_EQ(stats.faults.begin()->second.strikes, 1u) << name;
          EXPECT_EQ(stats.faults.begin()->second.delay, 250ms) << name << ": what is said is what was done";
        });
      }
  for (auto& one : cases) one.join();
}

/// Bytes a second from before they are sent until the last one is there, over what was asked for; a whole second's, or
/// 100 MB. A machine that is busy can make that less, and never more.
double rate_seen(std::uint64_t rate) {
  const auto size = std::min<std::uint64_t>(rate, 100'000'000);
  std::atomic<Clock::rep> end{0};
  Rig rig;
  Upstream upstream([&](Peer& peer) {
    std::vector<char> room(256 << 10);
    for (std::uint64_t got = 0; got < size;) {
      const auto more = ::recv(peer.fd(), room.data(), room.size(), 0);
      if (more <= 0) return;
      got += static_cast<std::uint64_t>(more);
    }
    end = Clock::now().time_since_epoch().count();
  });
  auto client = Peer::dial(rig.link("l", upstream.address(), {fault(Bandwidth{rate}, Flow::to_upstream)}));
  const std::string bytes(size, 'x');
  const auto begin = Clock::now();
  client.send(bytes);
  EXPECT_TRUE(eventually([&] { return end != 0; }, 30s)) << rate;
  const auto took = std::chrono::duration<double>(Clock::time_point(Clock::duration(end)) - begin).count();
  return static_cast<double>(size) / took / static_cast<double>(rate);
}

TEST(Predecessors, BandwidthIsWithinTwoPercentFromAKilobyteToTwoHundredMegabytesASecond) {
  const auto kept = [](std::uint64_t rate) {
    double best = 0;
    for (int attempt = 0; attempt < 8 && best < 0.98; ++attempt) {
      const auto seen = rate_seen(rate);
      EXPECT_LT(seen, 1.02) << rate << ": never faster";
      best = std::max(best, seen);
    }
    EXPECT_GT(best, 0.98) << rate;
  };
  // The slow rates hardly need the machine.
  std::vector<std::thread> slow;
  for (const std::uint64_t rate : {1'000ULL, 10'000ULL, 100'000ULL, 500'000ULL, 1'000'000ULL})
    slow.emplace_back(kept, rate);
  for (auto& one : slow) one.join();
  for (const std::uint64_t rate : {10'000'000ULL, 100'000'000ULL, 200'000'000ULL}) {
    if (slowness > 1 && rate > 10'000'000) continue;  // more than the instrumented copying can do
    kept(rate);
  }
}

/// The middle one.
Duration median_of(std::vector<Duration> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

// The kernel lets a wait be late by a thousandth of its length, and by a two-hundredth in a thread that was niced: 5 ms
// of a second.
TEST(Predecessors, ALongLatencyIsAsExactAsAShortOne) {
  constexpr std::size_t lines = 16;
  const auto latency = [](std::size_t i) { return 900ms + static_cast<int>(i) * 7ms; };
  Duration error{0}, own{0};
  // What a machine that is busy makes late it makes late for a plain sleeper, too.
  for (int attempt = 0; attempt < 4 && (attempt == 0 || error > own + 1ms); ++attempt) {
    std::vector<Duration> errors(lines), sleepers(lines);
    std::vector<std::thread> all;
    for (std::size_t i = 0; i < lines; ++i) {
      all.emplace_back([&, i] {
        ::setpriority(PRIO_PROCESS, 0, 10);  // of this thread, and of those that it starts
        Line line({fault(Latency{FixedTime{latency(i)}}, Flow::to_client)});
        auto client = Peer::dial(line.address);
        errors[i] = round_trip(client) - latency(i);
      });
      all.emplace_back([&, i] {
        ::setpriority(PRIO_PROCESS, 0, 10);
        ::prctl(PR_SET_TIMERSLACK, 1UL);
        const auto begin = Clock::now();
        leafcutter::tests::pace_until(begin + latency(i));
        sleepers[i] = Clock::now() - begin - latency(i);
      });
    }
    for (auto& one : all) one.join();
    error = median_of(errors);
    own = median_of(sleepers);
  }
  EXPECT_LE(error, own + 1ms * slowness) << "beside a sleeper's " << own.count() << " ns";
}

TEST(Predecessors, TheSecondByteAtTenBytesASecond) {
  Line line({fault(Bandwidth{10}, Flow::to_client)});
  auto client = Peer::dial(line.address);
  client.send("ab");
  EXPECT_EQ(client.receive(1), "a");
  const auto begin = Clock::now();
  EXPECT_EQ(client.receive(1), "b");
  EXPECT_GE(Clock::now() - begin, 75ms);
  EXPECT_LT(Clock::now() - begin, 100ms + 100ms * slowness);
}

TEST(Predecessors, LatenessDoesNotAddUp) {
  StrikeLog log;
  Armory armory;
  StreamChain chain({1, "link", 1, Direction::to_upstream, {}}, log);
  const auto begin = Time{} + 1000h;
  const auto slow = [](const char* id) { return fault(Latency{FixedTime{10ms}}, Selector{}, id); };
  chain.replace(armory.arm_next({slow("a"), slow("b"), slow("c")}, Transport::tcp), begin);
  chain.push(Chunk::copy_of("x", 0, begin), begin);
  chain.pump(begin + 17ms);  // a was to let go at 10
  EXPECT_EQ(chain.wake(), begin + 20ms);
  chain.pump(begin + 26ms);
  EXPECT_EQ(chain.wake(), begin + 30ms);
  chain.pump(begin + 30ms);
  EXPECT_EQ(chain.out().count(), 1u);
}

TEST(Predecessors, LatencyIsOneWayAndBothWaysAreTwoLatencies) {
  const auto took = [](Flow flow) {
    Line line({fault(Latency{FixedTime{60ms}}, flow)});
    auto client = Peer::dial(line.address);
    return round_trip(client);
  };
  for (const auto flow : {Flow::to_upstream, Flow::to_client}) {
    EXPECT_GE(took(flow), 60ms);
    EXPECT_LT(took(flow), 60ms + 50ms * slowness);
  }
  EXPECT_GE(took(Flow::both), 120ms);
  // And the other way is not delayed: the upstream has the bytes at once.
  Line line({fault(Latency{FixedTime{10s}}, Flow::to_client)});
  auto client = Peer::dial(line.address);
  client.send("x");
  EXPECT_TRUE(eventually([&] { return line.rig.stats("l").bytes_to_upstream == 1; }, 2s));
  EXPECT_EQ(line.rig.stats("l").bytes_to_client, 0u);
}

// A connection that has something to read at the beginning of a round may get more before its turn comes.
TEST(Predecessors, BusyConnectionsMakeNobodyEarly) {
  constexpr int messages = 800;
  Rig rig;
  std::atomic<bool> over{false};
  std::atomic<int> received{0};
  std::atomic<std::int64_t> least{std::numeric_limits<std::int64_t>::max()};
  Upstream swallowing([](Peer& peer) {
    std::vector<char> room(1 << 20);
    while (::recv(peer.fd(), room.data(), room.size(), 0) > 0) {
    }
  });
  Upstream measuring([&](Peer& peer) {
    std::int64_t sent = 0;
    while (::recv(peer.fd(), &sent, sizeof sent, MSG_WAITALL) == sizeof sent) {
      least = std::min(least.load(), Clock::now().time_since_epoch().count() - sent);
      ++received;
    }
  });
  const auto busy = rig.link("busy", swallowing.address());
  std::vector<std::thread> senders;
  for (int i = 0; i < 24; ++i)
    senders.emplace_back([&] {
      auto sender = Peer::dial(busy);
      const std::string block(1 << 20, 'x');
      while (!over && sender.try_send(block)) {
      }
    });
  auto client = Peer::dial(rig.link("l", measuring.address(), {fault(Latency{FixedTime{20ms}}, Flow::to_upstream)}));
  EXPECT_TRUE(eventually([&] { return rig.stats("busy").bytes_to_upstream > (64 << 20); }));
  for (int i = 0; i < messages; ++i) {
    const auto now = Clock::now().time_since_epoch().count();
    client.send({reinterpret_cast<const char*>(&now), sizeof now});
    ::poll(nullptr, 0, 1);  // the next one a little later
  }
  EXPECT_TRUE(eventually([&] { return received == messages; }));
  over = true;
  for (auto& one : senders) one.join();
  EXPECT_GE(Duration(least.load()), 20ms);
}

TEST(Predecessors, BandwidthOfALinkAndOfEachOfItsConnectionsTogether) {
  Bandwidth each{400'000}, all{500'000, 0, Bandwidth::Scope::link};
  Line line({fault(each, Flow::to_upstream), fault(all, Flow::to_upstream)});
  const auto took = [&](int connections) {
    const auto begin = Clock::now();
    std::vector<std::thread> clients;
    for (int i = 0; i < connections; ++i)
      clients.emplace_back([&] {
        auto client = Peer::dial(line.address);
        client.send(std::string(80'000, 'x'));
        EXPECT_EQ(client.receive(80'000).size(), 80'000u);
      });
    for (auto& one : clients) one.join();
    return Clock::now() - begin;
  };
  EXPECT_GE(took(1), 190ms) << "its own rate";
  const auto three = took(3);
  EXPECT_GE(three, 470ms) << "the link's";
  EXPECT_LT(three, 480ms + 200ms * slowness) << "and not the sum of both";
}

}  // namespace
}  // namespace leafcutter::node::proxy
