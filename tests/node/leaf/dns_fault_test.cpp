// A service's lookups by getaddrinfo(), in real leaves: struck without a word of its configuration changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// `shop` and `idle` look names up; only shop's lookups are explored. One attempt of a second, so that silence is
/// short.
const char* const looking_up = R"(
leafcutter: 1
name: looking-up
services:
  broker:
    run: [bin/names, "7000"]
    ports: { http: { port: 7000, protocol: http } }
    ready: { http: /health }
  shop:
    run: [bin/names, "8080"]
    ports: { http: { port: 8080, protocol: http } }
    environment: { RES_OPTIONS: "timeout:1 attempts:1" }
    ready: { http: /health }
  idle:
    run: [bin/names, "8081"]
    ports: { http: { port: 8081, protocol: http } }
    ready: { http: /health }
workload:
  - { get: shop/names/broker, within: 5s }
  - { get: shop/names/broker, within: 5s }
  - { get: shop/names/nobody.example, within: 5s }
  - { get: shop/names/localhost, within: 5s }
  - { get: idle/names/broker, within: 5s }
)";
const char* const exploring = R"(
explore:
  faults:
    - { on: shop, dns: [dns-serv-fail, dns-timeout, dns-nx-domain, dns-random-address] }
)";

class DnsInALeaf : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::copy_file(NAMES_PROGRAM, nest_.folder() + "/bin/names"); }

  Ran run(std::vector<scenarios::Fault> faults) {
    nest_.give(std::string(looking_up) + exploring);
    scenarios::Plan plan;
    plan.faults = std::move(faults);
    return nest_.run(plan);
  }

  static scenarios::Fault at(const std::string& kind, const std::string& resource, std::uint32_t occurrence = 1,
                             Value params = Value::object()) {
    return {kind, {"shop -> dns", "query", resource}, occurrence, std::move(params), {}};
  }

  /// What the service was told by its n-th lookup.
  static std::string told(const Ran& ran, std::size_t n) {
    const auto replies = ran.of("reply");
    return n < replies.size() ? replies[n].attrs["json"].dump() : "no reply";
  }

  static std::map<std::string, int> sites(const Ran& ran) {
    std::map<std::string, int> counted;
    const auto all = ran.of("sites");
    if (all.empty()) return counted;
    for (const auto& site : all[0].attrs["sites"])
      if (site[1] == "query") counted[site[0].get<std::string>() + " " + site[2].get<std::string>()] = site[3];
    return counted;
  }

  static constexpr const char* right = R"({"addresses":["fd77::1","10.77.0.1"],"error":""})";
  static constexpr const char* right_of_hosts = R"({"addresses":["10.77.0.1"],"error":""})";
  static constexpr const char* no_name = R"({"addresses":[],"error":"EAI_NONAME"})";
  static constexpr const char* again = R"({"addresses":[],"error":"EAI_AGAIN"})";

  Nest nest_;
};

TEST_F(DnsInALeaf, WithoutAFaultItIsAnsweredAndItsSitesAreSeen) {
  const auto ran = run({});
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_EQ(told(ran, 0), right);
  EXPECT_EQ(told(ran, 1), right);
  EXPECT_EQ(told(ran, 2), no_name);
  EXPECT_THAT(told(ran, 3), HasSubstr("127.0.0.1"));
  EXPECT_EQ(told(ran, 4), right_of_hosts) << "by its hosts file";
  auto counted = sites(ran);
  EXPECT_EQ(counted["shop -> dns broker A"], 2);
  EXPECT_EQ(counted["shop -> dns broker AAAA"], 2);
  EXPECT_EQ(counted["shop -> dns nobody.example A"], 1);
  for (const auto& [site, count] : counted) {
    EXPECT_EQ(site.rfind("shop -> dns ", 0), 0u) << site;
    EXPECT_EQ(site.find("localhost"), std::string::npos) << "that is in every hosts file";
  }
}

TEST_F(DnsInALeaf, AFailureOfTheResolverIsFeltByOneLookupAlone) {
  const auto ran = run({at("dns-serv-fail", "broker A", 2), at("dns-serv-fail", "broker AAAA", 2)});
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(told(ran, 0), right);
  EXPECT_EQ(told(ran, 1), again);
  EXPECT_EQ(told(ran, 2), no_name);
  EXPECT_EQ(told(ran, 4), right_of_hosts);
  const auto fired = ran.of("fault.fired", "shop -> dns");
  ASSERT_EQ(fired.size(), 2u);
  EXPECT_EQ(fired[0].attrs["evidence"]["rcode"], "SERVFAIL");
  EXPECT_EQ(ran.of("fault.undone", "shop -> dns").size(), 2u);
}

TEST_F(DnsInALeaf, ANameThatDoesNotExistForOnce) {
  const auto ran = run({at("dns-nx-domain", "broker A"), at("dns-nx-domain", "broker AAAA")});
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(told(ran, 0), no_name);
  EXPECT_EQ(told(ran, 1), right);
}

TEST_F(DnsInALeaf, AFaultOfOneTypeLeavesTheOther) {
  const auto ran = run({at("dns-empty-answer", "broker AAAA", 1), at("dns-empty-answer", "broker A", 2)});
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(told(ran, 0), R"({"addresses":["10.77.0.1"],"error":""})");
  EXPECT_EQ(told(ran, 1), R"({"addresses":["fd77::1"],"error":""})");
  const auto fired = ran.of("fault.fired", "shop -> dns");
  ASSERT_EQ(fired.size(), 2u);
  EXPECT_EQ(fired[0].attrs["evidence"]["type"], "AAAA");
  EXPECT_EQ(fired[1].attrs["evidence"]["type"], "A");
}

TEST_F(DnsInALeaf, SilenceIsWaitedForAndThenGivenUp) {
  const auto ran = run({at("dns-timeout", "broker A"), at("dns-timeout", "broker AAAA")});
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(told(ran, 0), again);
  EXPECT_EQ(told(ran, 1), right);
  const auto connects = ran.of("connect", "workload -> shop"), replies = ran.of("reply");
  ASSERT_GE(connects.size(), 2u);
  EXPECT_GE(replies.at(0).at - connects[0].at, milliseconds(990));
  EXPECT_EQ(ran.of("fault.fired").size(), 2u) << "the twin: the second lookup is answered";
}

TEST_F(DnsInALeaf, AWrongAddressIsBelieved) {
  const auto ran = run({at("dns-random-address", "broker A"), at("dns-empty-answer", "broker AAAA")});
  SCOPED_TRACE(ran.text());
  const auto fired = ran.of("fault.fired", "shop -> dns");
  ASSERT_EQ(fired.size(), 2u);
  const auto address =
      fired[fired[0].attrs["kind"] == "dns-random-address" ? 0 : 1].attrs["evidence"]["address"].get<std::string>();
  EXPECT_EQ(address.rfind("198.1", 0), 0u) << address;
  EXPECT_EQ(told(ran, 0), R"({"addresses":[")" + address + R"("],"error":""})");
  EXPECT_EQ(told(ran, 1), right);
}

TEST_F(DnsInALeaf, TruncationIsAskedAgainOverTcp) {
  const auto ran = run({at("dns-truncated", "broker A")});
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(told(ran, 0), right);
  EXPECT_EQ(ran.of("fault.fired", "shop -> dns").size(), 1u);
  EXPECT_EQ(sites(ran)["shop -> dns broker A"], 3) << "two lookups, and the one over TCP";
}

TEST_F(DnsInALeaf, WhatNamesNoLookupStrikesNothing) {
  const auto ran =
      run({at("dns-serv-fail", "broker MX"), at("dns-serv-fail", "idle A"), at("dns-timeout", "broker A", 3)});
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(told(ran, 0), right);
  EXPECT_EQ(told(ran, 1), right);
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

TEST_F(DnsInALeaf, AScenarioThatExploresNoneHasNoResolverAndNoSuchSites) {
  nest_.give(looking_up);
  const auto ran = nest_.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(told(ran, 0), right_of_hosts);
  EXPECT_TRUE(sites(ran).empty());
}

}  // namespace
}  // namespace leafcutter::node::testing
