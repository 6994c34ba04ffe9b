// Rules of links in a real leaf: read from the scenario, carried out on what its services open, and said in the trace.
#include <gtest/gtest.h>

#include "harness.hpp"
#include "node/links/detour.hpp"

namespace leafcutter::node::testing {
namespace {

constexpr const char* echo_and_names = R"(
  echo:
    run: [python3, "${scenario}/bin/echo.py"]
    ports: { main: 7000 }
    ready: { tcp: main }
  names:
    run: [python3, "${scenario}/bin/names.py"]
    ports: { main: { port: 5300, protocol: udp } }
    ready: { log: ready }
links: [ workload -> shop, shop -> broker, workload -> echo, workload -> names ]
workload:
)";

constexpr const char* ruled_echo_program = R"(
import socket, threading
def serve(c):
  try:
    while True:
      b = c.recv(100)
      if not b: break
      c.sendall(b)
  except OSError:
    pass
  c.close()
s = socket.create_server(("0.0.0.0", 7000))
while True:
  c, _ = s.accept()
  threading.Thread(target=serve, args=(c,), daemon=True).start()
)";

constexpr const char* ruled_names_program = R"(
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 5300))
print("ready", flush=True)
while True:
  b, who = s.recvfrom(2000)
  s.sendto(b.upper(), who)
)";

/// Connections one after the other, one byte there and back on each: "101" says which carried it.
constexpr const char* dial_program = R"(
import json, socket, sys
seen = ""
for i in range(int(sys.argv[1])):
  try:
    c = socket.create_connection(("echo", 7000))
    c.sendall(b"x")
    seen += "1" if c.recv(1) == b"x" else "0"
    c.close()
  except OSError:
    seen += "0"
print(json.dumps({"seen": seen}))
)";

/// Two connections that stay open, idle but for a byte each; a request to the shop; and whether they carry then.
constexpr const char* hold_program = R"(
import json, socket, time, urllib.request
held = [socket.create_connection(("echo", 7000)) for i in range(2)]
def carries(c):
  try:
    c.sendall(b"x")
    return c.recv(1) == b"x"
  except OSError:
    return False
before = [carries(c) for c in held]
urllib.request.urlopen("http://shop:8080/health").read()
ended = []
for c in held:
  c.settimeout(2)
  try:
    ended.append(c.recv(1) == b"")
  except ConnectionResetError:
    ended.append(True)
  except TimeoutError:
    ended.append(False)
print(json.dumps({"before": before, "ended": ended}))
)";

/// Two sessions of three datagrams each: what comes back of each, until nothing more does.
constexpr const char* ruled_ask_program = R"(
import json, select, socket
heard = []
for session in range(2):
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  s.connect(("names", 5300))
  got = []
  for i in range(3):
    s.send(b"abc"[i:i+1])
    if select.select([s], [], [], 0.5)[0]: got.append(s.recv(2000).decode())
  heard.append("".join(got))
print(json.dumps({"heard": heard}))
)";

constexpr const char* three_peers = R"(
  - { get: shop/peer }
  - { get: shop/peer }
  - { get: shop/peer }
)";

std::string run_of(const std::string& program) {
  return "  - { name: run, run: [python3, bin/" + program + "], expect: { exit: 0 } }\n";
}

/// The scenario's rules, as they would be planned together, with a seed.
struct RuledLeaf {
  explicit RuledLeaf(Nest& given, const std::string& workload, const std::string& on, const std::string& rules,
                     std::uint64_t seed = 1)
      : nest(given) {
    nest.write("bin/echo.py", ruled_echo_program);
    nest.write("bin/names.py", ruled_names_program);
    nest.write("bin/dial.py", dial_program);
    nest.write("bin/hold.py", hold_program);
    nest.write("bin/ask.py", ruled_ask_program);
    const auto scenario = nest.give(shop_and_broker() + echo_and_names + workload +
                                    "explore:\n  faults:\n    - on: " + on + "\n      rules: [" + rules + "]\n");
    for (auto rule : scenario.explore.rules) {
      rule.aim->seed = seed;
      plan.faults.push_back(std::move(rule));
    }
  }
  Ran run() { return nest.run(plan); }

  Nest& nest;
  scenarios::Plan plan;
};

Value said_by_step(const Ran& ran) {
  const auto steps = ran.of("step");
  return steps.empty() ? Value("no step") : steps.back().attrs.value("json", Value("no answer"));
}

constexpr const char* to_echo = "{ link: workload -> echo }";

TEST(LinkRules, OfAScenarioStrikeTheConnectionsThatTheyCount) {
  Nest nest;
  RuledLeaf leaf(nest, run_of("dial.py, \"5\""), to_echo, "\"reset every 2\"");
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_EQ(said_by_step(ran), (Value{{"seen", "10101"}}));
  ASSERT_EQ(ran.of("fault.armed").size(), 1u);
  const auto fired = ran.of("fault.fired", "workload -> echo"), undone = ran.of("fault.undone", "workload -> echo");
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].attrs["evidence"], (Value{{"conn", 2}}));
  ASSERT_EQ(undone.size(), 1u);
  EXPECT_EQ(undone[0].attrs["strikes"], 2);
}

TEST(LinkRules, OfAConnectionThatNeverComesStrikeNothing) {
  Nest nest;
  RuledLeaf leaf(nest, run_of("dial.py, \"5\""), to_echo, "\"reset #6\"");
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said_by_step(ran), (Value{{"seen", "11111"}}));
  EXPECT_EQ(ran.of("fault.armed").size(), 1u);
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

TEST(LinkRules, ChooseTheCallerAndStrikeItsRequestsAfterAnEvent) {
  Nest nest;
  const auto* on = "[{ link: shop -> broker }, { link: workload -> shop }]";
  RuledLeaf leaf(nest, three_peers, on, R"('latency:70ms caller=shop first 1 after="reply from=shop path=/peer"')");
  ASSERT_EQ(leaf.plan.faults.size(), 1u);
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  const auto fired = ran.of("fault.fired");
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].lane, "shop -> broker");
  EXPECT_GE(fired[0].attrs["evidence"]["actual_ms"], 70.0);
  const auto replies = ran.of("reply", "workload -> shop");
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_GT(fired[0].at, replies[0].at) << "the first one's answer is the event";
  EXPECT_LT(fired[0].at, replies[1].at) << "so that the second one was late";
}

TEST(LinkRules, AfterAnEventStrikeConnectionsThatAreOpen) {
  Nest nest;
  RuledLeaf leaf(nest, run_of("hold.py"), to_echo, R"('reset #2 after="reply from=shop path=/health to=workload"')");
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said_by_step(ran), (Value{{"before", {true, true}}, {"ended", {false, true}}}));
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"], (Value{{"conn", 2}}));
}

TEST(LinkRules, WhoseEventNeverComesLeaveOpenConnectionsAlone) {
  Nest nest;
  RuledLeaf leaf(nest, run_of("hold.py"), to_echo, R"('reset after="reply from=shop status=500"')");
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said_by_step(ran), (Value{{"before", {true, true}}, {"ended", {false, false}}}));
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

TEST(LinkRules, StrikeTheNthDatagramOfTheSessionsThatTheyCount) {
  Nest nest;
  RuledLeaf leaf(nest, run_of("ask.py"), "{ link: workload -> names }", "\"loss:1 flow=to-service message=2 #2\"");
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said_by_step(ran), (Value{{"heard", {"ABC", "AC"}}}));
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"],
            (Value{{"conn", 2}, {"direction", "to-service"}, {"datagram", 2}, {"bytes", 1}}));
}

TEST(LinkRules, OfSessionsWaitForTheirEvent) {
  Nest nest;
  const auto* on = "{ link: workload -> names }";
  const auto twice = run_of("ask.py") + "  - { get: shop/health }\n" + run_of("ask.py");
  // The two sessions of the first run are open then: the third is the first of the second run.
  RuledLeaf leaf(nest, twice, on, R"('loss:1 flow=to-caller #3 after="step label=\"get shop/health\""')");
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  const auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].attrs["json"], (Value{{"heard", {"ABC", "ABC"}}}));
  EXPECT_EQ(steps[2].attrs["json"], (Value{{"heard", {"", "ABC"}}}));
  const auto fired = ran.of("fault.fired");
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].attrs["evidence"]["conn"], 3);
}

TEST(LinkRules, OfSessionsWhoseEventNeverComesLoseNothing) {
  Nest nest;
  RuledLeaf leaf(nest, run_of("ask.py"), "{ link: workload -> names }", R"('loss:1 after="step label=\"get shop/\""')");
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said_by_step(ran), (Value{{"heard", {"ABC", "ABC"}}}));
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

TEST(LinkRules, BeginAPartitionAtTheConnectionThatTheyCount) {
  Nest nest;
  RuledLeaf leaf(nest, run_of("dial.py, \"3\""), "{ between: workload, and: echo }", "\"partition:300ms #2\"");
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said_by_step(ran), (Value{{"seen", "111"}}));
  const auto fired = ran.of("fault.fired", "workload -> echo");
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].attrs["evidence"]["at_connection"], 2);
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
}

TEST(LinkRules, DecideTheSameTwiceAndInTwoSlotsAtOnce) {
  Nest nest;
  RuledLeaf leaf(nest, run_of("dial.py, \"12\""), to_echo, "\"reset probability=0.5\"", 5);
  const auto first = leaf.nest.start(leaf.nest.job(leaf.plan)), second = leaf.nest.start(leaf.nest.job(leaf.plan));
  const auto one = nest.wait(first), other = nest.wait(second);
  SCOPED_TRACE(one.text());
  const auto seen = said_by_step(one)["seen"].get<std::string>();
  EXPECT_EQ(said_by_step(other)["seen"], seen);
  EXPECT_NE(seen.find('0'), std::string::npos);
  EXPECT_NE(seen.find('1'), std::string::npos);
  EXPECT_EQ(said_by_step(leaf.run())["seen"], seen);
  RuledLeaf seeded(nest, run_of("dial.py, \"12\""), to_echo, "\"reset probability=0.5\"", 6);
  EXPECT_NE(said_by_step(seeded.run())["seen"], seen);
}

TEST(LinkRules, OfProbabilityZeroTouchNothing) {
  Nest nest;
  RuledLeaf leaf(nest, run_of("hold.py"), to_echo,
                 R"('reset probability=0 after="reply from=shop"', "cut:0 probability=0")");
  EXPECT_FALSE(needs_detour(leaf.plan));
  const auto ran = leaf.run();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(said_by_step(ran), (Value{{"before", {true, true}}, {"ended", {false, false}}}));
  EXPECT_EQ(ran.of("fault.armed").size(), 2u);
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

}  // namespace
}  // namespace leafcutter::node::testing
