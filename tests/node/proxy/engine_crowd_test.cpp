// Many connections, readers that stop, descriptors that run out, a hook that sleeps: what must stay bounded and quick.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "loopback.hpp"
#include "node/proxy/chunk.hpp"
#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::HasSubstr;

/// Accepts and never reads.
class DeafUpstream {
 public:
  explicit DeafUpstream(int buffer_bytes = 0)
      : listener_(std::move(*open_listener(literal_address({"127.0.0.1", 0})[0], SOCK_STREAM))) {
    if (buffer_bytes > 0) ::setsockopt(listener_.get(), SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
  }
  std::string address() const { return local_address(listener_.get()).text(); }

 private:
  base::UniqueFd listener_;
};

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::size_t>(::getpagesize());
}

TEST(EngineCrowd, RemovingAFaultWithAThousandStuckClientsIsQuick) {
  const DescriptorLimit enough(4096);  // a user's soft limit is often 1,024, and here are both ends of everything
  ASSERT_GE(enough.hard(), 4096u);
  Rig rig;
  DeafUpstream upstream;
  const auto address = rig.link("l", upstream.address(), {fault(Latency{FixedTime{3s}})});
  std::vector<Peer> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(Peer::dial(address));
    clients.back().send(std::string(2000, 'x'));
  }
  rig.await(EventKind::struck, 1000);
  const auto begin = Clock::now();
  rig.set("l", {});
  const Duration removed = Clock::now() - begin;
  EXPECT_LT(removed, 50ms * slowness);
  EXPECT_TRUE(eventually([&] { return rig.stats("l").bytes_to_upstream == 2'000'000; }, 1s * slowness))
      << "and let go at once";
  const auto again = Clock::now();
  rig.set("l", {fault(Blackhole{})});
  rig.set("l", {fault(Reset{})});
  EXPECT_LT(Clock::now() - again, 100ms * slowness);
  EXPECT_TRUE(eventually([&] { return rig.stats("l").active == 0; }));
}

TEST(EngineCrowd, AnyFaultIsRemovedFromAThousandStuckClientsAtOnce) {
  const DescriptorLimit enough(4096);
  ASSERT_GE(enough.hard(), 4096u);
  Rig rig;
  DeafUpstream upstream;
  const auto address = rig.link("l", upstream.address());
  std::vector<Peer> clients;
  for (int i = 0; i < 1000; ++i) clients.push_back(Peer::dial(address));
  rig.await(EventKind::connected, 1000);
  std::uint64_t through = 0;
  for (const Effect& effect :
       {Effect(Latency{FixedTime{1h}}), Effect(Jitter{1h, 2h}), Effect(Bandwidth{1}), Effect(Blackhole{}),
        Effect(Blackhole{Blackhole::Mode::drop}), Effect(Slice{1, 0, 1h}), Effect(Truncate{0})}) {
    const bool loses = std::holds_alternative<Truncate>(effect) || effect == Effect(Blackhole{Blackhole::Mode::drop});
    const auto id = std::string(kind_of(effect));
    const auto before = rig.stats("l").strikes;
    rig.set("l", {fault(effect, Flow::to_upstream)});
    for (auto& client : clients) client.send("stuck");
    EXPECT_TRUE(eventually([&] { return rig.stats("l").strikes >= before + 1000; })) << id;
    const auto begin = Clock::now();
    rig.set("l", {});
    EXPECT_LT(Clock::now() - begin, 50ms * slowness) << id;
    through += loses ? 0 : 5000;
    EXPECT_TRUE(eventually([&] { return rig.stats("l").bytes_to_upstream == through; }, 2s * slowness))
        << id << ": " << rig.stats("l").bytes_to_upstream << " of " << through;
  }
}

TEST(EngineCrowd, MemoryIsBoundedUnderReadersThatStop) {
  LinkLimits limits;
  limits.memory_bytes = 4 << 20;
  limits.direction_bytes = 1 << 20;
  Rig rig;
  DeafUpstream upstream(4096);
  const auto address = rig.link("l", upstream.address(), {fault(Latency{FixedTime{1ms}})}, limits);
  std::vector<Peer> clients;
  std::vector<std::thread> senders;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(Peer::dial(address));
    const timeval soon{0, 300'000};
    ::setsockopt(clients.back().fd(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
  }
  for (auto& client : clients)
    senders.emplace_back([&client] { EXPECT_FALSE(client.try_send(std::string(32 << 20, 'x'))) << "nobody reads"; });
  for (auto& one : senders) one.join();
  const auto stats = rig.stats("l");
  EXPECT_GT(stats.held_bytes, 1u << 20);
  EXPECT_LE(stats.held_bytes_peak, limits.memory_bytes + 12 * 2 * chunk_overhead);
  clients.clear();
  rig.set("l", {});
  ASSERT_TRUE(rig.engine->set_enabled("l", false));
  EXPECT_EQ(rig.stats("l").held_bytes, 0u);
}

TEST(EngineCrowd, AFewWithMuchDoNotStarveTheOthers) {
  LinkLimits limits;
  limits.memory_bytes = 2 << 20;
  Rig rig;
  std::atomic<bool> over{false};
  Upstream upstream([&](Peer& peer) {
    if (peer.receive(1) == "E")
      echo(peer);
    else
      over.wait(false);  // reads no more
  });
  const auto address = rig.link("l", upstream.address(), {fault(Latency{FixedTime{1ms}})}, limits);
  std::vector<Peer> greedy;
  for (int i = 0; i < 3; ++i) {
    greedy.push_back(Peer::dial(address));
    const timeval soon{0, 300'000};
    ::setsockopt(greedy.back().fd(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    EXPECT_FALSE(greedy.back().try_send(std::string(64 << 20, 'x')));
  }
  EXPECT_GE(rig.stats("l").held_bytes, limits.memory_bytes / 2 - (64 << 10)) << "the big half is used up";
  auto modest = Peer::dial(address);
  modest.send("E");
  for (int i = 0; i < 20; ++i) {
    modest.send("a modest request");
    EXPECT_EQ(modest.receive(16), "a modest request");
  }
  over = true;
  over.notify_all();
}

void run_out_of_descriptors(rlim_t left) {
  Rig rig;
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address());
  auto open = Peer::dial(address);
  auto bystander = Peer::dial(rig.link("other", upstream.address()));
  round_trip(open);
  round_trip(bystander);
  std::vector<Peer> clients;
  {
    // The clients' descriptors are there before the limit; the engine and the upstream share what is left.
    for (int i = 0; i < 12; ++i) {
      base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      clients.emplace_back(std::move(fd));
    }
    const base::UniqueFd highest(::dup(0));
    const DescriptorLimit limit(static_cast<rlim_t>(highest.get()) + 1 + left);
    const auto to = literal_address(*parse_host_port(address, ""))[0];
    for (auto& client : clients) ASSERT_EQ(::connect(client.fd(), to.get(), to.length), 0);
    const auto failed = rig.await(EventKind::accept_failed, 1);
    EXPECT_EQ(failed[0].cause, Cause::scarce);
    EXPECT_THAT(failed[0].detail, HasSubstr("Too many open files"));
    round_trip(open);  // not affected
    round_trip(bystander);
    EXPECT_GE(rig.stats("l").accept_failures, 1u);
  }
  for (auto& client : clients) client.send("z");
  for (auto& client : clients) EXPECT_EQ(client.receive(1), "z");
  EXPECT_GE(rig.await(EventKind::accept_resumed, 1).size(), 1u);
  EXPECT_EQ(rig.stats("l").connect_failed, 0u);
}

TEST(EngineCrowd, WithoutDescriptorsNothingIsLostAndOthersGoOn) {
  for (const rlim_t left : {0, 1, 2, 3, 4})
    run_out_of_descriptors(left);  // for the client's socket, the upstream's, ...
}

/// What the epolls of this process watch.
std::size_t watches() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) count += line.starts_with("tfd:");
  }
  return count;
}

// epoll watches a socket, not a descriptor: one that a forked child holds open, too, is watched after it was closed
// here, and its next event would be for somebody who is gone.
TEST(EngineCrowd, AChildThatHoldsEverythingOpenLeavesNoWatchBehind) {
  Rig rig;
  Upstream upstream(echo);
  UdpPeer datagrams, client;
  LinkLimits one_session;
  one_session.sessions = 1;
  const auto tcp = rig.link("tcp", upstream.address()), udp = rig.udp_link("udp", datagrams.address(), {}, one_session);
  client.send_to(udp, "x");
  EXPECT_EQ(datagrams.receive(), "x");
  const auto before = watches();
  EXPECT_GE(before, 4u);
  std::vector<Peer> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(Peer::dial(tcp));
    round_trip(clients.back());
  }
  EXPECT_EQ(watches(), before + 40);
  const auto child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::pause();
  }
  rig.set("tcp", {fault(Reset{})});
  UdpPeer second;
  second.send_to(udp, "y");  // takes the place of the first one's session
  EXPECT_EQ(datagrams.receive(), "y");
  EXPECT_TRUE(eventually([&] { return rig.stats("tcp").active == 0; }));
  EXPECT_TRUE(eventually([&] { return watches() == before; })) << watches() << ", " << before << " before";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(EngineCrowd, ManyIdleConnectionsCostLittle) {
  const DescriptorLimit limit(20'000);
  constexpr int crowd = 4000;
  Rig rig;
  DeafUpstream upstream;
  const auto address = rig.link("l", upstream.address());
  const auto before = resident_bytes();
  std::vector<base::UniqueFd> clients;
  const auto to = literal_address(*parse_host_port(address, ""))[0];
  for (int i = 0; i < crowd; ++i) {
    clients.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(clients.back().get(), to.get(), to.length), 0) << i;
  }
  EXPECT_TRUE(eventually([&] { return rig.stats("l").connected == crowd; }));
  const auto each = (resident_bytes() - before) / crowd;
  EXPECT_LT(each, 10'000u * slowness) << "10,000 would take more than 100 MB";
}

TEST(EngineCrowd, TheDataPathDoesNotWaitForTheHookAndWhatIsDroppedIsCounted) {
  std::atomic<bool> go_on{false};
  std::atomic<std::uint64_t> seen{0};
  EngineOptions options;
  options.event_queue = 16;
  options.hook = [&](const Event&) {
    ++seen;
    go_on.wait(false);
  };
  Rig rig(std::move(options));
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address());
  for (int i = 0; i < 50; ++i) {
    auto client = Peer::dial(address);
    client.send("x");
    EXPECT_EQ(client.receive(1), "x");
  }
  EXPECT_TRUE(eventually([&] { return rig.stats("l").closed == 50; }));
  go_on = true;
  go_on.notify_all();
  rig.engine->flush_events();
  const auto dropped = rig.engine->stats().dropped_events;
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(seen + dropped, 151u) << "the link, and accepted, connected and closed of each";
}

TEST(EngineCrowd, CountersAreTheSumsOfTheEvents) {
  EngineOptions options;
  options.threads = 2;
  Rig rig(std::move(options));
  Upstream upstream(echo);
  Selector half;
  half.probability = 0.5;
  Selector each = half;
  each.draw = Selector::Draw::each_chunk;
  const auto address =
      rig.link("l", upstream.address(),
               {fault(Jitter{0ms, 2ms}), fault(Corrupt{{}, 1}, each), fault(Slice{50}), fault(Cut{{}, 4000}, half)});
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&] {
      for (int turn = 0; turn < 5; ++turn) {
        auto client = Peer::dial(address);
        std::thread sender([&] {
          (void)client.try_send(std::string(5000, 'x'));
          client.finish_sending();
        });
        client.receive_all();
        sender.join();
      }
    });
  for (auto& one : clients) one.join();
  rig.await(EventKind::closed, 40);
  const auto stats = rig.stats("l");
  std::map<std::string, FaultStats> sums;
  for (const auto& one : rig.events(EventKind::struck)) {
    auto& sum = sums[one.fault];
    ++sum.strikes;
    sum.bytes += one.bytes;
    sum.delay += one.delay;
  }
  std::uint64_t up = 0, down = 0;
  for (const auto& one : rig.events(EventKind::closed)) {
    up += one.bytes;
    down += one.bytes_back;
  }
  EXPECT_EQ(rig.engine->stats().dropped_events, 0u);
  ASSERT_EQ(stats.faults.size(), 4u);
  for (const auto& [id, fault] : stats.faults) {
    EXPECT_GT(fault.strikes, 0u) << id;
    EXPECT_EQ(fault.strikes, sums[id].strikes) << id;
    EXPECT_EQ(fault.bytes, sums[id].bytes) << id;
    EXPECT_EQ(fault.delay, sums[id].delay) << id;
  }
  EXPECT_EQ(stats.bytes_to_upstream, up);
  EXPECT_EQ(stats.bytes_to_client, down);
  EXPECT_EQ(stats.active, 0u);
}

TEST(EngineCrowd, TwoHundredConnectionsOnFourThreadsAreKeptApart) {
  EngineOptions options;
  options.threads = 4;
  Rig rig(std::move(options));
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address(), {fault(Jitter{0ms, 3ms})});
  std::vector<Peer> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(Peer::dial(address));
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 200; ++i) clients[static_cast<std::size_t>(i)].send(std::to_string(1000 + i));
    for (int i = 0; i < 200; ++i) ASSERT_EQ(clients[static_cast<std::size_t>(i)].receive(4), std::to_string(1000 + i));
  }
}

TEST(EngineCrowd, StoppingInterruptsLongDelaysAndBlackholes) {
  auto rig = std::make_unique<Rig>();
  Upstream upstream(echo);
  auto slow = Peer::dial(rig->link("slow", upstream.address(), {fault(Latency{FixedTime{1h}})}));
  auto stuck = Peer::dial(rig->link("stuck", upstream.address(), {fault(Blackhole{})}));
  slow.send("x");
  stuck.send("x");
  rig->await(EventKind::struck, 2);
  const auto begin = Clock::now();
  rig.reset();
  EXPECT_LT(Clock::now() - begin, 1s);
}

}  // namespace
}  // namespace leafcutter::node::proxy
