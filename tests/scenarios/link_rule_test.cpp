// Rules of links: what they are read as, how they are written again, and what each mistake says and marks.
#include "scenarios/link_rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/fault_kinds.hpp"
#include "scenarios/link_aim.hpp"

namespace leafcutter::scenarios {
namespace {

Link link_of(const std::string& from, const std::string& to, Protocol protocol, const std::string& port = "main",
             bool only_port = true) {
  return {from, to, port, protocol, 7000, only_port};
}

LinkRuleScope two_links() {
  LinkRuleScope scope;
  scope.links = {link_of("shop", "broker", Protocol::tcp), link_of("till", "broker", Protocol::tcp)};
  scope.events.services = {"shop", "broker", "till"};
  return scope;
}

LinkRuleScope one_link(Protocol protocol) {
  auto scope = two_links();
  scope.links = {link_of("shop", "broker", protocol)};
  return scope;
}

LinkRuleScope two_sides() {
  auto scope = two_links();
  scope.between = {{{"shop", "till"}, {"broker"}, scope.links}};
  scope.links.clear();
  return scope;
}

std::vector<Fault> read_links(const std::string& text, const LinkRuleScope& scope) {
  Mistake mistake;
  auto faults = read_link_rule(text, scope, mistake);
  EXPECT_TRUE(faults) << text << ": " << mistake.message;
  return faults ? *faults : std::vector<Fault>{};
}

Fault one_fault_of(const std::string& text, const LinkRuleScope& scope) {
  const auto faults = read_links(text, scope);
  EXPECT_EQ(faults.size(), 1u) << text;
  return faults.empty() ? Fault{} : faults.front();
}

TEST(LinkRule, IsWrittenInOneWayAndReadBack) {
  struct Case {
    const char* written;
    const char* canonical;
    Protocol protocol = Protocol::tcp;
  };
  const Case rules[] = {
      {"reset", "reset"},
      {"reset #2", "reset #2"},
      {"reset:caller,5ms first 3", "reset:caller,5ms first 3"},
      {"reset:,5ms", "reset:,5ms"},
      {"refuse every 2", "refuse every 2"},
      {"latency:1000ms from 7", "latency:1s from 7"},
      {"latency:5ms,uniform,2ms,,,piece", "latency:5ms,uniform,2ms each=piece"},
      {"latency for=5ms flow=to-caller", "latency:5ms flow=to-caller"},
      {"bandwidth:10k flow=to-caller after-bytes=1k", "bandwidth:10240 flow=to-caller after-bytes=1024"},
      {"jitter:5ms,1ms", "jitter:5ms,1ms"},
      {"cut:,2s", "cut:,2s"},
      {"cut:100,,reset", "cut:100 ending=reset"},
      {"half-open:,1s", "half-open:,1s"},
      {"blackhole probability=12.5%", "blackhole probability=0.125"},
      {"blackhole probability=0", "blackhole probability=0"},
      {"reset caller=shop after=\"reply from=shop status=2xx\"", "reset after=\"reply from=shop status=2xx\""},
      {"reset message=2", "reset message=2", Protocol::http},
      {"lose-response message=2.. #3", "lose-response message=2.. #3", Protocol::http},
      {"latency:5ms message=1..3", "latency:5ms message=1..3", Protocol::http},
      {"loss:0.5 message=..9", "loss:0.5 message=..9", Protocol::udp},
      {"loss:1", "loss:1", Protocol::udp},
      {"burst-loss:0.1,0.2", "burst-loss:0.1,0.2", Protocol::udp},
      {"duplicate:,0.5,3", "duplicate:,0.5 nth=3", Protocol::udp},
      {"lose-datagram nth=4 #2", "lose-datagram:4 #2", Protocol::udp},
  };
  for (const auto& rule : rules) {
    const auto fault = one_fault_of(rule.written, one_link(rule.protocol));
    EXPECT_EQ(link_rule_text(fault), rule.canonical) << rule.written;
    EXPECT_EQ(one_fault_of(rule.canonical, one_link(rule.protocol)), fault) << rule.written;
    const auto kept = fault_from(to_value(fault));
    ASSERT_TRUE(kept) << rule.written;
    EXPECT_EQ(*kept, fault) << rule.written;
  }
}

TEST(LinkRule, StrikesRequestsWhereTheyCanBeToldApart) {
  const auto operation = [](const std::string& rule, Protocol protocol) {
    return one_fault_of(rule, one_link(protocol)).site.operation;
  };
  EXPECT_EQ(operation("latency:5ms", Protocol::http), "request");
  EXPECT_EQ(operation("latency:5ms", Protocol::tcp), "connect");
  EXPECT_EQ(operation("latency:5ms", Protocol::udp), "session");
  EXPECT_EQ(operation("latency:5ms after-bytes=10", Protocol::http), "connect");
  EXPECT_EQ(operation("latency:5ms flow=both", Protocol::http), "connect") << "a parameter of the connection";
  EXPECT_EQ(operation("refuse", Protocol::http), "connect");
  EXPECT_EQ(operation("bandwidth:10", Protocol::http), "connect");
}

TEST(LinkRule, BecomesAFaultOfEachLinkThatItLeaves) {
  const auto lanes = [](const std::string& rule) {
    std::string all;
    for (const auto& fault : read_links(rule, two_links())) all += fault.site.lane + ";";
    return all;
  };
  EXPECT_EQ(lanes("reset"), "shop -> broker;till -> broker;");
  EXPECT_EQ(lanes("reset caller=till"), "till -> broker;");
  EXPECT_EQ(lanes("reset callee=broker port=main caller=shop"), "shop -> broker;");
  EXPECT_EQ(lanes("reset link=\"till -> broker\""), "till -> broker;");
  auto ports = two_links();
  ports.links = {link_of("shop", "broker", Protocol::tcp, "main", false),
                 link_of("shop", "broker", Protocol::tcp, "admin", false)};
  EXPECT_EQ(read_links("reset port=admin", ports).front().site.lane, "shop -> broker:admin");
  EXPECT_EQ(read_links("reset link=\"shop -> broker\"", ports).size(), 2u);
  EXPECT_EQ(read_links("reset link=\"shop -> broker:main\"", ports).size(), 1u);
}

TEST(LinkRule, OfAPartitionBeginsAfterAnEventOrAtAConnection) {
  const auto after = one_fault_of("partition:2s,to-second after=exit until=\"ready service=broker\"", two_sides());
  EXPECT_EQ(after.site, (Site{workload_lane, "event", ""}));
  EXPECT_EQ(after.params, (Value{{"for", "2s"},
                                 {"flow", "to-second"},
                                 {"until", "ready service=broker"},
                                 {"between", {"shop", "till"}},
                                 {"and", {"broker"}}}));
  EXPECT_EQ(after.aim->after, "exit");
  EXPECT_EQ(link_rule_text(after), "partition:2s,to-second until=\"ready service=broker\" after=exit");
  const auto at = read_links("partition:2s #3", two_sides());
  ASSERT_EQ(at.size(), 2u);
  EXPECT_EQ(at[1].site, (Site{"till -> broker", "connect", ""}));
  EXPECT_EQ(at[1].aim->occurrences, (Occurrences{Occurrences::Which::nth, 3}));
  EXPECT_EQ(read_links("partition:2s #3 caller=shop", two_sides()).size(), 1u);
}

TEST(LinkRule, EveryKindOfLinksCanBeAskedForWhereItExists) {
  for (const auto& kind : link_fault_kinds()) {
    if (kind.between) continue;
    Value needed = Value::object();
    std::string arguments;
    for (const auto& parameter : kind.parameters) {
      if (!parameter.required) break;
      const bool time = parameter.type == FaultParameter::Type::duration;
      arguments +=
          std::string(arguments.empty() ? ":" : ",") + (time                                              ? "5ms"
                                                        : parameter.type == FaultParameter::Type::decimal ? "0.5"
                                                                                                          : "7");
    }
    if (kind.name == "cut") arguments = ":7";
    for (const auto protocol : {Protocol::tcp, Protocol::http, Protocol::udp}) {
      Mistake mistake;
      const bool exists = protocol == Protocol::udp
                              ? kind.datagrams
                              : kind.connections && (!kind.http_only || protocol == Protocol::http);
      EXPECT_EQ(read_link_rule(kind.name + arguments, one_link(protocol), mistake).has_value(), exists)
          << kind.name << ": " << mistake.message;
      const bool from_byte = kind.from_byte && protocol != Protocol::udp;
      EXPECT_EQ(read_link_rule(kind.name + arguments + " after-bytes=9", one_link(protocol), mistake).has_value(),
                from_byte)
          << kind.name << ": " << mistake.message;
    }
  }
}

struct BadLinkRule {
  const char* rule;
  const char* marks;
  const char* message;
};

void expect_refused(const std::vector<BadLinkRule>& rules, const LinkRuleScope& scope) {
  for (const auto& entry : rules) {
    Mistake mistake;
    EXPECT_FALSE(read_link_rule(entry.rule, scope, mistake)) << entry.rule;
    EXPECT_EQ(mistake.message, entry.message) << entry.rule;
    EXPECT_EQ(marked(entry.rule, mistake), "  " + std::string(entry.rule) + "\n  " + entry.marks) << mistake.message;
  }
}

TEST(LinkRule, MistakesMarkThePlaceAndNameWhatWouldDo) {
  expect_refused(
      {
          {"", "^", "expected a rule such as \"reset caller=shop #2\", found nothing"},
          {"restt", "^~~~~", "unknown fault of links \"restt\"; did you mean \"reset\"?"},
          {"latency", "^~~~~~~", "\"latency\" needs an argument, how much later, from its arrival: write latency:2s"},
          {"jitter:soon", "       ^~~~",
           "parameter \"up-to\" of fault \"jitter\": \"soon\" is not a duration: expected a whole number and a unit, "
           "such as 300ms, 5s or 2m"},
          {"reset:caller,1ms,3", "                 ^", "\"reset\" takes 2 arguments; found \"3\" beyond"},
          {"reset:caller side=both", "             ^~~~~~~~~",
           "\"side\" is given twice: \"reset:caller\" has it already"},
          {"latency:5ms flow=up", "                 ^~",
           "parameter \"flow\" of fault \"latency\": expected both, to-service or to-caller, found \"up\""},
          {"latency:5ms,pareto,3ms", "^~~~~~~~~~~~~~~~~~~~~~",
           "fault \"latency\": distribution \"pareto\" has no \"spread\"; uniform and normal have"},
          {"reset calller=shop", "      ^~~~~~~", "unknown key \"calller\"; did you mean \"caller\"?"},
          {"reset caller=shop caller=till", "                  ^~~~~~~~~~~", "\"caller\" is given twice"},
          {"reset caller=sohp", "             ^~~~",
           "no link of the rule's \"on\" begins at \"sohp\"; did you mean \"shop\"?"},
          {"reset callee=till", "             ^~~~", "no link of the rule's \"on\" leads to \"till\"; known: broker"},
          {"reset caller=shop link=\"till -> broker\"", "                        ^~~~~~~~~~~~~~",
           "no link of the rule's \"on\" is \"till -> broker\"; did you mean \"shop -> broker\"?"},
          {"reset port=admin", "           ^~~~~",
           "no link of the rule's \"on\" leads to a port \"admin\"; known: main"},
          {"reset #0", "      ^~", "expected a whole number from 1 to 4294967295, found \"0\""},
          {"reset #1 first 3", "         ^~~~~", "it is said twice which connections are struck: \"#1\" and \"first\""},
          {"reset uncounted", "      ^~~~~~~~~",
           "what strikes a link is always counted; \"uncounted\" is of system calls"},
          {"reset probability=2", "                  ^", "a probability is at most 1 (or 100%); found \"2\""},
          {"reset after=\"reply from=shp\"", "                        ^~~",
           "\"after\": there is no service \"shp\"; did you mean \"shop\"?"},
          {"reset until=exit", "      ^~~~~", "\"reset\" is not healed by an event; \"until\" goes with partition"},
          {"reset after-bytes=0", "                  ^", "expected a number of bytes as 100, 4k or 1M, found \"0\""},
          {"refuse after-bytes=9", "       ^~~~~~~~~~~", "\"refuse\" strikes before any byte has passed"},
          {"half-open after-bytes=9", "          ^~~~~~~~~~~",
           "\"half-open\" does not strike the bytes of a connection, but all of it"},
          {"cut:,1s after-bytes=9", "        ^~~~~~~~~~~",
           "after how many bytes it cuts, \"cut\" says itself: write cut:9"},
          {"flip-bit:3 after-bytes=9", "           ^~~~~~~~~~~",
           "which byte it is, \"flip-bit\" says itself: its offset"},
          {"reset message=2", "      ^~~~~~~",
           "port \"main\" of service \"broker\" is declared as tcp, whose messages nobody can tell apart; declare "
           "protocol: http if it speaks HTTP, or count bytes with after-bytes="},
          {"loss:0.5", "^~~~~~~~",
           "\"loss\" strikes datagrams, but port \"main\" of service \"broker\" is declared as tcp"},
          {"lose-response", "^~~~~~~~~~~~~",
           "\"lose-response\" needs to see requests, but port \"main\" of service \"broker\" is declared as tcp; "
           "declare "
           "{ port: 7000, protocol: http } if it speaks HTTP"},
          {"partition:1s #1", "^~~~~~~~~~~~",
           "\"partition\" is between sets of services; write on: { between: shop, and: broker }"},
      },
      two_links());
}

TEST(LinkRule, WhatAProtocolCannotDoIsSaid) {
  expect_refused(
      {
          {"bandwidth:9 message=2", "            ^~~~~~~",
           "\"bandwidth:9\" strikes the bytes of a connection, whatever they mean; use after-bytes="},
          {"refuse message=2", "       ^~~~~~~", "\"refuse\" strikes before there is any request"},
          {"reset message=2 after-bytes=9", "      ^~~~~~~",
           "\"reset\" with after-bytes= strikes the bytes of a connection, whatever they mean; leave one of the two "
           "out"},
          {"reset message=0", "              ^",
           "expected numbers of messages, from 1, as 2, 1..3, 4.. or ..9; found \"0\""},
          {"lose-response after-bytes=9", "              ^~~~~~~~~~~",
           "\"lose-response\" strikes whole responses; say which with message="},
      },
      one_link(Protocol::http));
  expect_refused(
      {
          {"reset", "^~~~~",
           "\"reset\" strikes connections, but port \"main\" of service \"broker\" is declared as udp"},
          {"blackhole:stall", "^~~~~~~~~~~~~~~",
           "who sends datagrams feels nothing: \"mode\" cannot be stall, since port \"main\" of service \"broker\" is "
           "declared as udp"},
          {"latency:5ms after-bytes=9", "            ^~~~~~~~~~~",
           "datagrams are no stream: use message=, since port \"main\" of service \"broker\" is declared as udp"},
          {"loss:0.5 after-bytes=9", "         ^~~~~~~~~~~",
           "\"loss\" strikes datagrams, which are no stream; use message="},
          {"lose-datagram message=2", "              ^~~~~~~",
           "which datagram it is, \"lose-datagram\" says itself: its \"nth\""},
          {"duplicate nth=3 message=2", "                ^~~~~~~",
           "which datagram it is, \"duplicate\" says itself: its \"nth\""},
          {"duplicate:,0.5 probability=0.5", "               ^~~~~~~~~~~",
           "\"duplicate\" has a probability of each datagram already; leave one of the two out"},
      },
      one_link(Protocol::udp));
  expect_refused(
      {
          {"reset", "^~~~~", "\"reset\" strikes links, and \"on\" names none; write on: { link: shop -> broker }"},
          {"partition:1s", "^~~~~~~~~~~~",
           "\"partition\" needs the event that it begins after, such as after=\"ready service=broker\", or the "
           "connection that it begins at, such as #1"},
          {"partition:1s #1 after=exit", "             ^~",
           "a partition begins after an event or at a connection; leave one of the two out"},
          {"partition:1s first 2", "             ^~~~~", "a partition begins once: at the n-th connection, #n"},
          {"partition:1s #1 probability=0.5", "                ^~~~~~~~~~~",
           "a partition strikes everything across, once: it takes after= or #n; found \"probability\""},
          {"partition:1s after=exit caller=shop", "                        ^~~~~~",
           "which connection a partition begins at is for #n; this one begins after an event"},
          {"partition:1s at=connect #1", "             ^~",
           "unknown key \"at\"; known: link, caller, callee, port, "
           "message, after-bytes, after, until, probability, for and flow"},
      },
      two_sides());
}

TEST(LinkAim, TheSameSeedDrawsTheSameAndNothingElseChangesIt) {
  auto fault = one_fault_of("jitter:5ms probability=0.5", one_link(Protocol::tcp));
  fault.aim->seed = 7;
  const auto decisions = [](const Fault& of) {
    std::string out;
    for (std::uint64_t connection = 1; connection <= 64; ++connection) {
      const auto ways = drawn_ways(of, connection);
      out += ways.up ? (ways.down ? 'b' : 'u') : ways.down ? 'd' : '-';
    }
    return out;
  };
  const auto drawn = decisions(fault);
  EXPECT_EQ(decisions(fault), drawn);
  for (const char way : {'b', 'u', 'd', '-'}) EXPECT_NE(drawn.find(way), std::string::npos) << way << " of " << drawn;
  auto narrower = fault;
  narrower.aim->occurrences = {Occurrences::Which::nth, 3};
  narrower.aim->after = "exit";
  EXPECT_EQ(decisions(narrower), drawn) << "which connections it selects is not what it draws";
  auto seeded = fault;
  seeded.aim->seed = 8;
  EXPECT_NE(decisions(seeded), drawn);
  auto elsewhere = fault;
  elsewhere.site.lane = "till -> broker";
  EXPECT_NE(decisions(elsewhere), drawn);
  auto other = fault;
  other.kind = "slice";
  EXPECT_NE(decisions(other), drawn);
}

TEST(LinkAim, AWholeConnectionHasOneDraw) {
  auto fault = one_fault_of("reset probability=0.5", one_link(Protocol::tcp));
  int struck = 0;
  for (std::uint64_t connection = 1; connection <= 200; ++connection) {
    const auto ways = drawn_ways(fault, connection);
    EXPECT_EQ(ways.up, ways.down);
    struck += ways.up ? 1 : 0;
  }
  EXPECT_GT(struck, 70);
  EXPECT_LT(struck, 130);
}

TEST(LinkAim, ZeroStrikesNothingAndOneStrikesEverything) {
  auto fault = one_fault_of("jitter:5ms probability=0", one_link(Protocol::tcp));
  EXPECT_TRUE(never_strikes(fault));
  for (std::uint64_t connection = 1; connection <= 50; ++connection) EXPECT_FALSE(drawn_ways(fault, connection).any());
  fault = one_fault_of("jitter:5ms flow=to-caller", one_link(Protocol::tcp));
  EXPECT_FALSE(never_strikes(fault));
  for (std::uint64_t connection = 1; connection <= 50; ++connection)
    EXPECT_EQ(drawn_ways(fault, connection), (Ways{false, true}));
  const auto message = one_fault_of("reset message=2 probability=0.5", one_link(Protocol::http));
  int struck = 0;
  for (std::uint64_t n = 1; n <= 200; ++n) struck += drawn_message(message, 1, n) ? 1 : 0;
  EXPECT_GT(struck, 70);
  EXPECT_LT(struck, 130);
}

}  // namespace
}  // namespace leafcutter::scenarios
