// Faults and sessions of UDP over real sockets: each beside a twin that it must not touch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <set>
#include <tuple>

#include "loopback.hpp"
#include "node/proxy/socket_address.hpp"
#include "tests/support/pace.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Selector never() {
  Selector selector;
  selector.probability = 0;
  return selector;
}

Selector nth(std::uint64_t number, Flow flow = Flow::to_upstream) {
  Selector selector;
  selector.flow = flow;
  selector.chunks = {number, number, 1};
  return selector;
}

/// A client, an upstream, and a link between them.
struct Path {
  explicit Path(std::vector<Fault> faults = {}, std::uint64_t seed = 0, LinkLimits limits = {})
      : rig([&] {
          EngineOptions options;
          options.seed = seed;
          return options;
        }()),
        address(rig.udp_link("u", upstream.address(), std::move(faults), limits)) {}

  /// Sends `count` datagrams ("0", "1", ...) and collects those that arrive, never more on the way than a socket holds.
  std::vector<std::string> through(int count) {
    std::vector<std::string> arrived;
    constexpr int at_once = 64;
    for (int sent = 0; sent < count;) {
      for (const int until = std::min(count, sent + at_once); sent < until; ++sent)
        client.send_to(address, std::to_string(sent));
      EXPECT_TRUE(eventually([&] { return settled() >= static_cast<std::uint64_t>(sent); })) << "of " << sent;
      while (arrived.size() < rig.stats("u").datagrams_to_upstream) arrived.push_back(upstream.receive());
    }
    return arrived;
  }
  /// What went on or was lost, of what the client sent.
  std::uint64_t settled() {
    const auto stats = rig.stats("u");
    std::uint64_t lost = 0;
    for (const auto& [id, fault] : stats.faults)
      lost += fault.effect.find("loss") != std::string::npos ? fault.strikes : 0;
    return stats.datagrams_to_upstream + lost;
  }

  Rig rig;
  UdpPeer upstream, client;
  std::string address;
};

/// Everything that a decision consists of.
using Decision = std::tuple<std::string, Direction, std::uint64_t, std::uint64_t, std::uint64_t, Duration>;

std::vector<Decision> decisions(Rig& rig) {
  std::vector<Decision> all;
  for (const auto& one : rig.events(EventKind::struck))
    all.emplace_back(one.fault, one.direction, one.operation, one.offset, one.bytes, one.delay);
  return all;
}

TEST(UdpFaults, BurstLossFollowsItsModelAndItsSeed) {
  // 2 % of the datagrams begin a burst, which ends after each with 20 %: a share of 1/11 is lost, in fives.
  const BurstLoss model{0.02, 0.2, 0, 1};
  constexpr int count = 20'000;
  const auto run = [&](std::uint64_t seed, std::vector<std::string>& arrived) {
    Path path({fault(model, Flow::to_upstream)}, seed);
    arrived = path.through(count);
    return decisions(path.rig);
  };
  std::vector<std::string> arrived, again;
  const auto log = run(7, arrived);
  EXPECT_EQ(log, run(7, again));
  EXPECT_EQ(arrived, again);
  std::vector<std::string> other;
  EXPECT_NE(log, run(8, other));
  ASSERT_EQ(log.size() + arrived.size(), static_cast<std::size_t>(count));
  int bursts = 0, singles = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    const bool begins = i == 0 || std::get<2>(log[i]) != std::get<2>(log[i - 1]) + 1;
    const bool ends = i + 1 == log.size() || std::get<2>(log[i + 1]) != std::get<2>(log[i]) + 1;
    bursts += begins;
    singles += begins && ends;
  }
  // Three standard deviations around the model (the numbers are the seed's, so these never differ from run to run).
  EXPECT_NEAR(static_cast<double>(log.size()) / count, 1.0 / 11, 0.019);
  EXPECT_NEAR(static_cast<double>(log.size()) / bursts, 5, 0.72);
  EXPECT_NEAR(static_cast<double>(singles) / bursts, 0.2, 0.064) << "lengths are geometric";
  Path twin({fault(BurstLoss{0, 1, 0, 1})});
  EXPECT_THAT(twin.through(500), SizeIs(500));
  EXPECT_THAT(decisions(twin.rig), IsEmpty());
}

TEST(UdpFaults, JitterIsDrawnForEachDatagramAndNeverEarly) {
  Path path({fault(Jitter{5ms, 60ms}, Flow::to_upstream)});
  std::vector<Clock::time_point> sent, arrived(40);
  for (int i = 0; i < 40; ++i) {
    sent.push_back(Clock::now());
    path.client.send_to(path.address, std::to_string(i));
  }
  std::vector<int> order;
  for (int i = 0; i < 40; ++i) {
    order.push_back(std::stoi(path.upstream.receive()));
    arrived[static_cast<std::size_t>(order.back())] = Clock::now();
  }
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  const auto log = path.rig.await(EventKind::struck, 40);
  ASSERT_THAT(log, SizeIs(40));
  std::set<Duration> delays;
  for (const auto& one : log) {
    EXPECT_GE(one.delay, 5ms);
    EXPECT_LE(one.delay, 60ms);
    EXPECT_GE(arrived[one.operation - 1] - sent[one.operation - 1], one.delay) << one.operation;
    delays.insert(one.delay);
  }
  EXPECT_GT(delays.size(), 30u);
  Path twin({fault(Jitter{5ms, 60ms}, never())});
  const auto all = twin.through(100);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto& a, auto& b) { return std::stoi(a) < std::stoi(b); }));
  EXPECT_THAT(decisions(twin.rig), IsEmpty());
}

TEST(UdpFaults, ReorderLetsTheGapPass) {
  Path path({fault(Reorder{2, 10s}, nth(2))});
  EXPECT_THAT(path.through(5), ElementsAre("0", "2", "3", "1", "4"));
  EXPECT_THAT(decisions(path.rig), SizeIs(1));
  Path alone({fault(Reorder{2, 30ms}, nth(1))});
  const auto begin = Clock::now();
  EXPECT_THAT(alone.through(1), ElementsAre("0"));
  EXPECT_GE(Clock::now() - begin, 30ms) << "nothing passed it, so its time did";
  Path twin({fault(Reorder{2, 10s}, nth(6))});
  EXPECT_THAT(twin.through(5), ElementsAre("0", "1", "2", "3", "4"));
}

TEST(UdpFaults, CorruptionInvertsTheBitsThatTheLogNames) {
  const std::string plain(200, 'u');
  Path path({fault(Corrupt{{}, 3}, Flow::to_upstream)}, 5);
  for (int i = 0; i < 20; ++i) path.client.send_to(path.address, plain);
  std::vector<std::string> arrived;
  for (int i = 0; i < 20; ++i) arrived.push_back(path.upstream.receive());
  auto expected = std::vector<std::set<std::uint64_t>>(20);
  for (const auto& one : path.rig.await(EventKind::struck, 60)) expected.at(one.operation - 1).insert(one.offset);
  int bits = 0;
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    ASSERT_THAT(arrived[i], SizeIs(plain.size()));
    for (std::size_t at = 0; at < plain.size(); ++at) {
      const auto differing = std::popcount(static_cast<unsigned char>(arrived[i][at] ^ plain[at]));
      bits += differing;
      if (differing > 0) {
        EXPECT_EQ(expected[i].count(at), 1u) << i << ", " << at;
      }
    }
  }
  EXPECT_EQ(bits, 60) << "with this seed no two draws hit the same bit";
  Path twin({fault(Corrupt{{}, 3}, never())}, 5);
  twin.client.send_to(twin.address, plain);
  EXPECT_EQ(twin.upstream.receive(), plain);
  EXPECT_THAT(decisions(twin.rig), IsEmpty());
}

TEST(UdpFaults, DuplicatesComeBehindTheirOriginalAndOnlyOfTheChosen) {
  Path path({fault(Duplicate{2}, nth(2))});
  for (const auto* text : {"a", "b", "c"}) path.client.send_to(path.address, text);
  std::vector<std::string> arrived;
  for (int i = 0; i < 5; ++i) arrived.push_back(path.upstream.receive());
  EXPECT_THAT(arrived, ElementsAre("a", "b", "b", "b", "c"));
  EXPECT_EQ(path.upstream.receive(30ms), "");
}

/// Bytes per second of what arrived between the first and the last of `count` datagrams of `size` bytes.
double measured_rate(std::uint64_t rate, std::size_t size, int count, Flow flow) {
  Bandwidth bandwidth{rate};
  bandwidth.queue_bytes = 8 << 20;
  Path path({fault(bandwidth, flow)});
  // Ahead of the pace, so that it never waits for us, and never more than the link's own socket holds.
  constexpr int ahead = 60;
  Clock::time_point first, last;
  int sent = 0;
  for (int got = 0; got < count; ++got) {
    for (; sent < count && sent < got + ahead; ++sent) path.client.send_to(path.address, std::string(size, 'x'));
    if (path.upstream.receive(2s).size() != size) return 0;
    last = Clock::now();
    if (got == 0) first = last;
  }
  return static_cast<double>(size) * (count - 1) / std::chrono::duration<double>(last - first).count();
}

TEST(UdpFaults, BandwidthIsWithinTwoPercent) {
  for (const auto& [rate, count] : {std::pair{100'000u, 100}, {500'000u, 500}, {2'000'000u, 2000}}) {
    // A machine that does not let us run for longer than what is ahead spoils a try; a pace that is wrong spoils all.
    double error = 1;
    for (int attempt = 0; attempt < 10 && error >= 0.02; ++attempt)
      error = std::abs(measured_rate(rate, 1000, count, Flow::to_upstream) / rate - 1);
    EXPECT_LT(error, 0.02 * slowness) << rate;
  }
  EXPECT_GT(measured_rate(100'000, 1000, 100, Flow::to_client), 300'000) << "the twin: the other direction is free";
}

/// Bytes a second that a link sends on over what its bandwidth says, while more comes than it may send: at the socket
/// of an upstream that does not read, so that only the sender and the link need the machine.
double rate_beside(std::uint64_t rate, std::size_t size) {
  Bandwidth bandwidth{rate};
  bandwidth.queue_bytes = 16 << 20;
  Path path({fault(bandwidth, Flow::to_upstream)});
  std::atomic<bool> over{false};
  std::thread sender([&] {
    const std::string bytes(size, 'x');
    const auto begin = Clock::now();
    for (double sent = 0; !over;) {
      // A quarter more than may pass, or what is dropped would cost the link more than what it sends.
      const auto wanted =
          1.25 * static_cast<double>(rate) * std::chrono::duration<double>(Clock::now() - begin).count();
      for (; sent < wanted + 4.0 * static_cast<double>(size); sent += static_cast<double>(size))
        path.client.send_to(path.address, bytes);
      leafcutter::tests::pace(200us);
    }
  });
  const auto passed = [&] { return static_cast<double>(path.rig.stats("u").bytes_to_upstream); };
  EXPECT_TRUE(eventually([&] { return passed() >= 4.0 * static_cast<double>(size); }, 30s)) << rate;
  const auto first = passed();
  const auto begin = Clock::now();
  // Long enough for one datagram more or less to be little, and not for less than 300 ms.
  EXPECT_TRUE(eventually(
      [&] { return Clock::now() - begin >= 300ms && passed() >= first + 200.0 * static_cast<double>(size); }, 60s))
      << rate;
  const auto bytes = passed() - first;
  const auto took = std::chrono::duration<double>(Clock::now() - begin).count();
  over = true;
  sender.join();
  return bytes / took / static_cast<double>(rate);
}

TEST(UdpFaults, BandwidthIsWithinTwoPercentFromTenKilobytesToAHundredMegabytesASecond) {
  for (const auto& [rate, size] :
       {std::pair{10'000u, 100u}, {1'000'000u, 1000u}, {20'000'000u, 8000u}, {100'000'000u, 16'000u}}) {
    if (slowness > 1 && rate > 1'000'000) continue;  // more than the instrumented engine can do
    double best = 0;
    for (int attempt = 0; attempt < 8 && best < 0.98; ++attempt) {
      const auto seen = rate_beside(rate, size);
      EXPECT_LT(seen, 1.02) << rate << ": never faster";
      best = std::max(best, seen);
    }
    EXPECT_GT(best, 0.98) << rate;
  }
}

TEST(UdpFaults, BlackholesOneWayAndBothAndTheyHeal) {
  Path path;
  path.client.send_to(path.address, "hello");
  EXPECT_EQ(path.upstream.receive(), "hello");
  EXPECT_TRUE(eventually([&] { return path.rig.stats("u").datagrams_to_upstream == 1; })) << "counted once it is sent";
  const auto session = path.upstream.sender();
  const auto gets = [&](bool up, bool down) {
    const auto before = path.rig.stats("u");
    path.client.send_to(path.address, "up");
    path.upstream.send_to(session, "down");
    EXPECT_EQ(up ? path.upstream.receive() : "up", "up");
    EXPECT_EQ(down ? path.client.receive() : "down", "down");
    // What did not arrive was struck: nothing is on its way any more.
    const std::uint64_t lost = (up ? 0 : 1) + (down ? 0 : 1);
    EXPECT_TRUE(eventually([&] {
      const auto now = path.rig.stats("u");
      return now.strikes == before.strikes + lost &&
             now.datagrams_to_upstream == before.datagrams_to_upstream + (up ? 1 : 0) &&
             now.datagrams_to_client == before.datagrams_to_client + (down ? 1 : 0);
    }));
  };
  const auto hole = [](Flow flow) { return fault(Blackhole{Blackhole::Mode::drop}, flow); };
  gets(true, true);
  path.rig.set("u", {hole(Flow::to_upstream)});
  gets(false, true);
  path.rig.set("u", {hole(Flow::to_client)});
  gets(true, false);
  path.rig.set("u", {hole(Flow::both)});
  gets(false, false);
  path.rig.set("u", {fault(Blackhole{Blackhole::Mode::drop}, never())});
  gets(true, true);
  path.rig.set("u", {});
  gets(true, true);
  EXPECT_EQ(path.rig.stats("u").accepted, 1u) << "one session all the while";
}

TEST(UdpSessions, TheUpstreamMaySpeakWheneverItLikesWithinASession) {
  Path path;
  UdpPeer other;
  path.client.send_to(path.address, "subscribe");
  EXPECT_EQ(path.upstream.receive(), "subscribe");
  const auto session = path.upstream.sender();
  other.send_to(path.address, "other");
  EXPECT_EQ(path.upstream.receive(), "other");
  for (int i = 0; i < 200; ++i) {
    path.upstream.send_to(session, std::to_string(i));
    ASSERT_EQ(path.client.receive(), std::to_string(i)) << "many replies to one request";
    EXPECT_EQ(path.client.sender(), path.address);
  }
  EXPECT_EQ(other.receive(30ms), "") << "the twin: another client's session";
  EXPECT_TRUE(eventually([&] { return path.rig.stats("u").datagrams_to_upstream == 2; }));
}

TEST(UdpSessions, TrafficInEitherDirectionKeepsASessionAndSilenceEndsIt) {
  LinkLimits limits;
  limits.session_idle = 200ms;
  Path path({}, 0, limits);
  path.client.send_to(path.address, "x");
  EXPECT_EQ(path.upstream.receive(), "x");
  const auto session = path.upstream.sender();
  const auto until = Clock::now() + 600ms;
  while (Clock::now() < until) {
    path.upstream.send_to(session, "tick");
    ASSERT_EQ(path.client.receive(), "tick") << "three times as long as it may be idle";
    EXPECT_TRUE(path.client.receive(20ms).empty());
  }
  EXPECT_THAT(path.rig.events(EventKind::closed), IsEmpty());
  const auto closed = path.rig.await(EventKind::closed, 1);
  EXPECT_EQ(closed.at(0).cause, Cause::idle);
  EXPECT_EQ(closed.at(0).bytes, 1u);
  path.upstream.send_to(session, "late");
  EXPECT_EQ(path.client.receive(30ms), "");
  path.client.send_to(path.address, "again");
  EXPECT_EQ(path.upstream.receive(), "again");
  EXPECT_EQ(path.rig.stats("u").accepted, 2u);
}

TEST(UdpSessions, BeyondTheBoundTheOneIdleLongestIsReplacedAndTheOthersGoOn) {
  LinkLimits limits;
  limits.sessions = 3;
  Path path({}, 0, limits);
  std::vector<UdpPeer> clients(4);
  std::vector<std::string> sessions(4);
  const auto speak = [&](std::size_t i) {
    clients[i].send_to(path.address, std::to_string(i));
    EXPECT_EQ(path.upstream.receive(), std::to_string(i));
    sessions[i] = path.upstream.sender();
  };
  for (const std::size_t i : {0, 1, 2, 0, 3}) speak(i);  // 1 is the one idle longest
  const auto closed = path.rig.await(EventKind::closed, 1);
  EXPECT_EQ(closed.at(0).connection, 2u);
  EXPECT_EQ(closed.at(0).cause, Cause::scarce);
  EXPECT_THAT(path.rig.events(EventKind::discarded).at(0).detail, HasSubstr("too many sessions"));
  for (const std::size_t i : {0, 2, 3}) {
    path.upstream.send_to(sessions[i], "still");
    EXPECT_EQ(clients[i].receive(), "still");
  }
  EXPECT_EQ(path.rig.stats("u").active, 3u);
}

TEST(UdpSessions, AnErrorOfOneSessionIsNobodyElses) {
  Rig rig;
  UdpPeer upstream, first, second, third;
  int opened = 0;
  LinkConfig config;
  config.name = "u";
  config.transport = Transport::udp;
  config.listen = "127.0.0.1:0";
  config.upstream = upstream.address();
  config.open_socket = [&opened](int family, int type) -> base::Expected<base::UniqueFd> {
    if (++opened == 2) return base::system_error("socket", EMFILE);
    return base::UniqueFd(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  };
  const auto address = rig.engine->add_link(std::move(config));
  ASSERT_TRUE(address);
  const auto works = [&](UdpPeer& client) {
    client.send_to(*address, "x");
    EXPECT_EQ(upstream.receive(), "x");
    upstream.send_to(upstream.sender(), "y");
    EXPECT_EQ(client.receive(), "y");
  };
  works(first);
  second.send_to(*address, "x");
  const auto failed = rig.await(EventKind::connect_failed, 1);
  EXPECT_EQ(failed.at(0).connection, 2u);
  EXPECT_THAT(failed.at(0).detail, HasSubstr("Too many open files"));
  EXPECT_EQ(rig.stats("u").active, 1u) << "the first one's goes on";
  works(first);
  works(third);
  EXPECT_EQ(rig.stats("u").accepted, 3u);
  works(second);
  EXPECT_EQ(rig.stats("u").connect_failed, 1u);
}

TEST(UdpSessions, WithoutAnUpstreamTheEmbeddersSocketsAreConnected) {
  Rig rig;
  UdpPeer upstream, first, second;
  int opened = 0;
  LinkConfig config;
  config.name = "u";
  config.transport = Transport::udp;
  config.listen = "127.0.0.1:0";
  config.open_socket = [&](int family, int type) -> base::Expected<base::UniqueFd> {
    base::UniqueFd fd(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const auto to = resolve_host(*parse_host_port(upstream.address(), "upstream"))->front();
    if (++opened == 1 && ::connect(fd.get(), to.get(), to.length) != 0) return base::system_error("connect", errno);
    return fd;
  };
  const auto address = rig.engine->add_link(std::move(config));
  ASSERT_TRUE(address) << address.error().message;
  first.send_to(*address, "x");
  EXPECT_EQ(upstream.receive(), "x");
  second.send_to(*address, "x");
  EXPECT_EQ(rig.await(EventKind::connect_failed, 1).at(0).detail,
            "there is no upstream, and the embedder's socket is not connected");
}

TEST(UdpSessions, ABurstWaitsUntilTheEngineHasAProcessorForIt) {
  UdpPeer client, upstream, plain;
  const std::string datagram(8000, 'x');
  // What a socket of this system holds that nobody has asked for more.
  for (int i = 0; i < 1000; ++i) client.send_to(plain.address(), datagram);
  std::uint64_t held = 0;
  while (!plain.receive(0ms).empty()) ++held;
  ASSERT_GT(held, 4u);
  std::mutex mutex;
  std::condition_variable changed;
  bool busy = false, go_on = false;
  EngineOptions options;
  options.immediate = true;
  options.hook = [&](const Event& event) {
    if (event.kind != EventKind::accepted) return;
    std::unique_lock lock(mutex);
    busy = true;
    changed.notify_all();
    changed.wait(lock, [&] { return go_on; });
  };
  const auto engine = std::move(*Engine::start(std::move(options)));
  LinkConfig config;
  config.name = "u";
  config.transport = Transport::udp;
  config.listen = "127.0.0.1:0";
  config.upstream = upstream.address();
  const auto address = engine->add_link(std::move(config));
  ASSERT_TRUE(address) << address.error().message;
  client.send_to(*address, "first");
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, 10s, [&] { return busy; }));
  }
  const auto burst = held + held / 2;
  for (std::uint64_t i = 0; i < burst; ++i) client.send_to(*address, datagram);
  {
    const std::lock_guard lock(mutex);
    go_on = true;
    changed.notify_all();
  }
  EXPECT_TRUE(eventually([&] { return engine->stats("u")->datagrams_to_upstream == burst + 1; }))
      << engine->stats("u")->datagrams_to_upstream << " of " << burst + 1;
}

TEST(UdpSessions, ARefusedDatagramIsSaidAndTheNextIsSentAllTheSame) {
  Rig rig;
  UdpPeer client;
  const auto port = dead_port();
  const auto address = rig.udp_link("u", "127.0.0.1:" + std::to_string(port));
  for (int i = 0; i < 50; ++i) client.send_to(address, "x");
  const auto failed = rig.await(EventKind::connect_failed, 1);
  EXPECT_EQ(failed.at(0).cause, Cause::refused);
  EXPECT_TRUE(eventually([&] { return rig.stats("u").datagrams_to_upstream == 50; }))
      << rig.stats("u").datagrams_to_upstream << ": an error of the one before is no reason not to send";
  EXPECT_EQ(rig.stats("u").connect_failed, 1u) << "said once, until one gets through";
  UdpPeer upstream("127.0.0.1", port);
  client.send_to(address, "there?");
  EXPECT_EQ(upstream.receive(), "there?");
  upstream.send_to(upstream.sender(), "yes");
  EXPECT_EQ(client.receive(), "yes");
  EXPECT_EQ(rig.stats("u").accepted, 1u);
}

}  // namespace
}  // namespace leafcutter::node::proxy
