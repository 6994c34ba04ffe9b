// What earlier fault proxies got wrong about UDP: one bad exchange that stopped all, faults that were not counted,
// faults that struck though their probability was zero. predecessors_index_test.cpp says which defect is whose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loopback.hpp"
#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Predecessors, ChainedDatagramFaultsAreAllCounted) {
  Rig rig;
  UdpPeer upstream, client;
  const auto address =
      rig.udp_link("u", upstream.address(),
                   {fault(Latency{FixedTime{5ms}}, Flow::to_upstream), fault(Jitter{3ms, 3ms}, Flow::to_upstream),
                    fault(Blackhole{Blackhole::Mode::drop}, Flow::to_upstream)});
  client.send_to(address, "x");
  EXPECT_TRUE(eventually([&] { return rig.stats("u").strikes == 3; }));
  for (const auto* id : {"latency", "jitter", "blackhole"}) EXPECT_EQ(rig.stats("u").faults.at(id).strikes, 1u) << id;
  EXPECT_EQ(rig.stats("u").faults.at("latency").delay + rig.stats("u").faults.at("jitter").delay, 8ms);
  EXPECT_EQ(rig.stats("u").datagrams_to_upstream, 0u);
}

TEST(Predecessors, AnUpstreamWithoutAnAddressStopsNobody) {
  Rig rig;
  UdpPeer upstream, client;
  const auto lost = rig.udp_link("lost", "nowhere.invalid:9");
  const auto good = rig.udp_link("good", upstream.address());
  client.send_to(lost, "x");
  const auto failed = rig.await(EventKind::connect_failed, 1);
  EXPECT_EQ(failed[0].cause, Cause::unresolved);
  EXPECT_THAT(failed[0].detail, HasSubstr("nowhere.invalid"));
  client.send_to(good, "y");
  EXPECT_EQ(upstream.receive(), "y");
  client.send_to(lost, "and it is asked again for the next");
  rig.await(EventKind::connect_failed, 2);
}

TEST(Predecessors, AnUpstreamThatComesLateIsFound) {
  Rig rig;
  UdpPeer client;
  const auto port = dead_port();
  const auto address = rig.udp_link("u", "127.0.0.1:" + std::to_string(port));
  client.send_to(address, "nobody hears this");
  EXPECT_EQ(rig.await(EventKind::connect_failed, 1)[0].cause, Cause::refused);
  UdpPeer upstream("127.0.0.1", port);
  client.send_to(address, "x");
  EXPECT_EQ(upstream.receive(), "x");
  upstream.send_to(upstream.sender(), "y");
  EXPECT_EQ(client.receive(), "y");
}

TEST(Predecessors, WithoutDescriptorsADatagramIsLostAndSaidAndOthersGoOn) {
  Rig rig;
  UdpPeer upstream, first, second;
  const auto address = rig.udp_link("u", upstream.address());
  first.send_to(address, "1");
  EXPECT_EQ(upstream.receive(), "1");
  const auto highest = [] { return static_cast<rlim_t>(base::UniqueFd(::dup(0)).get()); };
  {
    const DescriptorLimit none(highest());
    second.send_to(address, "2");
    EXPECT_EQ(rig.await(EventKind::connect_failed, 1)[0].cause, Cause::scarce);
    first.send_to(address, "3");
    EXPECT_EQ(upstream.receive(), "3") << "an open session is not affected";
  }
  second.send_to(address, "4");
  EXPECT_EQ(upstream.receive(), "4");
  EXPECT_EQ(rig.stats("u").active, 2u);
}

TEST(Predecessors, ProbabilityZeroTouchesNoDatagramAndNoDecision) {
  Selector never;
  never.probability = 0;
  std::vector<Fault> zero;
  for (const Effect& effect :
       {Effect(Latency{FixedTime{1h}}), Effect(Jitter{1h, 2h}), Effect(Bandwidth{1}),
        Effect(Blackhole{Blackhole::Mode::drop}), Effect(Corrupt{}), Effect(Truncate{0}), Effect(Loss{1}),
        Effect(BurstLoss{1, 0, 1, 1}), Effect(Duplicate{3}), Effect(Reorder{5, 1h})})
    zero.push_back(fault(effect, never, "never " + std::to_string(zero.size())));
  const auto arrived = [](std::vector<Fault> faults) {
    faults.insert(faults.begin() + static_cast<std::ptrdiff_t>(faults.size() / 2),
                  fault(Loss{0.5}, Selector{Flow::to_upstream}, "probe"));
    EngineOptions options;
    options.seed = 5;
    Rig rig(std::move(options));
    UdpPeer upstream, client;
    const auto address = rig.udp_link("u", upstream.address(), std::move(faults));
    std::string all;
    for (int i = 0; i < 60; ++i) {
      client.send_to(address, std::string(1, static_cast<char>('!' + i)));
      // One after the other: the socket's queue is no part of this.
      EXPECT_TRUE(eventually([&] {
        const auto stats = rig.stats("u");
        return stats.datagrams_to_upstream + stats.strikes == static_cast<std::uint64_t>(i) + 1;
      }));
    }
    for (std::string one; !(one = upstream.receive(0ms)).empty();) all += one;
    for (const auto& one : rig.events(EventKind::struck)) EXPECT_EQ(one.fault, "probe");
    EXPECT_THAT(rig.events(EventKind::passed_over), IsEmpty());
    return all;
  };
  const auto without = arrived({});
  EXPECT_EQ(arrived(zero), without);
  EXPECT_GT(without.size(), 10u);
  EXPECT_LT(without.size(), 50u);
}

}  // namespace
}  // namespace leafcutter::node::proxy
