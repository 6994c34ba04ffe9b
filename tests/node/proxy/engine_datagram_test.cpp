// UDP over loopback: sessions and faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "loopback.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(EngineDatagrams, AClientKeepsItsUpstreamSocketAndGetsManyReplies) {
  Rig rig;
  UdpPeer upstream, client, other;
  const auto address = rig.udp_link("u", upstream.address());
  client.send_to(address, "one");
  EXPECT_EQ(upstream.receive(), "one");
  const auto session = upstream.sender();
  client.send_to(address, "two");
  EXPECT_EQ(upstream.receive(), "two");
  EXPECT_EQ(upstream.sender(), session) << "the same source port";
  other.send_to(address, "three");
  EXPECT_EQ(upstream.receive(), "three");
  EXPECT_NE(upstream.sender(), session);
  for (const auto* reply : {"a", "b", "c"}) upstream.send_to(session, reply);
  for (const auto* reply : {"a", "b", "c"}) {
    EXPECT_EQ(client.receive(), reply);
    EXPECT_EQ(client.sender(), address);
  }
  upstream.send_to(session, "");
  EXPECT_TRUE(eventually([&] { return rig.stats("u").datagrams_to_client == 4; })) << "an empty datagram is one";
  EXPECT_EQ(rig.stats("u").active, 2u);
  EXPECT_EQ(rig.stats("u").bytes_to_upstream, 11u);
}

TEST(EngineDatagrams, IPv6AndNames) {
  Rig rig;
  UdpPeer upstream("::1"), client("::1");
  client.send_to(rig.udp_link("six", upstream.address()), "x");
  EXPECT_EQ(upstream.receive(), "x");
  upstream.send_to(upstream.sender(), "y");
  EXPECT_EQ(client.receive(), "y");
  UdpPeer four, caller;
  caller.send_to(rig.udp_link("named", "localhost:" + std::to_string(port_of(four.address()))), "z");
  EXPECT_EQ(four.receive(), "z");
}

TEST(EngineDatagrams, IdleSessionsEndAndTooManyReplaceTheOneIdleLongest) {
  LinkLimits limits;
  limits.session_idle = 50ms;
  Rig rig;
  UdpPeer upstream;
  UdpPeer client;
  client.send_to(rig.udp_link("idle", upstream.address(), {}, limits), "x");
  const auto closed = rig.await(EventKind::closed, 1);
  EXPECT_EQ(closed[0].cause, Cause::idle);
  EXPECT_EQ(closed[0].bytes, 1u);
  limits = {};
  limits.sessions = 3;
  const auto few = rig.udp_link("few", upstream.address(), {}, limits);
  std::vector<UdpPeer> clients(5);
  for (auto& one : clients) one.send_to(few, "x");
  EXPECT_TRUE(eventually([&] { return rig.stats("few").accepted == 5; }));
  EXPECT_EQ(rig.stats("few").active, 3u);
  const auto replaced = rig.await(EventKind::closed, 3);
  EXPECT_EQ(replaced[1].connection, 1u);
  EXPECT_EQ(replaced[2].connection, 2u);
}

TEST(EngineDatagrams, AnUpstreamThatIsNotThereHarmsNothing) {
  Rig rig;
  UdpPeer upstream, client;
  const auto dead = rig.udp_link("dead", "127.0.0.1:" + std::to_string(dead_port()));
  const auto good = rig.udp_link("good", upstream.address());
  for (int i = 0; i < 5; ++i) client.send_to(dead, "x");
  const auto failed = rig.await(EventKind::connect_failed, 1);
  EXPECT_EQ(failed[0].cause, Cause::refused);
  client.send_to(good, "y");
  EXPECT_EQ(upstream.receive(), "y");
}

TEST(EngineDatagrams, DelayOneWayAndNotLateAfterRecovery) {
  Rig rig;
  UdpPeer upstream, client;
  const auto address = rig.udp_link("u", upstream.address(), {fault(Latency{FixedTime{80ms}}, Flow::to_upstream)});
  const auto begin = Clock::now();
  client.send_to(address, "x");
  EXPECT_EQ(upstream.receive(), "x");
  EXPECT_GE(Clock::now() - begin, 80ms);
  const auto back = Clock::now();
  upstream.send_to(upstream.sender(), "y");
  EXPECT_EQ(client.receive(), "y");
  EXPECT_LT(Clock::now() - back, 70ms);
  rig.set("u", {fault(Latency{FixedTime{30s}})});
  client.send_to(address, "held");
  rig.await(EventKind::struck, 2);
  rig.set("u", {});
  EXPECT_EQ(upstream.receive(1s), "held");
}

TEST(EngineDatagrams, BlackholeLossAndDuplication) {
  Rig rig;
  UdpPeer upstream, client;
  const auto address =
      rig.udp_link("u", upstream.address(), {fault(Blackhole{Blackhole::Mode::drop}, Flow::to_client)});
  client.send_to(address, "x");
  EXPECT_EQ(upstream.receive(), "x");
  upstream.send_to(upstream.sender(), "y");
  EXPECT_EQ(client.receive(100ms), "");
  rig.set("u", {fault(Duplicate{1}, Flow::to_upstream)});
  client.send_to(address, "twice");
  EXPECT_EQ(upstream.receive(), "twice");
  EXPECT_EQ(upstream.receive(), "twice");
  rig.set("u", {fault(Loss{0.5}, Flow::to_upstream)});
  for (int i = 0; i < 100; ++i) client.send_to(address, "z");
  EXPECT_TRUE(eventually(
      [&] { return rig.stats("u").datagrams_to_upstream - 3 + rig.stats("u").faults.at("loss").strikes == 100; }));
  EXPECT_NEAR(static_cast<double>(rig.stats("u").faults.at("loss").strikes), 50, 25);
}

TEST(EngineDatagrams, WhatDoesNotFitIntoTheMemoryIsDroppedAndSaid) {
  LinkLimits limits;
  limits.memory_bytes = 8000;
  Rig rig;
  UdpPeer upstream, client;
  const auto address = rig.udp_link("u", upstream.address(), {fault(Latency{FixedTime{1h}})}, limits);
  for (int i = 0; i < 20; ++i) client.send_to(address, std::string(1000, 'x'));
  EXPECT_TRUE(eventually([&] { return rig.stats("u").discarded == 13; }));
  EXPECT_LE(rig.stats("u").held_bytes_peak, 8000u);
  EXPECT_THAT(rig.await(EventKind::discarded, 13)[0].detail, HasSubstr("memory"));
}

TEST(EngineDatagrams, DisabledNothingPassesAndAfterwardsItDoesAgain) {
  Rig rig;
  UdpPeer upstream, client;
  const auto address = rig.udp_link("u", upstream.address());
  ASSERT_TRUE(rig.engine->set_enabled("u", false));
  client.send_to(address, "lost");
  EXPECT_EQ(upstream.receive(50ms), "");
  ASSERT_TRUE(rig.engine->set_enabled("u", true));
  client.send_to(address, "found");
  EXPECT_EQ(upstream.receive(), "found");
}

/// Answers some questions itself, as a DNS fault would.
class Answerer final : public StreamOrDatagramFilter {
 public:
  Filtered arrived(std::string_view bytes) override {
    if (bytes == "blocked?") return {{}, {{"refused", 20ms}}, false, {{"answered"}}};
    return {{{std::string(bytes)}}, {}};
  }
};
class AnswererFactory final : public FilterFactory {
 public:
  std::unique_ptr<StreamOrDatagramFilter> make(const FilterContext& context) const override {
    return context.direction == Direction::to_upstream ? std::make_unique<Answerer>() : nullptr;
  }
};

class FarewellFactory final : public FilterFactory {
  class Farewell final : public StreamOrDatagramFilter {
    Filtered arrived(std::string_view bytes) override {
      if (bytes != "bye") return {{{std::string(bytes)}}, {}};
      return {{{"it said bye"}}, {{"good bye", 30ms}}, true, {{"said good bye"}}};
    }
  };

 public:
  std::unique_ptr<StreamOrDatagramFilter> make(const FilterContext& context) const override {
    return context.direction == Direction::to_upstream ? std::make_unique<Farewell>() : nullptr;
  }
};

TEST(EngineDatagrams, AFilterMayEndItsSessionBehindWhatItSends) {
  Rig rig;
  UdpPeer upstream, client, other;
  const auto address =
      rig.udp_link("u", upstream.address(), {fault(Filter{std::make_shared<FarewellFactory>()}, {}, "farewell")});
  other.send_to(address, "hello");
  EXPECT_EQ(upstream.receive(), "hello");
  client.send_to(address, "bye");
  EXPECT_EQ(upstream.receive(), "it said bye");
  const auto session = upstream.sender();
  client.send_to(address, "too late");
  upstream.send_to(session, "too late");
  EXPECT_EQ(client.receive(), "good bye");
  const auto closed = rig.await(EventKind::closed, 1)[0];
  EXPECT_EQ(closed.cause, Cause::fault);
  EXPECT_EQ(closed.fault, "farewell");
  EXPECT_EQ(closed.connection, 2u);
  EXPECT_EQ(closed.bytes, 11u);
  EXPECT_EQ(closed.bytes_back, 8u);
  EXPECT_EQ(rig.await(EventKind::discarded, 2)[0].detail, "a fault ends the session");
  EXPECT_EQ(rig.stats("u").active, 1u) << "the twin: the other's goes on";
  // Who comes again is a new client.
  client.send_to(address, "hello again");
  EXPECT_EQ(upstream.receive(), "hello again");
  EXPECT_NE(upstream.sender(), session);
  EXPECT_EQ(rig.stats("u").accepted, 3u);
  EXPECT_EQ(rig.stats("u").held_bytes, 0u);
}

TEST(EngineDatagrams, AnAnswerPassesWhatStandsBehindItsFault) {
  const auto took = [](bool behind) {
    Rig rig;
    UdpPeer upstream, client;
    auto answerer = fault(Filter{std::make_shared<AnswererFactory>()});
    auto latency = fault(Latency{FixedTime{150ms}}, Flow::to_client);
    const auto address =
        rig.udp_link("u", upstream.address(), behind ? std::vector{answerer, latency} : std::vector{latency, answerer});
    const auto begin = Clock::now();
    client.send_to(address, "blocked?");
    EXPECT_EQ(client.receive(), "refused");
    return Clock::now() - begin;
  };
  EXPECT_GE(took(true), 170ms);
  EXPECT_LT(took(false), 20ms + 100ms * slowness);
}

TEST(EngineDatagrams, AFilterMayAnswerInTheUpstreamsPlaceLater) {
  Rig rig;
  UdpPeer upstream, client;
  const auto address = rig.udp_link("u", upstream.address(), {fault(Filter{std::make_shared<AnswererFactory>()})});
  const auto begin = Clock::now();
  client.send_to(address, "blocked?");
  EXPECT_EQ(client.receive(), "refused");
  EXPECT_GE(Clock::now() - begin, 20ms);
  client.send_to(address, "open?");
  EXPECT_EQ(upstream.receive(), "open?");
  EXPECT_EQ(rig.await(EventKind::struck, 1)[0].detail, "answered");
}

}  // namespace
}  // namespace leafcutter::node::proxy
