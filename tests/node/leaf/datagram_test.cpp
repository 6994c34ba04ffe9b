// UDP links of a real leaf: datagrams are carried in sessions, and struck there.
#include <gtest/gtest.h>

#include "harness.hpp"
#include "services.hpp"

namespace leafcutter::node::testing {
namespace {

constexpr const char* datagram_services = R"(
leafcutter: 1
name: datagrams
services:
  names:
    run: [python3, "${scenario}/bin/names.py", ADDRESS]
    ports: { main: { port: 5300, protocol: udp } }
    ready: { log: ready }
workload:
  - { name: ask, run: [python3, bin/ask.py, "HOST", "FIRST", "SECOND"], expect: { exit: 0 } }
)";

/// Two sessions, three datagrams each; what came back, in order: as many as are expected (they have time), and what
/// comes within a moment after that.
constexpr const char* ask_program = R"(
import json, select, socket, sys
heard = []
for session in range(2):
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  s.connect((sys.argv[1], 5300))
  for i in range(3):
    s.send(b"abc"[i:i+1] + b"xyz")
  got = []
  while select.select([s], [], [], 5 if len(got) < int(sys.argv[2 + session]) else 0.3)[0]:
    got.append(s.recv(2000).decode())
  heard.append(got)
print(json.dumps(heard))
)";

Ran ask_names(Nest& nest, const std::vector<scenarios::Fault>& faults, const std::string& address = "0.0.0.0",
              const std::string& host = "names", std::size_t first = 3, std::size_t second = 3) {
  nest.write("bin/names.py", capitals_program);
  nest.write("bin/ask.py", ask_program);
  std::string text = datagram_services;
  text.replace(text.find("ADDRESS"), 7, address);
  text.replace(text.find("HOST"), 4, host);
  text.replace(text.find("FIRST"), 5, std::to_string(first));
  text.replace(text.find("SECOND"), 6, std::to_string(second));
  nest.give(text);
  scenarios::Plan plan;
  plan.faults = faults;
  return nest.run(plan);
}

scenarios::Fault struck_session(const std::string& kind, Value params, std::uint32_t occurrence = 1) {
  return {kind, {"workload -> names", "session", "udp"}, occurrence, std::move(params)};
}

Value answer_of(const Ran& ran) {
  const auto steps = ran.of("step");
  return steps.size() == 1 ? steps[0].attrs.value("json", Value()) : Value("no step");
}

const Value whole = {"AXYZ", "BXYZ", "CXYZ"};

TEST(Datagrams, AreCarriedInSessionsThatAreSites) {
  Nest nest;
  for (const auto* address : {"0.0.0.0", "127.0.0.1", "10.77.0.1"})
    for (const auto* host : {"names", "127.0.0.1"}) {
      const auto ran = ask_names(nest, {}, address, host);
      SCOPED_TRACE(ran.text());
      EXPECT_EQ(answer_of(ran), (Value{whole, whole})) << address << " " << host;
      EXPECT_EQ(ran.of("connect", "workload -> names").size(), 2u);
      bool counted = false;
      const auto sites = ran.of("sites").at(0).attrs["sites"];
      for (const auto& site : sites)
        counted = counted || site == Value::array({"workload -> names", "session", "udp", 2});
      EXPECT_TRUE(counted);
    }
}

TEST(Datagrams, OneIsLostInTheSessionThatThePlanNames) {
  Nest nest;
  const auto ran = ask_names(nest, {struck_session("lose-datagram", {{"nth", 2}, {"flow", "to-service"}}, 2)},
                             "0.0.0.0", "names", 3, 2);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(answer_of(ran), (Value{whole, {"AXYZ", "CXYZ"}}));
  ASSERT_EQ(ran.of("fault.fired", "workload -> names").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"],
            (Value{{"conn", 2}, {"direction", "to-service"}, {"datagram", 2}, {"bytes", 4}}));
  EXPECT_EQ(ran.of("fault.undone").size(), 1u);
}

TEST(Datagrams, WhatTheirCallerDoesAfterAFaultCameAfterIt) {
  Nest nest;
  const auto ran =
      ask_names(nest, {struck_session("lose-datagram", {{"nth", 2}, {"flow", "to-caller"}})}, "0.0.0.0", "names", 2, 3);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(answer_of(ran), (Value{{"AXYZ", "CXYZ"}, whole}));
  const auto fired = ran.of("fault.fired", "workload -> names");
  ASSERT_EQ(fired.size(), 1u);
  const auto steps = ran.of("step");
  ASSERT_EQ(steps.size(), 1u);
  const auto& clock = steps[0].clock;
  ASSERT_TRUE(clock.contains("workload -> names"));
  EXPECT_GE(clock.at("workload -> names"), fired[0].seq);
}

TEST(Datagrams, InASessionThatNeverComesAreNotTouched) {
  Nest nest;
  const auto ran = ask_names(nest, {struck_session("lose-datagram", Value::object(), 3)});
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(answer_of(ran), (Value{whole, whole}));
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

struct Effect {
  const char* name;
  const char* kind;
  Value params;
  Value first, second;  ///< what the sessions hear
};

TEST(Datagrams, MeetWhatThePlanSays) {
  Nest nest;
  const std::vector<Effect> effects = {
      {"loss", "loss", {{"probability", "1"}}, Value::array(), Value::array()},  // and later sessions
      {"burst loss",
       "burst-loss",
       {{"good-to-bad", "1"}, {"bad-to-good", "0"}, {"flow", "to-service"}},
       Value::array(),
       Value::array()},
      {"duplicate", "duplicate", {{"nth", 1}, {"flow", "to-caller"}}, {"AXYZ", "AXYZ", "BXYZ", "CXYZ"}, whole},
      {"reorder",
       "reorder",
       {{"nth", 1}, {"gap", 2}, {"at-most", "5s"}, {"flow", "to-service"}},
       {"BXYZ", "CXYZ", "AXYZ"},
       whole},
      {"truncate", "truncate", {{"keep", 2}, {"flow", "to-service"}}, {"AX", "BX", "CX"}, whole},
      {"flip", "flip-bit", {{"offset", 3}, {"flow", "to-caller"}}, {"AXY[", "BXY[", "CXY["}, whole},
      {"blackhole", "blackhole", {{"flow", "to-caller"}}, Value::array(), whole},
      {"latency", "latency", {{"for", "2s"}}, Value::array(), whole},
      {"bandwidth", "bandwidth", {{"bytes-per-second", 1}, {"flow", "to-service"}}, Value::array(), Value::array()},
  };
  for (const auto& effect : effects) {
    const auto ran = ask_names(nest, {struck_session(effect.kind, effect.params)}, "0.0.0.0", "names",
                               effect.first.size(), effect.second.size());
    SCOPED_TRACE(effect.name);
    EXPECT_EQ(answer_of(ran), (Value{effect.first, effect.second})) << ran.text();
    EXPECT_EQ(ran.of("fault.fired", "workload -> names").size(), 1u) << ran.text();
  }
}

TEST(Datagrams, AreLostAlikeTwice) {
  Nest nest;
  std::vector<Value> heard;
  for (int i = 0; i < 2; ++i)
    heard.push_back(
        answer_of(ask_names(nest, {struck_session("loss", {{"probability", "0.5"}})}, "0.0.0.0", "names", 0, 0)));
  EXPECT_EQ(heard[0], heard[1]);
  EXPECT_NE(heard[0], (Value{whole, whole}));
}

/// Two sessions: three datagrams, and what comes back within a moment; then questions until one is answered, and three
/// datagrams with their answers.
constexpr const char* parted_program = R"(
import json, select, socket
def session():
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  s.connect(("names", 5300))
  return s
def say(s):
  for i in range(3): s.send(b"abc"[i:i+1] + b"xyz")
def hear(s, within): return s.recv(2000).decode() if select.select([s], [], [], within)[0] else None
first = session()
say(first)
heard = hear(first, 0.3)
second = session()
second.send(b"?")
while hear(second, 0.05) is None: second.send(b"?")
say(second)
answers = []
while len(answers) < 3:
  one = hear(second, 5)
  if one is None: break
  if one != "?": answers.append(one)
print(json.dumps([heard, answers]))
)";

/// The partition of the workload from names begins before the step and ends when the second session begins.
Ran ask_parted(Nest& nest, const std::string& flow) {
  nest.write("bin/names.py", capitals_program);
  nest.write("bin/parted.py", parted_program);
  std::string text = datagram_services;
  text.replace(text.find("ADDRESS"), 7, "0.0.0.0");
  text.replace(text.find("[python3, bin/ask.py"), text.find(", expect: { exit") - text.find("[python3, bin/ask.py"),
               "[python3, bin/parted.py], within: 20s");
  nest.give(text);
  scenarios::Plan plan;
  plan.faults.push_back({"partition",
                         {"workload", "step", "ask"},
                         1,
                         {{"for", "20s"},
                          {"until", "connect to=names conn=2"},
                          {"between", {"workload"}},
                          {"and", {"names"}},
                          {"flow", flow}}});
  return nest.run(plan);
}

TEST(Datagrams, AreLostInAPartition) {
  Nest nest;
  const auto ran = ask_parted(nest, "both");
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(answer_of(ran), (Value{nullptr, whole}));
  EXPECT_EQ(ran.of("fault.fired", "workload").size(), 1u);
  EXPECT_EQ(ran.of("fault.undone", "workload").size(), 1u);
}

TEST(Datagrams, GetThroughOneWayInAPartitionOfTheOther) {
  Nest nest;
  for (const bool to_service : {true, false}) {
    const auto ran = ask_parted(nest, to_service ? "to-second" : "to-first");
    SCOPED_TRACE(ran.text());
    EXPECT_EQ(answer_of(ran), (Value{nullptr, whole}));
    ASSERT_EQ(ran.of("fault.fired", "workload").size(), 1u);
    EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["first"]["direction"],
              to_service ? "to-service" : "to-caller");
    auto closed = ran.of("close", "workload -> names");
    std::erase_if(closed, [](const Event& event) { return event.attrs["conn"] != 1; });
    ASSERT_EQ(closed.size(), 1u);
    EXPECT_EQ(closed[0].attrs["up_bytes"], to_service ? 0 : 12) << "what the service was brought";
    EXPECT_EQ(closed[0].attrs["down_bytes"], 0);
  }
}

}  // namespace
}  // namespace leafcutter::node::testing
