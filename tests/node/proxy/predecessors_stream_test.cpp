// What earlier fault proxies got wrong about TCP: half-closes, resets, faults that struck though their probability was
// zero, control that waited for data. predecessors_index_test.cpp says which defect is whose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "loopback.hpp"
#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Predecessors, AFaultStaysOnItsLink) {
  Rig rig;
  Upstream upstream(echo);
  auto struck = Peer::dial(rig.link("a", upstream.address(), {fault(Blackhole{})}));
  auto other = Peer::dial(rig.link("b", upstream.address()));
  struck.send("x");
  rig.await(EventKind::struck, 1);
  round_trip(other);
  EXPECT_TRUE(struck.quiet_for(50ms));
  EXPECT_EQ(rig.stats("a").struck_connections, 1u);
  EXPECT_EQ(rig.stats("b").strikes, 0u);
  EXPECT_THAT(rig.stats("b").faults, IsEmpty());
}

TEST(Predecessors, EachBlackholedDirectionIsCountedOnce) {
  for (const auto flow : {Flow::to_upstream, Flow::to_client, Flow::both}) {
    std::atomic<bool> talk{false};
    Rig rig;
    Upstream upstream([&](Peer& peer) {
      peer.receive(1);
      talk.wait(false);
      for (int i = 0; i < 20 && peer.try_send("tick"); ++i) {  // the client may have seen enough
      }
      peer.receive_all();
    });
    auto client = Peer::dial(rig.link("l", upstream.address()));
    client.send("0");
    EXPECT_TRUE(eventually([&] { return rig.stats("l").bytes_to_upstream == 1; }));
    rig.set("l", {fault(Blackhole{}, flow)});
    talk = true;
    talk.notify_all();
    for (int i = 0; i < 20; ++i) client.send("tock");
    const std::size_t expected = flow == Flow::both ? 2 : 1;
    rig.await(EventKind::struck, expected);
    for (int i = 0; i < 20; ++i) client.send("tock");
    if (flow == Flow::to_client)  // the other direction goes on
      EXPECT_TRUE(eventually([&] { return rig.stats("l").bytes_to_upstream == 161; }));
    else
      EXPECT_EQ(client.quiet_for(50ms), flow == Flow::both);
    EXPECT_EQ(rig.stats("l").faults.at("blackhole").strikes, expected);
    EXPECT_EQ(rig.stats("l").struck_connections, 1u);
  }
}

TEST(Predecessors, ProbabilityOneStrikesEveryoneAndZeroNobody) {
  for (const auto probability : {0.0, 1.0}) {
    Selector some;
    some.probability = probability;
    Line line({fault(ResetAfterAccept{}, some)});
    int reset = 0;
    for (int i = 0; i < 50; ++i) {
      auto client = Peer::dial(line.address);
      (void)client.try_send("x");
      reset += client.receive(1).empty();
    }
    EXPECT_EQ(reset, probability == 1 ? 50 : 0);
    EXPECT_THAT(line.rig.events(EventKind::struck), SizeIs(static_cast<std::size_t>(reset)));
  }
}

/// Every fault that exists on TCP, each with a probability of zero.
std::vector<Fault> all_with_probability_zero() {
  std::vector<Fault> all;
  Selector never;
  never.probability = 0;
  for (const Effect& effect :
       {Effect(Latency{FixedTime{1h}}), Effect(Jitter{1h, 2h}), Effect(Bandwidth{1}), Effect(Blackhole{}),
        Effect(Blackhole{Blackhole::Mode::drop}), Effect(Corrupt{}), Effect(Truncate{0}), Effect(Reset{}),
        Effect(Reset{Side::both, Duration{0}, Reset::When::first_bytes}), Effect(HalfOpen{}), Effect(Refuse{}),
        Effect(HangConnect{}), Effect(SlowAccept{FixedTime{1h}}), Effect(ResetAfterAccept{}), Effect(SlowClose{1h}),
        Effect(Cut{Duration{0}, 0, Ending::reset}), Effect(Limit{0}), Effect(Slice{1}), Effect(LoseReply{})}) {
    all.push_back(fault(effect, never, "never " + std::to_string(all.size())));
    if (std::holds_alternative<LoseReply>(effect)) all.back().selector.flow = Flow::to_client;
  }
  return all;
}

/// What a probe that strikes half of the chunks decided, and what the client got, with those faults before and behind.
std::pair<std::string, std::vector<std::string>> conversation(const std::vector<Fault>& others) {
  Selector half;
  half.probability = 0.5;
  half.draw = Selector::Draw::each_chunk;
  auto faults = others;
  faults.insert(faults.begin() + static_cast<std::ptrdiff_t>(faults.size() / 2), fault(Corrupt{}, half, "probe"));
  EngineOptions options;
  options.seed = 7;
  Rig rig(std::move(options));
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address(), faults);
  std::string got;
  for (int connection = 0; connection < 5; ++connection) {
    auto client = Peer::dial(address);
    for (int i = 0; i < 20; ++i) {
      client.send("a message of twenty!");
      got += client.receive(20);
    }
    client.finish_sending();
    EXPECT_EQ(client.ending(), "end");
  }
  rig.await(EventKind::closed, 5);
  std::vector<std::string> decisions;
  for (const auto kind : {EventKind::struck, EventKind::passed_over, EventKind::closed})
    for (const auto& one : rig.events(kind))
      decisions.push_back(std::string(name_of(kind)) + " " + one.fault + " " + std::to_string(one.connection) + " " +
                          std::to_string(static_cast<int>(one.direction)) + " " + std::to_string(one.operation) + " " +
                          std::to_string(one.offset) + " " + std::to_string(one.bytes) + " " +
                          std::string(name_of(one.cause)));
  return {got, decisions};
}

TEST(Predecessors, ProbabilityZeroLeavesEveryByteAndEveryDecisionAsItWas) {
  const auto without = conversation({}), with = conversation(all_with_probability_zero());
  EXPECT_EQ(with.first, without.first);
  EXPECT_EQ(with.second, without.second);
  EXPECT_GT(without.second.size(), 50u) << "the probe struck";
}

TEST(Predecessors, ProbabilityZeroIsNotEvenInTheWay) {
  Line line(all_with_probability_zero());
  auto client = line.dial();
  std::thread sender([&] { client.send(std::string(8 << 20, 'x')); });
  EXPECT_EQ(client.receive(8 << 20), std::string(8 << 20, 'x'));
  sender.join();
  EXPECT_GT(line.rig.stats("l").spliced_bytes, 1u << 20);
  EXPECT_EQ(line.rig.stats("l").strikes, 0u);
}

TEST(Predecessors, HalfCloseIsHonouredUnderFaultsToo) {
  std::vector<std::vector<Fault>> sets{
      {},
      {fault(Latency{FixedTime{20ms}})},
      {fault(Jitter{1ms, 10ms})},
      {fault(Bandwidth{1'000'000})},
      {fault(Slice{900, 100, 50us})},
      {fault(SlowClose{30ms})},
      {fault(Corrupt{})},
      {fault(Limit{50'000}, Flow::to_upstream)},
      {fault(Truncate{1'000'000})},
      {fault(Cut{{}, 1'000'000})},
      {fault(Latency{FixedTime{5ms}}), fault(Slice{5000}), fault(Bandwidth{5'000'000})}};
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Rig rig;
    Upstream upstream([](Peer& peer) { peer.send("got " + std::to_string(peer.receive_all().size())); });
    auto client = Peer::dial(rig.link("l", upstream.address(), sets[i]));
    client.send(std::string(50'000, 'x'));
    client.finish_sending();
    EXPECT_EQ(client.receive_all().size(), 9u) << i;
    EXPECT_EQ(client.ending(), "end") << i;
    EXPECT_EQ(rig.await(EventKind::closed, 1)[0].bytes, 50'000u) << i;
  }
}

TEST(Predecessors, AResetOfALiveConnectionIsAResetOnBothSidesAndNoFailure) {
  Rig rig;
  std::atomic<int> upstream_saw{0};
  Upstream upstream([&](Peer& peer) {
    const std::string block(64 << 10, 'x');
    while (peer.try_send(block)) {
    }
    upstream_saw = errno;
  });
  auto client = Peer::dial(rig.link("l", upstream.address()));
  EXPECT_EQ(client.receive(1 << 20).size(), 1u << 20);
  rig.set("l", {fault(Reset{Side::both})});
  int megabytes = 0;
  while (client.receive(1 << 20).size() == 1 << 20) ASSERT_LT(++megabytes, 1000) << "it goes on and on";
  EXPECT_EQ(client.ending(), "ECONNRESET");
  EXPECT_TRUE(eventually([&] { return upstream_saw != 0; }));
  EXPECT_EQ(upstream_saw, ECONNRESET) << std::strerror(upstream_saw);
  const auto closed = rig.await(EventKind::closed, 1);
  EXPECT_EQ(closed[0].cause, Cause::fault);
  EXPECT_EQ(closed[0].fault, "reset");
  EXPECT_EQ(rig.stats("l").connect_failed, 0u);
  EXPECT_THAT(rig.events(EventKind::connect_failed), IsEmpty());
}

/// Its queue is full, so that whoever connects waits.
class Unanswering {
 public:
  Unanswering() : listener_(std::move(*open_listener(literal_address({"127.0.0.1", 0})[0], SOCK_STREAM))) {
    ::listen(listener_.get(), 0);
    const auto to = local_address(listener_.get());
    for (bool waits = false; !waits;) {
      queue_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)::connect(queue_.back().get(), to.get(), to.length);
      Peer one{std::move(queue_.back())};
      pollfd state{one.fd(), POLLOUT, 0};
      waits = ::poll(&state, 1, 100) == 0;
      kept_.push_back(std::move(one));
      queue_.pop_back();
    }
  }
  std::string address() const { return local_address(listener_.get()).text(); }

 private:
  base::UniqueFd listener_;
  std::vector<base::UniqueFd> queue_;
  std::vector<Peer> kept_;
};

TEST(Predecessors, DisablingWhileTheUpstreamDoesNotAnswerIsQuickAndOthersGoOn) {
  Rig rig;
  Unanswering silent;
  Upstream upstream(echo);
  const auto address = rig.link("l", silent.address());
  auto waiting = Peer::dial(address), second = Peer::dial(address);
  rig.await(EventKind::accepted, 2);
  EXPECT_EQ(rig.stats("l").connected, 0u);
  auto other = Peer::dial(rig.link("other", upstream.address()));
  round_trip(other);
  const auto begin = Clock::now();
  ASSERT_TRUE(rig.engine->set_enabled("l", false));
  EXPECT_LT(Clock::now() - begin, 50ms * slowness);
  EXPECT_EQ(waiting.ending(), "end");
  EXPECT_EQ(second.ending(), "end");
  EXPECT_EQ(rig.await(EventKind::closed, 2)[0].cause, Cause::removed);
  round_trip(other);
}

TEST(Predecessors, ControlAnswersWhileClientsDoNotRead) {
  Rig rig;
  Upstream flood([](Peer& peer) {
    const std::string block(1 << 20, 'x');
    while (peer.try_send(block)) {
    }
  });
  LinkLimits limits;
  limits.memory_bytes = 32 << 20;
  limits.direction_bytes = 4 << 20;
  const auto address = rig.link("l", flood.address(), {fault(Latency{FixedTime{3s}}, Flow::to_client)}, limits);
  std::vector<Peer> stuck;
  for (int i = 0; i < 6; ++i) stuck.push_back(Peer::dial(address));
  EXPECT_TRUE(eventually([&] { return rig.stats("l").held_bytes > (12 << 20); }));
  const auto begin = Clock::now();
  rig.set("l", {});
  EXPECT_EQ(rig.stats("l").active, 6u);
  EXPECT_LT(Clock::now() - begin, 50ms * slowness);
  EXPECT_LE(rig.stats("l").held_bytes_peak, limits.memory_bytes + (1 << 20));
  ASSERT_TRUE(rig.engine->set_enabled("l", false));
}

TEST(Predecessors, TheFirstConnectionsFailAndTheNextSucceed) {
  for (const Effect& effect : {Effect(Refuse{}), Effect(ResetAfterAccept{}), Effect(LoseReply{Ending::reset}),
                               Effect(Reset{Side::client, Duration{0}, Reset::When::first_bytes})}) {
    Selector first_three;
    first_three.connections = {1, 3};
    if (std::holds_alternative<LoseReply>(effect)) first_three.flow = Flow::to_client;
    Line line({fault(effect, first_three)});
    std::vector<bool> worked;
    for (int i = 0; i < 6; ++i) {
      auto client = Peer::dial(line.address);
      (void)client.try_send("x");
      worked.push_back(client.receive(1) == "x");
    }
    EXPECT_THAT(worked, ElementsAre(false, false, false, true, true, true)) << kind_of(effect);
  }
}

Peer dial_from(const char* source, const std::string& to_address) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto from = literal_address({source, 0})[0], to = literal_address(*parse_host_port(to_address, ""))[0];
  EXPECT_EQ(::bind(fd.get(), from.get(), from.length), 0) << source;
  EXPECT_EQ(::connect(fd.get(), to.get(), to.length), 0) << source;
  return Peer(std::move(fd));
}

TEST(Predecessors, OnlyTheSelectedPeersAreStruck) {
  Selector some;
  some.peers = {"127.0.1.0/24"};
  Line line({fault(Latency{FixedTime{1h}}, some)});
  auto selected = dial_from("127.0.1.9", line.address), other = dial_from("127.0.2.9", line.address);
  selected.send("x");
  round_trip(other);
  EXPECT_TRUE(selected.quiet_for(50ms));
  const auto struck = line.rig.await(EventKind::struck, 1);
  ASSERT_THAT(struck, SizeIs(1));
  EXPECT_EQ(struck[0].connection, 1u);
  EXPECT_EQ(line.rig.events(EventKind::accepted)[0].detail.substr(0, 9), "127.0.1.9");
}

TEST(Predecessors, FlippedBitsAreSaidWithTheirOffsets) {
  Corrupt chosen;
  chosen.flips = {{3, 0x01}, {70'000, 0x80}};
  Selector sometimes;
  sometimes.flow = Flow::to_client;
  for (const auto& effect : {chosen, Corrupt{{}, 3}}) {
    Line line({fault(effect, sometimes)});
    auto client = Peer::dial(line.address);
    const std::string bytes(100'000, 'x');
    client.send(bytes);
    const auto back = client.receive(bytes.size());
    ASSERT_EQ(back.size(), bytes.size());
    std::map<std::uint64_t, unsigned> differs, said;
    for (std::size_t i = 0; i < back.size(); ++i)
      if (back[i] != bytes[i]) differs[i] = 1;
    for (const auto& one : line.rig.events(EventKind::struck)) {
      EXPECT_EQ(one.bytes, 1u);
      said[one.offset] = 1;
    }
    EXPECT_EQ(differs, said);
    EXPECT_FALSE(said.empty());
    if (!effect.flips.empty()) {
      EXPECT_THAT(said, ElementsAre(std::pair(3, 1), std::pair(70'000, 1)));
    }
  }
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(Predecessors, EndedConnectionsLeaveNothingBehind) {
  Line line({fault(Latency{FixedTime{Duration{0}}}), fault(Slice{10})});
  round_trip(*std::make_unique<Peer>(line.dial()));
  EXPECT_TRUE(eventually([&] { return line.rig.stats("l").active == 0; }));
  const auto before = open_descriptors();
  for (int i = 0; i < 300; ++i) line.dial();
  EXPECT_TRUE(eventually([&] { return line.rig.stats("l").closed == 301; }));
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; })) << before << " before";
  EXPECT_EQ(line.rig.stats("l").held_bytes, 0u);
  EXPECT_EQ(line.rig.stats("l").active, 0u);
}

TEST(Predecessors, DroppedEventsDoNotLeakTheCountOfActive) {
  std::atomic<bool> go_on{false};
  EngineOptions options;
  options.event_queue = 2;
  options.hook = [&](const Event&) { go_on.wait(false); };
  Rig rig(std::move(options));
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address());
  {
    std::vector<Peer> clients;
    for (int i = 0; i < 30; ++i) {
      clients.push_back(Peer::dial(address));
      round_trip(clients.back());
    }
    EXPECT_EQ(rig.stats("l").active, 30u);
  }
  EXPECT_TRUE(eventually([&] { return rig.stats("l").active == 0; }));
  EXPECT_EQ(rig.stats("l").closed, 30u);
  EXPECT_GT(rig.engine->stats().dropped_events, 80u);
  go_on = true;
  go_on.notify_all();
}

}  // namespace
}  // namespace leafcutter::node::proxy
