// A leaf is not settled while bytes are on their way that a fault holds back.
#include <gtest/gtest.h>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

/// Says when a line has come, by TCP and by UDP.
constexpr const char* sink_program = R"(
import socket, threading
s = socket.create_server(('', 7000))
d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
d.bind(('', 7001))
def datagrams():
  while True: print('came', d.recv(100).decode(), flush=True)
threading.Thread(target=datagrams, daemon=True).start()
print('listens', flush=True)
while True:
  c, _ = s.accept()
  line = c.recv(4, socket.MSG_WAITALL)
  if line: print('came', line.decode(), flush=True)
)";

/// Sends a line and keeps its connection, as one that waits for nothing does.
constexpr const char* source_program = R"(
import socket, threading
s = socket.create_connection(('sink', 7000))
s.sendall(b'line')
d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
d.sendto(b'datagram', ('sink', 7001))
print('sent', flush=True)
threading.Event().wait()
)";

Ran send_and_settle(Nest& nest, const scenarios::Plan& plan, const std::string& within = "20s") {
  nest.write("bin/sink.py", sink_program);
  nest.write("bin/source.py", source_program);
  nest.give(R"(
leafcutter: 1
name: settling
services:
  sink:
    run: [python3, "${scenario}/bin/sink.py"]
    ports: { main: 7000, datagrams: { port: 7001, protocol: udp } }
    ready: { log: listens }
  source:
    run: [python3, "${scenario}/bin/source.py"]
    ready: { log: sent }
    needs: [sink]
links: [ "source -> sink:main", "source -> sink:datagrams" ]
workload:
  - settle: { quiet: 100ms, within: )" +
            within + " }\n");
  return nest.run(plan);
}

scenarios::Plan holding(const std::string& kind, Value params, bool datagrams = false) {
  scenarios::Plan plan;
  const scenarios::Site connections{"source -> sink:main", "connect", "tcp"};
  const scenarios::Site sessions{"source -> sink:datagrams", "session", "udp"};
  plan.faults.push_back({kind, datagrams ? sessions : connections, 1, std::move(params)});
  return plan;
}

bool came_before_it_was_settled(const Ran& ran, const std::string& what) {
  const auto settled = ran.of("settled");
  if (settled.empty()) return false;
  for (const auto& event : ran.of("log", "sink"))
    if (event.attrs.value("line", "") == "came " + what) return event.at < settled[0].at;
  return false;
}

struct Held {
  const char* kind;
  Value params;
  const char* what = "line";
};

class SettlesAfter : public ::testing::TestWithParam<Held> {};

TEST_P(SettlesAfter, WhatIsHeldBackHasArrived) {
  Nest nest;
  const auto& held = GetParam();
  const auto ran = send_and_settle(nest, holding(held.kind, held.params, held.what != std::string("line")));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("settled").size(), 1u);
  EXPECT_EQ(ran.of("settled")[0].attrs["ok"], true);
  EXPECT_TRUE(came_before_it_was_settled(ran, held.what));
  EXPECT_EQ(ran.of("fault.fired").size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Faults, SettlesAfter,
                         ::testing::Values(Held{"latency", {{"for", "1s"}}},
                                           Held{"latency", {{"for", "1s"}, {"distribution", "fixed"}}},
                                           Held{"jitter", {{"from", "1s"}, {"up-to", "1100ms"}}},
                                           Held{"bandwidth", {{"bytes-per-second", 2}, {"burst", 1}}},
                                           Held{"latency", {{"for", "1s"}}, "datagram"}),
                         [](const auto& one) { return std::string(one.param.kind) + std::to_string(one.index); });

TEST(Settle, DoesNotWaitLongerThanItMay) {
  Nest nest;
  const auto ran = send_and_settle(nest, holding("latency", {{"for", "8s"}, {"distribution", "fixed"}}), "500ms");
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("settled").size(), 1u);
  EXPECT_EQ(ran.of("settled")[0].attrs["ok"], false);
  EXPECT_EQ(ran.of("settled")[0].attrs["busy"], (Value{"bytes on their way on source -> sink:main #1"}));
}

TEST(Settle, IsQuickWhereNothingIsHeldBack) {
  Nest nest;
  const auto ran = send_and_settle(nest, {});
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("settled").size(), 1u);
  EXPECT_EQ(ran.of("settled")[0].attrs["ok"], true);
  EXPECT_TRUE(came_before_it_was_settled(ran, "line"));
  EXPECT_LT(ran.of("settled")[0].at - ran.of("ready", "source").at(0).at, std::chrono::seconds(3));
}

}  // namespace
}  // namespace leafcutter::node::testing
