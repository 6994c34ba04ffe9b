// Rules of links on real connections: which of them are struck, and what of them; and each time one that is not.
#include <gtest/gtest.h>
#include <poll.h>

#include "node/links/session_choice.hpp"
#include "rig.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/link_aim.hpp"
#include "scenarios/link_rule.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;
using std::chrono::milliseconds;

constexpr const char* some_event = " after=\"ready service=broker\"";

Fault ruled_link(const std::string& rule, scenarios::Protocol protocol, std::uint64_t seed = 0) {
  scenarios::LinkRuleScope scope;
  scope.links = {{"shop", "broker", "http", protocol, 80, true}};
  scenarios::Mistake mistake;
  auto faults = scenarios::read_link_rule(rule, scope, mistake);
  EXPECT_TRUE(faults) << rule << ": " << mistake.message;
  if (!faults) return {};
  faults->front().aim->seed = seed;
  return faults->front();
}

void echo_each_byte(Peer& peer) {
  for (;;) {
    const auto bytes = peer.receive(1);
    if (bytes.empty() || !peer.try_send(bytes)) return;
  }
}

/// An echo behind a TCP link under one rule.
struct RuledEcho {
  explicit RuledEcho(const std::string& rule, std::uint64_t seed = 0, bool later_never_comes = false)
      : fault(ruled_link(rule, scenarios::Protocol::tcp, seed)),
        callee(echo_each_byte),
        rig(callee.port(),
            {.protocol = scenarios::Protocol::tcp, .faults = {fault}, .later_never_comes = later_never_comes}) {}

  /// The connection of that number is open, as far as the link knows.
  Peer open(std::size_t number) {
    auto peer = rig.dial();
    rig.await_events(events::connect, number);
    return peer;
  }
  /// The event that the rule waits for is there.
  void see() { rig.sites->seen(0); }

  Fault fault;
  Callee callee;
  Rig rig;
};

bool echoes(Peer& peer, const std::string& bytes = "x") {
  return peer.try_send(bytes) && peer.receive(bytes.size()) == bytes;
}

/// "1010": which of so many connections in a row carry.
std::string carried(RuledEcho& echo, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    auto peer = echo.rig.dial();
    out += echoes(peer) ? '1' : '0';
  }
  return out;
}

TEST(LinkRules, StrikeTheConnectionsThatTheyCount) {
  const std::pair<const char*, const char*> rules[] = {
      {"reset #2", "10111"},        {"reset first 2", "00111"}, {"reset every 2", "10101"},
      {"reset from 4", "11100"},    {"refuse #3", "11011"},     {"reset-after-accept every 3", "11011"},
      {"reset:caller #2", "10111"}, {"reset #9", "11111"},      {"cut:0,,reset #1", "01111"},
  };
  for (const auto& [rule, expected] : rules) {
    RuledEcho echo(rule);
    EXPECT_EQ(carried(echo, 5), expected) << rule;
  }
}

TEST(LinkRules, SayWithEvidenceThatTheyStruckAndHowItEnded) {
  RuledEcho echo("reset every 2");
  EXPECT_EQ(carried(echo, 4), "1010");
  echo.rig.await_events(events::close, 4);
  const auto fired = echo.rig.await_events(events::fault_fired, 1);
  EXPECT_EQ(fired[0].attrs["evidence"], (Value{{"conn", 2}}));
  echo.rig.sites->finish();
  const auto undone = echo.rig.await_events(events::fault_undone, 1);
  ASSERT_EQ(undone.size(), 1u);
  EXPECT_EQ(undone[0].attrs["strikes"], 2);
}

TEST(LinkRules, ThatSelectNothingFireNothing) {
  RuledEcho echo("reset #5");
  EXPECT_EQ(carried(echo, 4), "1111");
  echo.rig.await_events(events::close, 4);
  echo.rig.sites->finish();
  EXPECT_TRUE(echo.rig.events(events::fault_fired).empty());
  EXPECT_TRUE(echo.rig.events(events::fault_undone).empty());
}

TEST(LinkRules, AfterAnEventStrikeWhatIsOpenAndWhatComesLater) {
  RuledEcho echo(std::string("reset") + some_event);
  auto idle = echo.open(1);
  auto busy = echo.open(2);
  ASSERT_TRUE(echoes(idle));
  ASSERT_TRUE(echoes(busy));
  EXPECT_TRUE(echo.rig.events(events::fault_fired).empty());
  echo.see();
  EXPECT_EQ(idle.await_ending(), "ECONNRESET") << "at once, although it is idle";
  EXPECT_EQ(busy.await_ending(), "ECONNRESET");
  EXPECT_EQ(carried(echo, 2), "00");
}

TEST(LinkRules, CountFromTheEventOnTheOldestFirst) {
  RuledEcho echo(std::string("reset #2") + some_event);
  auto first = echo.open(1);
  auto second = echo.open(2);
  auto third = echo.open(3);
  first.close();
  echo.rig.await_events(events::close, 1);
  echo.see();
  EXPECT_EQ(third.await_ending(), "ECONNRESET") << "the second of those that are open";
  EXPECT_TRUE(echoes(second));
  EXPECT_EQ(carried(echo, 2), "11");
  EXPECT_EQ(echo.rig.await_events(events::fault_fired, 1)[0].attrs["evidence"], (Value{{"conn", 3}}));
}

TEST(LinkRules, CountLaterConnectionsAfterThoseThatWereOpen) {
  RuledEcho echo(std::string("reset every 3") + some_event);
  auto first = echo.open(1);
  auto second = echo.open(2);
  echo.see();
  EXPECT_EQ(carried(echo, 4), "0110") << "the third and the sixth";
  EXPECT_TRUE(echoes(first));
  EXPECT_TRUE(echoes(second));
}

TEST(LinkRules, CountWhatIsOpenBeforeAConnectionThatComesAtOnce) {
  RuledEcho echo(std::string("reset #1") + some_event, 0, true);
  auto open = echo.open(1);
  echo.see();
  EXPECT_EQ(carried(echo, 1), "1");
  EXPECT_EQ(open.await_ending(), "ECONNRESET");
}

TEST(LinkRules, WhoseEventIsNotSeenStrikeNothing) {
  RuledEcho echo(std::string("reset") + some_event);
  EXPECT_EQ(carried(echo, 3), "111");
  EXPECT_TRUE(echo.rig.events(events::fault_fired).empty());
}

TEST(LinkRules, AtTheOpeningCountNewConnectionsAlone) {
  for (const auto* rule : {"refuse first 2", "reset-after-accept first 2"}) {
    RuledEcho echo(std::string(rule) + some_event);
    auto open = echo.open(1);
    echo.see();
    EXPECT_EQ(carried(echo, 3), "001") << rule;
    EXPECT_TRUE(echoes(open)) << rule;
  }
}

TEST(LinkRules, ChangeTheBytesOfOpenConnections) {
  RuledEcho echo(std::string("latency:60ms flow=to-caller") + some_event);
  auto peer = echo.open(1);
  ASSERT_TRUE(echoes(peer));
  echo.see();
  ASSERT_TRUE(eventually([&] {
    const auto begin = std::chrono::steady_clock::now();
    return echoes(peer) && std::chrono::steady_clock::now() - begin >= milliseconds(55);
  }));
  const auto evidence = echo.rig.await_events(events::fault_fired, 1)[0].attrs["evidence"];
  EXPECT_EQ(evidence["direction"], "to-caller");
  EXPECT_GE(evidence["offset"], 1) << "what passed before the event was not late";
}

TEST(LinkRules, BeginAfterSoManyBytes) {
  RuledEcho echo("blackhole:drop,to-service after-bytes=3");
  auto peer = echo.open(1);
  EXPECT_TRUE(echoes(peer, "abc"));
  EXPECT_TRUE(echo.rig.events(events::fault_fired).empty());
  peer.send("def");
  const auto fired = echo.rig.await_events(events::fault_fired, 1);
  EXPECT_EQ(fired[0].attrs["evidence"], (Value{{"conn", 1}, {"direction", "to-service"}, {"offset", 3}, {"bytes", 3}}));
}

TEST(LinkRules, ResetAfterSoManyBytesAndNotBefore) {
  RuledEcho echo("reset after-bytes=3");
  auto peer = echo.open(1);
  EXPECT_TRUE(echoes(peer, "abc"));
  EXPECT_TRUE(peer.try_send("d"));
  EXPECT_EQ(peer.await_ending(), "ECONNRESET");
  EXPECT_EQ(carried(echo, 2), "11") << "no more than a byte each";
}

TEST(LinkRules, DrawTheSameConnectionsForTheSameSeed) {
  std::string drawn;
  for (int round = 0; round < 2; ++round) {
    RuledEcho echo("reset probability=0.5", 5);
    const auto seen = carried(echo, 12);
    std::string expected;
    for (std::uint64_t i = 1; i <= 12; ++i) expected += scenarios::drawn_ways(echo.fault, i).any() ? '0' : '1';
    EXPECT_EQ(seen, expected);
    if (round == 1) {
      EXPECT_EQ(seen, drawn);
    }
    drawn = seen;
  }
  EXPECT_NE(drawn.find('0'), std::string::npos);
  EXPECT_NE(drawn.find('1'), std::string::npos);
}

TEST(LinkRules, DrawEachDirectionForItself) {
  // A seed whose draws differ on the first connection.
  std::uint64_t seed = 0;
  auto fault = ruled_link("latency:50ms probability=0.5", scenarios::Protocol::tcp);
  while (scenarios::drawn_ways(fault, 1) != scenarios::Ways{false, true}) fault.aim->seed = ++seed;
  RuledEcho echo("latency:50ms probability=0.5", seed);
  auto peer = echo.open(1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(echoes(peer));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(95)) << "one way, not two";
  EXPECT_EQ(echo.rig.await_events(events::fault_fired, 1)[0].attrs["evidence"]["direction"], "to-caller");
}

TEST(LinkRules, OfProbabilityZeroSetNothingUp) {
  for (const auto* rule : {"reset probability=0", "latency:5ms probability=0 after=exit", "bandwidth:1 probability=0%",
                           "refuse probability=0"}) {
    scenarios::Plan plan;
    plan.faults = {ruled_link(rule, scenarios::Protocol::tcp)};
    EXPECT_FALSE(needs_detour(plan)) << rule;
    plan.faults[0].aim->per_million = 1;
    EXPECT_EQ(needs_detour(plan), std::string(rule) != "refuse probability=0") << rule;
    RuledEcho echo(rule);
    echo.see();
    EXPECT_EQ(carried(echo, 4), "1111") << rule;
    EXPECT_TRUE(echo.rig.events(events::fault_fired).empty()) << rule;
  }
}

// --- requests ---

struct RuledHttp {
  explicit RuledHttp(const std::string& rule, std::uint64_t seed = 0)
      : rig(callee.port(), {.faults = {ruled_link(rule, scenarios::Protocol::http, seed)}}) {}

  /// "110": so many requests on one connection, until one is not answered.
  std::string asked(std::size_t count) {
    auto peer = rig.dial();
    std::string out;
    for (std::size_t i = 0; i < count; ++i) {
      const bool answered = peer.try_send(get("/x")) && peer.receive_message().find(" 200 ") != std::string::npos;
      out += answered ? '1' : '0';
      if (!answered) break;
    }
    return out;
  }

  HttpCallee callee;
  Rig rig;
};

TEST(LinkRules, StrikeTheNthRequestOfEachConnectionThatTheyCount) {
  const std::pair<const char*, std::vector<std::string>> rules[] = {
      {"reset message=2", {"10", "10", "10"}},
      {"reset message=2 #2", {"111", "10", "111"}},
      {"reset", {"0", "0", "0"}},
      {"reset message=3.. from 2", {"111", "110", "110"}},
      {"lose-response message=2", {"10", "10", "10"}},
      {"reset message=4", {"111", "111", "111"}},
  };
  for (const auto& [rule, expected] : rules) {
    RuledHttp http(rule);
    std::vector<std::string> seen;
    for (std::size_t i = 0; i < expected.size(); ++i) seen.push_back(http.asked(3));
    EXPECT_EQ(seen, expected) << rule;
  }
}

TEST(LinkRules, DelayTheRequestsThatTheyCountAndNoOthers) {
  RuledHttp http("latency:40ms message=2..3 #1");
  EXPECT_EQ(http.asked(4), "1111");
  EXPECT_EQ(http.asked(2), "11");
  http.rig.await_events(events::reply, 6);
  http.rig.sites->finish();
  const auto undone = http.rig.await_events(events::fault_undone, 1);
  ASSERT_EQ(undone.size(), 1u);
  EXPECT_EQ(undone[0].attrs["strikes"], 2);
  EXPECT_GE(http.rig.events(events::fault_fired)[0].attrs["evidence"]["actual_ms"], 40.0);
}

TEST(LinkRules, AfterAnEventStrikeTheNextRequestOfAnOpenConnection) {
  RuledHttp http(std::string("reset") + some_event);
  auto peer = http.rig.dial();
  peer.send(get("/x"));
  ASSERT_NE(peer.receive_message(), "");
  http.rig.sites->seen(0);
  peer.send(get("/y"));
  EXPECT_EQ(peer.await_ending(), "ECONNRESET");
  EXPECT_EQ(http.callee.requests().size(), 1u);
}

TEST(LinkRules, DrawRequestsForThemselves) {
  RuledHttp http("latency:1ms probability=0.5", 3);
  EXPECT_EQ(http.asked(12), "111111111111");
  http.rig.await_events(events::reply, 12);
  http.rig.sites->finish();
  const auto fault = ruled_link("latency:1ms probability=0.5", scenarios::Protocol::http, 3);
  std::size_t drawn = 0;
  for (std::uint64_t n = 1; n <= 12; ++n) drawn += scenarios::drawn_message(fault, 1, n) ? 1 : 0;
  ASSERT_GT(drawn, 1u);
  ASSERT_LT(drawn, 12u);
  EXPECT_EQ(http.rig.await_events(events::fault_undone, 1)[0].attrs["strikes"], drawn);
}

TEST(LinkRules, OfBytesStrikeConnectionsThatCarryRequests) {
  RuledHttp http("bandwidth:1M flow=to-caller #2");
  EXPECT_EQ(http.asked(2), "11");
  EXPECT_TRUE(http.rig.events(events::fault_fired).empty());
  EXPECT_EQ(http.asked(2), "11");
  EXPECT_EQ(http.rig.await_events(events::fault_fired, 1)[0].attrs["evidence"]["conn"], 2);
}

// --- sessions ---

std::string chosen_of(const std::vector<proxy::Ordinals>& chosen, std::uint64_t from) {
  std::string out;
  for (std::uint64_t session = from; session < from + 12; ++session)
    out += std::any_of(chosen.begin(), chosen.end(), [&](const auto& one) { return one.has(session); }) ? '1' : '0';
  return out;
}

TEST(SessionChoice, CountsFromTheBeginningWhereNothingIsWaitedFor) {
  using Which = scenarios::Occurrences::Which;
  EXPECT_EQ(chosen_of(sessions_chosen({Which::from, 1}, {}, 0), 1), "111111111111");
  EXPECT_EQ(chosen_of(sessions_chosen({Which::nth, 3}, {}, 0), 1), "001000000000");
  EXPECT_EQ(chosen_of(sessions_chosen({Which::first, 3}, {}, 0), 1), "111000000000");
  EXPECT_EQ(chosen_of(sessions_chosen({Which::from, 4}, {}, 0), 1), "000111111111");
  EXPECT_EQ(chosen_of(sessions_chosen({Which::every, 4}, {}, 0), 1), "000100010001");
}

TEST(SessionChoice, CountsOpenSessionsFirstAndLaterOnesAfterThem) {
  // For every choice: the k-th of {2, 5, 8, 9, ...} is chosen exactly when k is included; 7 was the last one so far.
  using Which = scenarios::Occurrences::Which;
  for (const auto which : {Which::nth, Which::first, Which::every, Which::from})
    for (std::uint32_t n = 1; n <= 6; ++n) {
      const scenarios::Occurrences occurrences{which, n};
      std::string expected = "000000000000";
      for (std::uint64_t k = 1; k <= 2 + 5; ++k)
        if (occurrences.include(k)) expected[(k == 1 ? 2 : k == 2 ? 5 : 7 + k - 2) - 1] = '1';
      auto seen = chosen_of(sessions_chosen(occurrences, {2, 5}, 7), 1);
      for (const std::size_t over : {1, 3, 4, 6, 7}) seen[over - 1] = '0';  // they come no more
      EXPECT_EQ(seen, expected) << occurrences.text();
    }
}

}  // namespace
}  // namespace leafcutter::node
