// Faults that strike a connection as a whole.
#include <gtest/gtest.h>
#include <poll.h>

#include "rig.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;
using std::chrono::milliseconds;

Fault at_connect(const std::string& kind, std::uint32_t occurrence, Value params = Value::object()) {
  return link_fault(kind, "connect", "tcp", occurrence, std::move(params));
}

RigOptions tcp(std::vector<Fault> faults) {
  return {.protocol = scenarios::Protocol::tcp, .faults = std::move(faults)};
}

void echo(Peer& peer) {
  for (;;) {
    const auto bytes = peer.receive(1);
    if (bytes.empty() || !peer.try_send(bytes)) return;
  }
}

void expect_echo(Rig& rig) {
  auto caller = rig.dial();
  caller.send("e");
  EXPECT_EQ(caller.receive(1), "e");
}

bool anything_comes(const Peer& peer, milliseconds within) {
  pollfd readable{peer.fd(), POLLIN, 0};
  return ::poll(&readable, 1, static_cast<int>(within.count())) > 0;
}

class ConnectNegativeTwin : public testing::TestWithParam<const char*> {};

TEST_P(ConnectNegativeTwin, AnOccurrenceThatNeverComesDisturbsNothing) {
  Callee callee(echo);
  const auto params = std::string(GetParam()) == "latency" ? Value{{"for", "2s"}} : Value::object();
  Rig rig(callee.port(), tcp({at_connect(GetParam(), 2, params)}));
  const auto begin = std::chrono::steady_clock::now();
  expect_echo(rig);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "caller-closed");
  EXPECT_TRUE(rig.events(events::fault_fired).empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ConnectNegativeTwin, testing::Values("refuse", "reset", "blackhole", "latency"),
                         [](const auto& one) { return std::string(one.param); });

TEST(ConnectFault, RefuseNeverReachesTheCallee) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_connect("refuse", 1)}});
  auto caller = rig.dial();
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  EXPECT_EQ(rig.await_events(events::fault_fired, 1)[0].attrs["evidence"],
            (Value{{"conn", 1},
                   {"bytes_forwarded", 0},
                   {"seen_as", "accepted, then reset: nobody looks at what this caller dials"}}));
  EXPECT_EQ(rig.await_events(events::connect, 1)[0].attrs["accepted"], false);
  EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "fault:refuse");
  EXPECT_EQ(rig.await_events(events::fault_undone, 1).size(), 1u);
  auto second = rig.dial();
  second.send(get("/"));
  EXPECT_EQ(second.receive_message(), ok_response("{\"ok\":true}"));
  EXPECT_EQ(callee.accepted(), 1);
}

TEST(ConnectFault, ResetStrikesAtTheFirstBytes) {
  std::string got = "untouched";
  {
    Callee callee([&](Peer& peer) { got = peer.receive_all(); });
    Rig rig(callee.port(), tcp({at_connect("reset", 1)}));
    auto caller = rig.dial();
    rig.await_events(events::connect, 1);
    EXPECT_FALSE(anything_comes(caller, milliseconds(50)));
    caller.send("12345");
    EXPECT_EQ(caller.await_ending(), "ECONNRESET");
    EXPECT_EQ(rig.await_events(events::fault_fired, 1)[0].attrs["evidence"],
              (Value{{"conn", 1}, {"bytes", 5}, {"bytes_forwarded", 0}}));
    const auto closed = rig.await_events(events::close, 1)[0].attrs;
    EXPECT_EQ(closed["cause"], "fault:reset");
    EXPECT_EQ(closed["up_bytes"], 0);
  }
  EXPECT_EQ(got, "");
}

TEST(ConnectFault, BlackholeSwallowsBothDirections) {
  std::string got = "untouched";
  {
    Callee callee([&](Peer& peer) {
      peer.send("greeting");
      got = peer.receive_all();
    });
    Rig rig(callee.port(), tcp({at_connect("blackhole", 1)}));
    auto caller = rig.dial();
    EXPECT_EQ(rig.await_events(events::fault_fired, 1)[0].attrs["evidence"]["bytes_withheld"], 8);
    caller.send("hello");
    EXPECT_FALSE(anything_comes(caller, milliseconds(100)));
    EXPECT_TRUE(rig.events(events::fault_undone).empty());
    caller.close();
    EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "fault:blackhole");
    const auto undone = rig.await_events(events::fault_undone, 1)[0].attrs["how"].get<std::string>();
    EXPECT_NE(undone.find("13 bytes"), std::string::npos) << undone;
  }
  EXPECT_EQ(got, "");
}

TEST(ConnectFault, LatencyDelaysTheFirstBytesOfEachDirectionFromTheirArrival) {
  Callee callee(echo);
  Rig rig(callee.port(), tcp({at_connect("latency", 1, {{"for", "80ms"}})}));
  auto caller = rig.dial();
  EXPECT_FALSE(anything_comes(caller, milliseconds(120)));  // idling uses none of it up
  auto begin = std::chrono::steady_clock::now();
  caller.send("a");
  EXPECT_EQ(caller.receive(1), "a");
  const auto first = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(first, milliseconds(160));  // there, and back
  begin = std::chrono::steady_clock::now();
  caller.send("b");
  EXPECT_EQ(caller.receive(1), "b");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(80));
  const auto proof = rig.await_events(events::fault_fired, 1)[0].attrs["evidence"];
  EXPECT_EQ(proof["scheduled_ms"], 80.0);
  EXPECT_GE(proof["actual_ms"].get<double>(), 80.0);
  caller.close();
  rig.await_events(events::fault_undone, 1);
}

TEST(ConnectFault, LatencyKeepsBytesAndTheirEndInOrder) {
  std::string got;
  {
    Callee callee([&](Peer& peer) { got = peer.receive_all(); });
    Rig rig(callee.port(), tcp({at_connect("latency", 1, {{"for", "50ms"}})}));
    auto caller = rig.dial();
    caller.send("one ");
    rig.await_events(events::connect, 1);
    caller.send("two");
    caller.finish_sending();
    EXPECT_EQ(caller.await_ending(), "end");
  }
  EXPECT_EQ(got, "one two");
}

TEST(ConnectFault, StrikesOnHttpLinksToo) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_connect("reset", 1), at_connect("latency", 2, {{"for", "40ms"}})}});
  auto caller = rig.dial();
  caller.send(get("/"));
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  auto second = rig.dial();
  second.send(get("/"));
  EXPECT_EQ(second.receive_message(), ok_response("{\"ok\":true}"));
  EXPECT_EQ(rig.await_events(events::fault_fired, 2).size(), 2u);
  EXPECT_EQ(callee.requests().size(), 1u);
  EXPECT_EQ(rig.await_events(events::request, 1)[0].attrs["outcome"], "replied");
}

}  // namespace
}  // namespace leafcutter::node
