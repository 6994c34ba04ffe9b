// Faults that strike one request of a link: what the caller and the callee see of them, what proves them, and that a
// fault whose occurrence never comes disturbs nothing.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>

#include "rig.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;
using std::chrono::milliseconds;

const std::string announce = post("/announce/7", "{\"id\":7}");

Fault at_request(const std::string& kind, std::uint32_t occurrence, Value params = Value::object()) {
  return link_fault(kind, "request", "POST /announce/#", occurrence, std::move(params));
}

Value evidence(Rig& rig, std::size_t nth = 0) {
  return rig.await_events(events::fault_fired, nth + 1)[nth].attrs["evidence"];
}

bool anything_comes(const Peer& peer, milliseconds within) {
  pollfd readable{peer.fd(), POLLIN, 0};
  return ::poll(&readable, 1, static_cast<int>(within.count())) > 0;
}

/// Later connections on the link work.
void expect_recovered(Rig& rig) {
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_EQ(caller.receive_message(), ok_response("{\"ok\":true}"));
}

class NegativeTwin : public testing::TestWithParam<std::string> {};

TEST_P(NegativeTwin, AnOccurrenceThatNeverComesDisturbsNothing) {
  HttpCallee callee;
  const auto params = GetParam() == "latency" ? Value{{"for", "2s"}} : Value::object();
  Rig rig(callee.port(), {.faults = {at_request(GetParam(), 2, params)}});
  const auto begin = std::chrono::steady_clock::now();
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_EQ(caller.receive_message(), ok_response("{\"ok\":true}"));
  caller.send(get("/announce/7"));  // another method: another site
  EXPECT_EQ(caller.receive_message(), ok_response("{\"ok\":true}"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  for (const auto& request : rig.await_events(events::request, 2)) EXPECT_EQ(request.attrs["outcome"], "replied");
  caller.close();
  EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "caller-closed");
  EXPECT_TRUE(rig.events(events::fault_fired).empty());
  EXPECT_TRUE(rig.events(events::fault_undone).empty());
  EXPECT_EQ(callee.requests().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, NegativeTwin, testing::Values("reset", "blackhole", "latency", "lose-response"),
                         [](const auto& one) {
                           return one.param == "lose-response" ? std::string("lose_response") : one.param;
                         });

TEST(HttpFault, ResetPreventsTheRequest) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("reset", 1)}});
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  const auto proof = evidence(rig);
  EXPECT_EQ(proof["conn"], 1);
  EXPECT_EQ(proof["request_bytes"], announce.size());
  const auto request = rig.await_events(events::request, 1)[0].attrs;
  EXPECT_EQ(request["outcome"], "reset");
  EXPECT_EQ(request["json"]["id"], 7);
  EXPECT_FALSE(request.contains("reply"));
  EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "fault:reset");
  EXPECT_EQ(rig.await_events(events::fault_undone, 1).size(), 1u);
  EXPECT_TRUE(callee.requests().empty());
  EXPECT_TRUE(eventually([&] { return rig.activity.busy().empty(); }));
  expect_recovered(rig);
  EXPECT_EQ(callee.requests().size(), 1u);
}

TEST(HttpFault, ResetWaitsForABodyThatComesLater) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("reset", 1)}});
  auto caller = rig.dial();
  const auto head = announce.find("\r\n\r\n") + 4;
  caller.send(announce.substr(0, head));
  EXPECT_FALSE(anything_comes(caller, milliseconds(30)));
  caller.send(announce.substr(head));
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  EXPECT_EQ(evidence(rig)["request_bytes"], announce.size());
  EXPECT_EQ(rig.await_events(events::request, 1)[0].attrs["json"]["id"], 7);
}

TEST(HttpFault, ResetStrikesTheSecondOfOneConnectionOnly) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("reset", 2)}});
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_EQ(caller.receive_message(), ok_response("{\"ok\":true}"));
  caller.send(announce);
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  const auto requests = rig.await_events(events::request, 2);
  EXPECT_EQ(requests[0].attrs["outcome"], "replied");
  EXPECT_EQ(requests[1].attrs["outcome"], "reset");
  EXPECT_EQ(callee.requests().size(), 1u);
}

TEST(HttpFault, APipelinedRequestIsStruckAfterTheRepliesBeforeIt) {
  for (const std::string kind : {"reset", "lose-response"}) {
    HttpCallee callee;
    Rig rig(callee.port(), {.faults = {at_request(kind, 3)}});
    auto caller = rig.dial();
    caller.send(announce + announce + announce + announce);
    const auto all = caller.receive_all();
    EXPECT_EQ(all, ok_response("{\"ok\":true}") + ok_response("{\"ok\":true}")) << kind;
    EXPECT_EQ(caller.ending(), "ECONNRESET") << kind;
    const auto requests = rig.await_events(events::request, 3);
    EXPECT_EQ(
        std::count_if(requests.begin(), requests.end(), [](const auto& r) { return r.attrs["outcome"] == "replied"; }),
        2)
        << kind;
    EXPECT_EQ(rig.await_events(events::fault_fired, 1).size(), 1u);
    if (kind == "reset") {
      EXPECT_EQ(callee.requests().size(), 2u);
    } else {
      EXPECT_GE(callee.requests().size(), 3u);
    }
  }
}

TEST(HttpFault, BlackholeLetsNothingPassUntilTheCallerCloses) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("blackhole", 2)}});
  auto caller = rig.dial();
  caller.send(announce);
  caller.receive_message();
  caller.send(announce);
  EXPECT_EQ(evidence(rig)["bytes_withheld"], announce.size());
  EXPECT_EQ(rig.await_events(events::request, 2)[1].attrs["outcome"], "blackholed");
  const std::vector<std::string> waiting = {"blackholed connection shop -> broker #1"};
  EXPECT_TRUE(eventually([&] { return rig.activity.busy() == waiting; })) << "its caller still waits for an answer";
  const auto moved = rig.activity.last();
  caller.send(announce);  // nor anything later
  EXPECT_FALSE(anything_comes(caller, milliseconds(100)));
  EXPECT_EQ(rig.activity.last(), moved) << "what a blackhole swallows is no movement";
  EXPECT_TRUE(rig.events(events::fault_undone).empty());
  EXPECT_TRUE(rig.events(events::close).empty());
  expect_recovered(rig);
  caller.close();
  const auto undone = rig.await_events(events::fault_undone, 1)[0].attrs;
  EXPECT_NE(undone["how"].get<std::string>().find(std::to_string(2 * announce.size())), std::string::npos)
      << undone.dump();
  const auto closes =
      rig.await_events(events::close, 2);  // of this connection and of the one that came after the fault
  const auto& closed = closes[0].attrs["conn"] == 1 ? closes[0].attrs : closes[1].attrs;
  EXPECT_EQ(closed["cause"], "fault:blackhole");
  EXPECT_EQ(closed["up_bytes"], announce.size());
  EXPECT_EQ(callee.requests().size(), 2u);
  EXPECT_TRUE(eventually([&] { return rig.activity.busy().empty(); })) << "and then it has given up";
}

TEST(HttpFault, BlackholeStaysWhenTheCalleeLeaves) {
  std::atomic<bool> leave{false};
  Callee callee([&](Peer& peer) {
    EXPECT_TRUE(eventually([&] { return leave.load(); }));
    peer.close();
  });
  Rig rig(callee.port(), {.faults = {at_request("blackhole", 1)}});
  auto caller = rig.dial();
  caller.send(announce);
  evidence(rig);
  leave = true;
  EXPECT_FALSE(anything_comes(caller, milliseconds(100)));
  caller.close();
  rig.await_events(events::fault_undone, 1);
}

TEST(HttpFault, LatencyHoldsTheRequestFromItsArrival) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("latency", 2, {{"for", "150ms"}})}});
  auto caller = rig.dial();
  caller.send(announce);
  caller.receive_message();
  EXPECT_FALSE(anything_comes(caller, milliseconds(200)));  // an idle connection uses none of the delay up
  const auto begin = std::chrono::steady_clock::now();
  caller.send(announce);
  EXPECT_TRUE(eventually([&] { return !rig.activity.busy().empty(); }));
  const auto moved = rig.activity.last();
  EXPECT_FALSE(anything_comes(caller, milliseconds(50)));
  EXPECT_EQ(rig.activity.last(), moved);
  EXPECT_EQ(callee.requests().size(), 1u);
  EXPECT_EQ(rig.activity.busy().size(), 1u);
  EXPECT_EQ(caller.receive_message(), ok_response("{\"ok\":true}"));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 150.0);
  const auto proof = evidence(rig);
  EXPECT_EQ(proof["scheduled_ms"], 150.0);
  EXPECT_GE(proof["actual_ms"].get<double>(), 150.0);
  EXPECT_LE(proof["actual_ms"].get<double>(), took.count());
  EXPECT_EQ(rig.await_events(events::request, 2)[1].attrs["outcome"], "replied");
  EXPECT_EQ(rig.await_events(events::fault_undone, 1).size(), 1u);
}

TEST(HttpFault, ALateRequestStillArrivesWhenItsCallerHasGivenUp) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("latency", 1, {{"for", "100ms"}})}});
  {
    auto caller = rig.dial();
    caller.send(announce);
    EXPECT_TRUE(eventually([&] { return !rig.activity.busy().empty(); }));
  }
  const auto request = rig.await_events(events::request, 1)[0].attrs;
  EXPECT_EQ(callee.requests(), std::vector<std::string>{announce});
  EXPECT_EQ(request["outcome"], "no-reply");
  EXPECT_EQ(rig.events(events::fault_fired).size(), 1u);
  EXPECT_TRUE(rig.events(events::reply).empty());
}

TEST(HttpFault, ALateRequestStillArrivesWhenItsCallerHasReset) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("latency", 1, {{"for", "100ms"}})}});
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_TRUE(eventually([&] { return !rig.activity.busy().empty(); }));
  caller.close_with_reset();
  EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "caller-reset");
  EXPECT_EQ(rig.events(events::fault_fired).size(), 1u);
  EXPECT_EQ(rig.events(events::close)[0].attrs["up_bytes"], announce.size());
  EXPECT_EQ(rig.events(events::request)[0].attrs["outcome"], "no-reply");
  EXPECT_TRUE(eventually([&] { return rig.loop_sleeps(); })) << "what is over goes on asking its sockets";
}

TEST(HttpFault, LatencyHoldsALargeBodyWithinItsBound) {
  const auto large = post("/announce/7", std::string(2 << 20, 'x'));
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("latency", 1, {{"for", "100ms"}})}});
  auto caller = rig.dial();
  caller.send(large);
  EXPECT_EQ(caller.receive_message(), ok_response("{\"ok\":true}"));
  EXPECT_TRUE(callee.requests()[0] == large);
  EXPECT_GE(evidence(rig)["actual_ms"].get<double>(), 100.0);
}

TEST(HttpFault, LoseResponseLetsTheRequestTakeEffectOnce) {
  const auto answer = ok_response("{\"stored\":7}", "Content-Type: application/json\r\n");
  HttpCallee callee([&](const std::string&) { return answer; });
  Rig rig(callee.port(), {.faults = {at_request("lose-response", 1)}});
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_EQ(caller.receive_all(), "");
  EXPECT_EQ(caller.ending(), "ECONNRESET");
  EXPECT_EQ(callee.requests(), std::vector<std::string>{announce});
  EXPECT_EQ(evidence(rig),
            (Value{{"conn", 1}, {"status", 200}, {"response_bytes", answer.size()}, {"request_forwarded", true}}));
  const auto request = rig.await_events(events::request, 1)[0].attrs;
  EXPECT_EQ(request["outcome"], "lost");
  EXPECT_EQ(request["reply"], (Value{{"status", 200}, {"json", {{"stored", 7}}}, {"delivered", false}}));
  EXPECT_TRUE(rig.events(events::reply).empty());
  EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "fault:lose-response");
  EXPECT_EQ(rig.await_events(events::fault_undone, 1).size(), 1u);
  EXPECT_TRUE(eventually([&] { return rig.activity.busy().empty(); }));
}

TEST(HttpFault, LoseResponseLetsContinueThroughAndLosesALargeChunkedResponse) {
  std::string chunked = "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 64; ++i) chunked += "4000\r\n" + std::string(0x4000, 'c') + "\r\n";
  chunked += "0\r\n\r\n";
  const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
  Callee callee([&](Peer& peer) {
    peer.receive_until("\r\n\r\n");
    peer.send(interim);
    EXPECT_EQ(peer.receive(4), "body");
    peer.send(chunked);
    EXPECT_EQ(peer.await_ending(), "end");
  });
  Rig rig(callee.port(), {.faults = {at_request("lose-response", 1)}});
  auto caller = rig.dial();
  caller.send("POST /announce/9 HTTP/1.1\r\nHost: c\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(caller.receive(interim.size()), interim);
  caller.send("body");
  EXPECT_EQ(caller.receive_all(), "");
  EXPECT_EQ(caller.ending(), "ECONNRESET");
  const auto proof = evidence(rig);
  EXPECT_EQ(proof["status"], 201);
  EXPECT_EQ(proof["response_bytes"], chunked.size());
}

TEST(HttpFault, LoseResponseLosesOneThatEndsWithItsConnection) {
  Callee callee([&](Peer& peer) {
    peer.receive(announce.size());
    peer.send("HTTP/1.0 200 OK\r\n\r\nto the end");
  });
  Rig rig(callee.port(), {.faults = {at_request("lose-response", 1)}});
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_EQ(caller.receive_all(), "");
  EXPECT_EQ(caller.ending(), "ECONNRESET");
  EXPECT_EQ(evidence(rig)["status"], 200);
}

TEST(HttpFault, LoseResponseDoesNotFireWithoutAResponse) {
  Callee callee([&](Peer& peer) { peer.receive(announce.size()); });
  Rig rig(callee.port(), {.faults = {at_request("lose-response", 1)}});
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_EQ(caller.await_ending(), "end");
  EXPECT_EQ(rig.await_events(events::request, 1)[0].attrs["outcome"], "no-reply");
  EXPECT_TRUE(rig.events(events::fault_fired).empty());
}

TEST(HttpFault, TwoFaultsOfOnePlanBothStrike) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("lose-response", 1), at_request("reset", 2)}});
  for (int i = 0; i < 2; ++i) {
    auto caller = rig.dial();
    caller.send(announce);
    EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  }
  const auto fired = rig.await_events(events::fault_fired, 2);
  EXPECT_EQ(fired[0].attrs["kind"], "lose-response");
  EXPECT_EQ(fired[1].attrs["kind"], "reset");
  EXPECT_EQ(fired[1].lane, "shop -> broker");
  EXPECT_EQ(callee.requests().size(), 1u);
  expect_recovered(rig);
}

TEST(HttpFault, ADelayAndALossOfOneRequestBothStrike) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("lose-response", 1), at_request("latency", 1, {{"for", "50ms"}})}});
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  EXPECT_EQ(rig.await_events(events::fault_fired, 2).size(), 2u);
  EXPECT_EQ(callee.requests().size(), 1u);
}

TEST(HttpFault, WhatTheCallerDoesAfterAFaultHappenedAfterIt) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("reset", 1)}});
  auto caller = rig.dial();
  caller.send(announce);
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  const auto next = rig.recorder->record("shop", events::log, {{"line", "giving up"}});
  const auto fired = rig.events(events::fault_fired)[0];
  EXPECT_GE(next.at(fired.lane), fired.seq);
}

TEST(HttpFault, StopEndsWhatFaultsHold) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {at_request("latency", 1, {{"for", "1h"}}), at_request("blackhole", 2)}});
  auto late = rig.dial(), lost = rig.dial();
  late.send(announce);
  EXPECT_TRUE(eventually([&] { return !rig.activity.busy().empty(); }));
  lost.send(announce);
  evidence(rig);
  rig.stop();
  EXPECT_NE(late.await_ending(), "");
  EXPECT_NE(lost.await_ending(), "");
  EXPECT_TRUE(rig.activity.busy().empty());
  EXPECT_TRUE(rig.events(events::close).empty());
}

}  // namespace
}  // namespace leafcutter::node
