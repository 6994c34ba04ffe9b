// Run documents that are right: what they mean to the engine, in either version and either notation.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "node/runs/effects.hpp"
#include "node/runs/loader.hpp"
#include "tests/support/checkout.hpp"

namespace leafcutter::node::runs {
namespace {

using namespace proxy;
using namespace std::chrono_literals;

std::string data(const std::string& name) {
  return *base::read_file(tests::checkout() + "/tests/node/runs/data/" + name);
}

Run load_good(const std::string& text, const std::string& file) {
  const auto result = load_run_text(text, file);
  for (const auto& error : result.errors) ADD_FAILURE() << error.text();
  return result.run.value_or(Run{});
}

/// Everything of a run but its digest.
void expect_same(const Run& a, const Run& b) {
  EXPECT_EQ(a.schema_version, b.schema_version);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.seed, b.seed);
  ASSERT_EQ(a.proxies.size(), b.proxies.size());
  for (std::size_t i = 0; i < a.proxies.size(); ++i) EXPECT_TRUE(a.proxies[i].same_as(b.proxies[i]));
  ASSERT_EQ(a.phases.size(), b.phases.size());
  for (std::size_t i = 0; i < a.phases.size(); ++i) {
    EXPECT_EQ(a.phases[i].name, b.phases[i].name);
    EXPECT_EQ(a.phases[i].duration, b.phases[i].duration);
    EXPECT_EQ(a.phases[i].sets, b.phases[i].sets);
  }
}

TEST(GoodRuns, TheFirstVersionMeansToTheEngineWhatItMeantToFault) {
  const auto run = load_good(data("first.yaml"), "first.yaml");
  EXPECT_EQ(run.name, "checkout under a bad network");
  ASSERT_EQ(run.proxies.size(), 2U);
  EXPECT_EQ(run.proxies[0].listen, "127.0.0.1:0");
  EXPECT_EQ(run.proxies[1].transport, Transport::udp);
  ASSERT_EQ(run.phases.size(), 3U);
  EXPECT_EQ(run.phases[0].duration, 1500ms);
  EXPECT_EQ(run.phases[1].duration, 90s);
  EXPECT_EQ(run.phases[2].duration, std::nullopt);
  // A phase has a set for every proxy, an empty one for those that it does not name.
  for (const auto& phase : run.phases) {
    ASSERT_EQ(phase.sets.size(), 2U);
    for (const auto& [name, set] : phase.sets) EXPECT_EQ(set.phase, phase.name);
  }
  EXPECT_TRUE(run.phases[0].sets.at("shop").faults.empty());
  const auto& shop = run.phases[1].sets.at("shop").faults;
  ASSERT_EQ(shop.size(), 7U);
  // On TCP one sample for a stream, and only its first bytes; on UDP one for each datagram.
  EXPECT_EQ(std::get<Latency>(shop[0].effect), (Latency{NormalTime{120ms, 2500us}, Latency::Draw::first_bytes}));
  EXPECT_EQ(shop[0].selector.flow, Flow::to_client);
  EXPECT_EQ(std::get<Latency>(shop[1].effect), (Latency{UniformTime{10ms, 20ms}, Latency::Draw::first_bytes}));
  EXPECT_EQ(shop[1].id, "latency#2");
  EXPECT_EQ(std::get<Jitter>(shop[2].effect), (Jitter{5ms, 40500us}));
  EXPECT_DOUBLE_EQ(shop[2].selector.probability, 0.25);
  EXPECT_EQ(std::get<Bandwidth>(shop[3].effect).bytes_per_second, 64'000U);
  EXPECT_EQ(std::get<Bandwidth>(shop[3].effect).scope, Bandwidth::Scope::connection);
  EXPECT_EQ(std::get<Blackhole>(shop[4].effect), (Blackhole{Blackhole::Mode::stall, false}));
  // The client's socket alone; with both ways also when nothing flows, to the client when something does.
  EXPECT_EQ(std::get<Reset>(shop[5].effect), (Reset{Side::client, 0ns, Reset::When::at_once}));
  EXPECT_DOUBLE_EQ(shop[5].selector.probability, 0.01);
  EXPECT_EQ(std::get<Reset>(shop[6].effect), (Reset{Side::client, 0ns, Reset::When::first_bytes}));
  const auto& game = run.phases[1].sets.at("game").faults;
  ASSERT_EQ(game.size(), 2U);
  EXPECT_EQ(std::get<Latency>(game[0].effect), (Latency{ParetoTime{1.5, 30ms}, Latency::Draw::each_chunk}));
  EXPECT_EQ(std::get<Latency>(game[1].effect).time, Distribution(ParetoNormalTime{{2, 10ms}, {5ms, 1ms}}));
}

TEST(GoodRuns, JsonAndYamlAreTheSameDocument) {
  const auto yaml = load_good(data("first.yaml"), "first.yaml"), json = load_good(data("first.json"), "first.json");
  expect_same(yaml, json);
  EXPECT_NE(yaml.digest, json.digest);
  EXPECT_EQ(yaml.digest.size(), 64U);
}

TEST(GoodRuns, JsonMayHaveWhatTripsAYamlParser) {
  const std::string text =
      "{\"schema_version\":1,\t\"name\":\"\\ud83d\\ude00 \\/ \\\"q\\\" "
      "\\u00e9\",\n\t\"proxies\":[{\"name\":\"a\",\"protocol\":\"tcp\","
      "\"listen\":\"127.0.0.1:0\",\"upstream\":\"b:1\"}],\n\t\t\"phases\":[{\"name\":\"p\",\"duration\":null,"
      "\"proxies\":[]}]}";
  EXPECT_EQ(load_good(text, "r.json").name, "\xF0\x9F\x98\x80 / \"q\" \xC3\xA9");
}

TEST(GoodRuns, AnAliasStandsForWhatItNames) {
  const std::string aliased =
      "schema_version: 1\nproxies: [ { name: a, protocol: tcp, listen: \"127.0.0.1:0\", upstream: \"b:1\" } ]\n"
      "phases:\n  - { name: p, duration: 1s, proxies: [ { proxy: a, faults: &slow [ { type: blackhole, flow: both } ] "
      "} ] }\n"
      "  - { name: q, proxies: [ { proxy: a, faults: *slow } ] }\n";
  const auto run = load_good(aliased, "r.yaml");
  ASSERT_EQ(run.phases.size(), 2U);
  EXPECT_EQ(run.phases[0].sets.at("a").faults, run.phases[1].sets.at("a").faults);
  EXPECT_EQ(run.phases[1].sets.at("a").faults.size(), 1U);
}

TEST(GoodRuns, WhatAFaultWaitsForIsReadWithItsProxy) {
  const auto run = load_good(
      "schema_version: 2\nproxies:\n  - { name: a, protocol: tcp, listen: \"127.0.0.1:0\", upstream: \"b:1\" }\n"
      "  - { name: d, protocol: udp, listen: \"127.0.0.1:0\", upstream: \"b:53\" }\n"
      "phases:\n  - name: p\n    proxies:\n      - proxy: a\n        faults:\n"
      "          - { type: reset, after: { record: struck, proxy: d, fault: gone, count: 3 } }\n"
      "          - { type: blackhole, after: { record: connection-closed, connection: 4, cause: client-reset } }\n"
      "          - { type: reset }\n"
      "      - proxy: d\n        faults: [ { type: dns, id: gone, case: nx-domain, types: [A], after: { record: "
      "accepted } "
      "} ]\n",
      "r.yaml");
  ASSERT_EQ(run.phases.size(), 1U);
  const auto& awaited = run.phases[0].awaited;
  ASSERT_EQ(awaited.size(), 2U);
  EXPECT_EQ(awaited.at("a"),
            (std::map<std::string, Awaited>{{"reset", {EventKind::struck, "d", "gone", {}, {}, 3}},
                                            {"blackhole", {EventKind::closed, "a", "", 4, Cause::client_reset, 1}}}));
  // One of DNS may be several to the engine: all of them wait.
  const auto& set = run.phases[0].sets.at("d").faults;
  ASSERT_EQ(awaited.at("d").size(), set.size());
  for (const auto& fault : set) EXPECT_EQ(awaited.at("d").at(fault.id), (Awaited{EventKind::accepted, "d"}));
}

TEST(GoodRuns, SpansAreReadAsFaultReadsThem) {
  const std::pair<const char*, std::chrono::nanoseconds> spans[] = {
      {"250ms", 250ms}, {"30s", 30s},     {"2m", 2min},         {"1m 30s", 90s},   {"1m30s", 90s},
      {"2 hours", 2h},  {"1.5s", 1500ms}, {"1day", 24h},        {"2 weeks", 336h}, {"1h 0m 1sec", 3601s},
      {"100us", 100us}, {"7 ns", 7ns},    {"1month", 2630016s}, {"1 M", 2630016s}, {"0.5 min", 30s}};
  for (const auto& [text, span] : spans) {
    const auto run = load_good(
        "schema_version: 1\nproxies: [ { name: a, protocol: tcp, listen: \"127.0.0.1:0\", upstream: \"b:1\" } ]\n"
        "phases: [ { name: p, duration: " +
            std::string(text) + ", proxies: [] } ]\n",
        "r.yaml");
    ASSERT_EQ(run.phases.size(), 1U) << text;
    EXPECT_EQ(run.phases[0].duration, span) << text;
  }
}

TEST(GoodRuns, TheSecondVersionHasEveryEffectOfTheEngine) {
  const auto run = load_good(data("second.yaml"), "second.yaml");
  EXPECT_EQ(run.seed, 18'446'744'073'709'551'615U);
  EXPECT_EQ(run.proxies[0].listen, "localhost:0");
  EXPECT_EQ(run.proxies[0].limits.connections, 10U);
  EXPECT_EQ(run.proxies[0].limits.connect_timeout, 2s);
  std::map<std::size_t, Fault> by_effect;
  for (const auto& phase : run.phases)
    for (const auto& [name, set] : phase.sets)
      for (const auto& fault : set.faults) by_effect.emplace(fault.effect.index(), fault);
  for (const auto& kind : effect_kinds()) {
    ASSERT_TRUE(by_effect.contains(kind.sample.index())) << kind.name << " is not in second.yaml";
  }
  const auto effect = [&]<class Wanted>(Wanted) {
    return std::get<Wanted>(by_effect.at(Effect(Wanted{}).index()).effect);
  };
  EXPECT_EQ(effect(Latency{}), (Latency{FixedTime{20500us}, Latency::Draw::connection, 1s}));
  EXPECT_EQ(effect(Bandwidth{}).bucket, "uplink");
  EXPECT_EQ(effect(Blackhole{}), (Blackhole{Blackhole::Mode::drop, true}));
  EXPECT_EQ(effect(Corrupt{}).flips, (std::vector<Corrupt::Flip>{{3, 128}, {9, 1}}));
  EXPECT_EQ(effect(Cut{}), (Cut{3s, 100, Ending::reset}));
  EXPECT_EQ(effect(Slice{}), (Slice{10, 2, 1ms}));
  EXPECT_EQ(effect(Reset{}), (Reset{Side::upstream, 5ms, Reset::When::first_bytes}));
  EXPECT_EQ(effect(HalfOpen{}), (HalfOpen{Side::client, 7ms}));
  EXPECT_EQ(effect(BurstLoss{}), (BurstLoss{0.1, 0.5, 0.01, 0.9}));
  EXPECT_EQ(effect(Reorder{}), (Reorder{3, 50ms}));
  EXPECT_EQ(effect(Duplicate{}).copies, 2U);
  EXPECT_EQ(effect(Loss{}).probability, 0.5);
  EXPECT_EQ(effect(SlowAccept{}).time, Distribution(UniformTime{1ms, 2ms}));
  const auto& latency = by_effect.at(Effect(Latency{}).index());
  EXPECT_EQ(latency.id, "far");
  EXPECT_EQ(latency.selector.connections, (Ordinals{2, 10, 2}));
  EXPECT_EQ(latency.selector.chunks, (Ordinals{1, 5, 1}));
  EXPECT_EQ(latency.selector.bytes, (ByteRange{0, 100}));
  EXPECT_EQ(latency.selector.peers, (std::vector<std::string>{"127.0.0.1", "10.0.0.0/8"}));
  EXPECT_EQ(latency.selector.probability, 0.5);
  EXPECT_EQ(latency.selector.draw, Selector::Draw::each_chunk);
}

TEST(GoodRuns, FaultsOfDnsAreFiltersOfTheEngine) {
  const auto faults_of = [](const std::string& version, const std::string& protocol, const std::string& fault) {
    const auto run =
        load_good("schema_version: " + version + "\nproxies: [ { name: a, protocol: " + protocol +
                      ", listen: \"127.0.0.1:0\", upstream: \"b:53\" } ]\nphases: [ { name: p, proxies: [ { "
                      "proxy: a, faults: [ " +
                      fault + " ] } ] } ]\n",
                  "r.yaml");
    return run.phases.empty() ? std::vector<Fault>{} : run.phases[0].sets.at("a").faults;
  };
  // Every case of fault's; a delay of nothing is allowed there.
  for (const auto* word : {"delay", "timeout", "truncated", "refused", "serv-fail", "nx-domain", "empty-answer"}) {
    const auto faults = faults_of("1", "udp", "{ type: dns, case: " + std::string(word) + ", delay_ms: null }");
    ASSERT_EQ(faults.size(), 1U) << word;
    EXPECT_TRUE(std::holds_alternative<Filter>(faults[0].effect)) << word;
    EXPECT_EQ(faults[0].id, "dns") << word;
  }
  // An address for A, and an empty answer for the rest.
  const auto random = faults_of("1", "udp", "{ type: dns, case: random-a, delay_ms: 5 }");
  ASSERT_EQ(random.size(), 2U);
  EXPECT_EQ(random[0].id, "dns");
  EXPECT_EQ(random[1].id, "dns (other types)");
  const auto narrowed =
      faults_of("2", "tcp",
                "{ type: dns, case: wrong-answers, addresses: [10.0.0.1], name: \"*.internal\", types: "
                "[A], occurrences: { first: 2 }, select: { peers: [127.0.0.1] } }");
  ASSERT_EQ(narrowed.size(), 1U);
  EXPECT_EQ(narrowed[0].selector.peers, (std::vector<std::string>{"127.0.0.1"}));
}

TEST(Effects, AreMadeOfAKindAndItsParameters) {
  EXPECT_EQ(std::get<Limit>(*effect_from("limit", {{"bytes", 7}})).bytes, 7U);
  EXPECT_EQ(std::get<Refuse>(*effect_from("refuse", nullptr)), Refuse{});
  EXPECT_EQ(std::get<Jitter>(*effect_from("jitter", {{"min_delay_ms", 1.5}, {"max_delay_ms", 2}})),
            (Jitter{1500us, 2ms}));
  EXPECT_EQ(effect_from("lmit", nullptr).error().message, "unknown kind of fault \"lmit\"; did you mean \"limit\"?");
  EXPECT_EQ(effect_from("limit", nullptr).error().message, "limit: it lacks \"bytes\": how many");
  EXPECT_EQ(effect_from("limit", {{"bytes", "x"}}).error().message,
            "limit.bytes: expected a whole number from 0 to 18446744073709551615, found \"x\"");
  EXPECT_EQ(effect_from("limit", {{"bytes", 1}, {"byte", 1}}).error().message,
            "unknown key \"byte\" in limit; did you mean \"bytes\"?");
  EXPECT_EQ(effect_from("jitter", {{"min_delay_ms", 3}, {"max_delay_ms", 2}}).error().message,
            "jitter.min_delay_ms: 3 is greater than max_delay_ms, 2; exchange them");
  EXPECT_EQ(effect_from("cut", Value::object()).error().message,
            "cut: it says nothing: it needs at least one of after_ms and after_bytes");
}

TEST(PhaseAt, IsAFunctionOfTheTimeSinceTheStart) {
  runs::Run run;
  run.phases = {{"a", 10ms, {}}, {"b", 5ms, {}}, {"c", std::nullopt, {}}};
  const auto at = [&](std::chrono::nanoseconds time) { return phase_at(run, time); };
  EXPECT_EQ(at(0ns).phase, 0U);
  EXPECT_EQ(at(0ns).until, 10ms);
  EXPECT_EQ(at(10ms - 1ns).phase, 0U);
  EXPECT_EQ(at(10ms).phase, 1U);
  EXPECT_EQ(at(10ms).until, 15ms);  // since the start: what came late before does not move it
  EXPECT_EQ(at(14ms).until, 15ms);
  EXPECT_EQ(at(15ms).phase, 2U);
  EXPECT_EQ(at(15ms).until, std::nullopt);
  EXPECT_FALSE(at(1000h).finished);
  run.phases.back().duration = 1ms;
  EXPECT_FALSE(at(16ms - 1ns).finished);
  EXPECT_TRUE(at(16ms).finished);
  EXPECT_EQ(at(16ms).phase, 2U);
  // Whoever comes much too late is in the right phase all the same.
  EXPECT_EQ(at(12ms).phase, 1U);
}

}  // namespace
}  // namespace leafcutter::node::runs
