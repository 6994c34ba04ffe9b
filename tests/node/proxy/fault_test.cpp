#include "node/proxy/fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "node/proxy/gate.hpp"
#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::proxy {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string complaint(Effect effect, Selector selector = {}, Transport transport = Transport::tcp) {
  const auto result = checked({"", {{"", selector, effect}}}, transport);
  return result ? "" : result.error().message;
}

TEST(Faults, BadValuesAreNamedWithTheirPlaceAndWhatWouldDo) {
  Selector often;
  often.probability = 1.5;
  EXPECT_EQ(complaint(Latency{}, often),
            "faults[0] (latency) selector.probability: 1.500000 is no probability; a number from 0 to 1 would do");
  EXPECT_THAT(complaint(Jitter{5ms, 1ms}), HasSubstr("min: greater than max"));
  EXPECT_THAT(complaint(Latency{UniformTime{5ms, 1ms}}), HasSubstr("time.min"));
  EXPECT_THAT(complaint(Latency{ParetoTime{0, 1ms}}), HasSubstr("time.shape"));
  EXPECT_THAT(complaint(Latency{FixedTime{-1ms}}), HasSubstr("negative"));
  EXPECT_THAT(complaint(Latency{.spread = -1ms}), HasSubstr("spread: a negative duration"));
  EXPECT_THAT(complaint(Blackhole{.close_after = -1ms}), HasSubstr("close_after: a negative duration"));
  EXPECT_THAT(complaint(Blackhole{Blackhole::Mode::drop, false, 1s}, {}, Transport::udp), HasSubstr("close_after"));
  EXPECT_THAT(complaint(Cut{}), HasSubstr("after_bytes"));
  EXPECT_THAT(complaint(Slice{0}), HasSubstr("average_bytes"));
  EXPECT_THAT(complaint(HalfOpen{Side::both}), HasSubstr("gone"));
  EXPECT_THAT(complaint(Filter{}), HasSubstr("no filter"));
  EXPECT_THAT(complaint(Bandwidth{1, 0, Bandwidth::Scope::shared}), HasSubstr("bucket"));
  Selector peers;
  peers.peers = {"10.0.0.0/40"};
  EXPECT_THAT(complaint(Latency{}, peers), HasSubstr("\"10.0.0.0/40\" is no address"));
  Selector bytes;
  bytes.bytes = {5, 5};
  EXPECT_THAT(complaint(Latency{}, bytes), HasSubstr("selector.bytes"));
  Selector chunks;
  chunks.chunks = {2, 2};
  EXPECT_THAT(complaint(Reset{}, chunks), HasSubstr("strikes connections"));
}

TEST(Faults, WhatATransportCannotDoIsRefused) {
  EXPECT_THAT(complaint(Reset{}, {}, Transport::udp),
              HasSubstr("does not exist on udp; the link would have to be tcp"));
  EXPECT_THAT(complaint(Loss{}), HasSubstr("does not exist on tcp; the link would have to be udp"));
  EXPECT_EQ(complaint(Loss{}, {}, Transport::udp), "");
}

TEST(Faults, IdsAreFilledInAndMustDiffer) {
  const auto filled =
      checked({"", {{"", {}, Latency{}}, {"latency", {}, Jitter{}}, {"", {}, Latency{}}}}, Transport::tcp);
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->faults[0].id, "latency#2");
  EXPECT_EQ(filled->faults[2].id, "latency#3");
  const auto twice = checked({"", {{"a", {}, Latency{}}, {"a", {}, Latency{}}}}, Transport::tcp);
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("\"a\""));
}

sockaddr_storage address(const std::string& text) { return literal_address({text, 1})[0].storage; }

TEST(Subnets, HaveWhatTheyShould) {
  EXPECT_TRUE(Subnet::parse("127.0.0.1")->has(address("127.0.0.1")));
  EXPECT_FALSE(Subnet::parse("127.0.0.1")->has(address("127.0.0.2")));
  EXPECT_TRUE(Subnet::parse("10.32.0.0/11")->has(address("10.63.1.2")));
  EXPECT_FALSE(Subnet::parse("10.32.0.0/11")->has(address("10.64.0.0")));
  EXPECT_TRUE(Subnet::parse("0.0.0.0/0")->has(address("1.2.3.4")));
  EXPECT_FALSE(Subnet::parse("0.0.0.0/0")->has(address("::1")));
  EXPECT_TRUE(Subnet::parse("10.0.0.1")->has(address("::ffff:10.0.0.1")));
  EXPECT_TRUE(Subnet::parse("fd00::/8")->has(address("fd12::1")));
  for (const auto* bad : {"", "x", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1", "::/129"})
    EXPECT_FALSE(Subnet::parse(bad)) << bad;
}

TEST(Addresses, AreReadAndBadOnesNamed) {
  const auto v6 = parse_host_port("[::1]:80", "listen");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(literal_address(*v6)[0].text(), "[::1]:80");
  for (const auto* bad : {"", "80", "host", "host:", "host:x", "host:70000", "::1:80", ":80"}) {
    const auto result = parse_host_port(bad, "upstream");
    ASSERT_FALSE(result) << bad;
    EXPECT_THAT(result.error().message, HasSubstr("upstream: \"" + std::string(bad) + "\""));
  }
}

}  // namespace
}  // namespace leafcutter::node::proxy
