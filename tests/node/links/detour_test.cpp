// Faults of a connection's bytes: a struck connection passes through the network fault engine, and no other does.
#include <gtest/gtest.h>
#include <poll.h>

#include "node/links/engine_faults.hpp"
#include "rig.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

RigOptions tcp_struck(const std::string& kind, Value params, std::uint32_t occurrence = 1) {
  return {.protocol = scenarios::Protocol::tcp,
          .faults = {link_fault(kind, "connect", "tcp", occurrence, std::move(params))}};
}

void echo_bytes(Peer& peer) {
  for (;;) {
    const auto bytes = peer.receive(1);
    if (bytes.empty() || !peer.try_send(bytes)) return;
  }
}

bool comes_within(const Peer& peer, milliseconds within) {
  pollfd readable{peer.fd(), POLLIN, 0};
  return ::poll(&readable, 1, static_cast<int>(within.count())) > 0;
}

Value proof_of(Rig& rig) { return rig.await_events(events::fault_fired, 1)[0].attrs["evidence"]; }

std::string cause_of(Rig& rig, std::size_t connection = 1) {
  return rig.await_events(events::close, connection)[connection - 1].attrs["cause"];
}

/// A callee that says `greeting` and listens until the end, in a link that one fault strikes.
struct Struck {
  Struck(const std::string& kind, Value params, const std::string& greeting = "")
      : callee([this, greeting](Peer& peer) {
          if (!greeting.empty()) peer.send(greeting);
          auto all = peer.receive_all();
          const std::lock_guard lock(mutex);
          got = std::move(all);
          ending = peer.ending();
        }),
        rig(callee.port(), tcp_struck(kind, std::move(params))) {}

  std::pair<std::string, std::string> heard() {
    eventually([this] { return !heard_now().second.empty(); });
    return heard_now();
  }
  std::pair<std::string, std::string> heard_now() {
    const std::lock_guard lock(mutex);
    return {got, ending};
  }

  std::mutex mutex;
  std::string got, ending;
  Callee callee;
  Rig rig;
};

// --- every kind, at a connection that never comes ---

struct Example {
  std::string kind;
  Value params;
};

const std::vector<Example>& examples() {
  static const std::vector<Example> list = {
      {"bandwidth", {{"bytes-per-second", 100}}},
      {"bandwidth", {{"bytes-per-second", 100}, {"scope", "link"}}},
      {"jitter", {{"up-to", "2s"}, {"from", "2s"}}},
      {"latency", {{"for", "2s"}, {"distribution", "normal"}, {"spread", "1ms"}}},
      {"latency", {{"for", "2s"}, {"each", "piece"}}},
      {"blackhole", {{"mode", "stall"}}},
      {"blackhole", {{"mode", "drop"}, {"flow", "to-caller"}}},
      {"reset", {{"side", "caller"}}},
      {"reset", {{"after", "1ms"}}},
      {"half-open", {{"gone", "service"}}},
      {"half-open", {{"gone", "caller"}}},
      {"hang-connect", Value::object()},
      {"slow-accept", {{"for", "2s"}}},
      {"reset-after-accept", Value::object()},
      {"slow-close", {{"for", "2s"}}},
      {"cut", {{"after-bytes", 0}}},
      {"cut", {{"after", "1ms"}}},
      {"limit", {{"bytes", 0}}},
      {"slice", {{"bytes", 1}, {"pause", "2s"}}},
      {"truncate", {{"keep", 0}}},
      {"flip-bit", {{"offset", 0}}},
      {"lose-reply", Value::object()},
  };
  return list;
}

TEST(Detour, TheExamplesAreOfEveryKindOfTheEngine) {
  for (const auto& kind : scenarios::fault_kinds()) {
    if (kind.mechanism != scenarios::Mechanism::link || !kind.connections) continue;
    bool shown = !kind.stream;
    for (const auto& example : examples()) shown = shown || example.kind == kind.name;
    EXPECT_TRUE(shown) << kind.name;
  }
  for (const auto& example : examples()) {
    EXPECT_TRUE(scenarios::check_params(*scenarios::fault_kind(example.kind), example.params).ok()) << example.kind;
    EXPECT_TRUE(is_engine_fault(link_fault(example.kind, "connect", "tcp", 1, example.params))) << example.kind;
  }
}

class DetourTwin : public testing::TestWithParam<std::size_t> {};

TEST_P(DetourTwin, AConnectionThatIsNotStruckIsNotTouched) {
  const auto& example = examples()[GetParam()];
  Callee callee(echo_bytes);
  Rig rig(callee.port(), tcp_struck(example.kind, example.params, 2));
  const auto begin = Clock::now();
  auto caller = rig.dial();
  caller.send("e");
  EXPECT_EQ(caller.receive(1), "e");
  caller.finish_sending();
  EXPECT_EQ(caller.await_ending(), "end");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(cause_of(rig), "caller-closed");
  EXPECT_TRUE(rig.events(events::fault_fired).empty());
}

TEST_P(DetourTwin, AndTheNextOneFires) {
  const auto& example = examples()[GetParam()];
  Callee callee([](Peer& peer) {
    peer.receive(1);
    if (peer.try_send("answer")) peer.receive_all();
  });
  Rig rig(callee.port(), tcp_struck(example.kind, example.params, 2));
  for (int i = 0; i < 2; ++i) {
    auto caller = rig.dial();
    caller.try_send("e");
    comes_within(caller, milliseconds(i == 0 ? 2000 : 50));
    if (example.kind == "slow-close") caller.finish_sending();
    if (i == 1) rig.await_events(events::fault_fired, 1);
  }
  const auto fired = rig.await_events(events::fault_fired, 1);
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].attrs["kind"], example.kind);
  EXPECT_EQ(fired[0].attrs["evidence"]["conn"], 2);
  EXPECT_EQ(fired[0].lane, "shop -> broker");
}

INSTANTIATE_TEST_SUITE_P(Kinds, DetourTwin, testing::Range(std::size_t{0}, examples().size()), [](const auto& one) {
  auto name = examples()[one.param].kind + std::to_string(one.param);
  std::erase(name, '-');
  return name;
});

// --- what each does ---

TEST(Detour, BandwidthTakesItsTimeOnThisConnectionAndLaterOnes) {
  Struck struck("bandwidth", {{"bytes-per-second", 20'000}, {"flow", "to-service"}});
  for (int i = 0; i < 2; ++i) {
    const auto begin = Clock::now();
    auto caller = struck.rig.dial();
    caller.send(std::string(4000, 'x'));
    caller.finish_sending();
    EXPECT_EQ(caller.await_ending(), "end");
    EXPECT_GE(Clock::now() - begin, milliseconds(190));
  }
  EXPECT_EQ(struck.heard().first.size(), 4000u);
  EXPECT_EQ(proof_of(struck.rig)["direction"], "to-service");
  EXPECT_TRUE(struck.rig.events(events::fault_undone).empty());
  struck.rig.sites->finish();
  const auto undone = struck.rig.await_events(events::fault_undone, 1)[0].attrs;
  EXPECT_GE(undone["strikes"], 2);
}

TEST(Detour, BandwidthOfALinkIsSharedByItsConnections) {
  Callee callee([](Peer& peer) { peer.receive_all(); });
  Rig rig(callee.port(), tcp_struck("bandwidth", {{"bytes-per-second", 40'000}, {"scope", "link"}}));
  const auto begin = Clock::now();
  auto first = rig.dial(), second = rig.dial();
  for (auto* caller : {&first, &second}) {
    caller->send(std::string(4000, 'x'));
    caller->finish_sending();
  }
  EXPECT_EQ(first.await_ending(), "end");
  EXPECT_EQ(second.await_ending(), "end");
  EXPECT_GE(Clock::now() - begin, milliseconds(190));
}

TEST(Detour, LatencyIsDrawnOnceForTheConnectionAndTheSameEachTime) {
  std::vector<double> delays;
  for (int run = 0; run < 2; ++run) {
    Callee callee(echo_bytes);
    Rig rig(callee.port(),
            tcp_struck("latency",
                       {{"for", "40ms"}, {"distribution", "uniform"}, {"spread", "40ms"}, {"flow", "to-service"}}));
    auto caller = rig.dial();
    for (int i = 0; i < 2; ++i) {
      const auto begin = Clock::now();
      caller.send("a");
      EXPECT_EQ(caller.receive(1), "a");
      const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
      const double delay = proof_of(rig)["delay_ms"];
      EXPECT_GE(took.count(), delay);
      if (i == 0) delays.push_back(delay);
    }
    caller.close();
    EXPECT_NE(rig.await_events(events::fault_undone, 1)[0].attrs["how"].get<std::string>().find("2 bytes"),
              std::string::npos);
  }
  EXPECT_GE(delays[0], 40);
  EXPECT_LE(delays[0], 80);
  EXPECT_EQ(delays[0], delays[1]);
}

TEST(Detour, JitterDelaysEveryPiece) {
  Callee callee(echo_bytes);
  Rig rig(callee.port(), tcp_struck("jitter", {{"from", "30ms"}, {"up-to", "40ms"}}));
  auto caller = rig.dial();
  for (int i = 0; i < 3; ++i) {
    const auto begin = Clock::now();
    caller.send("a");
    EXPECT_EQ(caller.receive(1), "a");
    EXPECT_GE(Clock::now() - begin, milliseconds(60));
  }
}

/// How much of 16 MB a caller can send without waiting longer than a moment.
std::size_t taken_by(Peer& caller) {
  const std::string piece(64 << 10, 'x');
  std::size_t taken = 0;
  while (taken < (16u << 20)) {
    pollfd writable{caller.fd(), POLLOUT, 0};
    if (::poll(&writable, 1, 300) <= 0) break;
    const auto count = ::send(caller.fd(), piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) taken += static_cast<std::size_t>(count);
  }
  return taken;
}

TEST(Detour, AStallingBlackholeIsFeltByTheSender) {
  Struck struck("blackhole", {{"mode", "stall"}, {"flow", "to-service"}}, "hello");
  auto caller = struck.rig.dial();
  EXPECT_EQ(caller.receive(5), "hello");  // the other way is open
  EXPECT_LT(taken_by(caller), 16u << 20);
  EXPECT_EQ(proof_of(struck.rig)["direction"], "to-service");
  EXPECT_EQ(struck.rig.activity.busy().size(), 1u);
}

TEST(Detour, ADroppingBlackholeIsNotFelt) {
  Struck struck("blackhole", {{"mode", "drop"}, {"flow", "to-service"}}, "hello");
  auto caller = struck.rig.dial();
  EXPECT_EQ(caller.receive(5), "hello");
  EXPECT_EQ(taken_by(caller), 16u << 20);
  caller.close();
  EXPECT_TRUE(eventually([&] { return struck.rig.activity.busy().empty(); }));   // the caller has given up
  EXPECT_EQ(struck.heard_now(), (std::pair<std::string, std::string>("", "")));  // and the service was told nothing
}

TEST(Detour, AResetOfOneSideIsAnOrderlyEndToTheOther) {
  {
    Struck struck("reset", {{"side", "caller"}});
    auto caller = struck.rig.dial();
    EXPECT_EQ(caller.await_ending(), "ECONNRESET");
    EXPECT_EQ(struck.heard().second, "end");
    EXPECT_EQ(cause_of(struck.rig), "fault:reset");
  }
  Struck struck("reset", {{"side", "service"}});
  auto caller = struck.rig.dial();
  EXPECT_EQ(caller.await_ending(), "end");
  EXPECT_EQ(struck.heard().second, "ECONNRESET");
}

TEST(Detour, AResetAfterATimeStrikesAnIdleConnection) {
  Struck struck("reset", {{"after", "60ms"}});
  const auto begin = Clock::now();
  auto caller = struck.rig.dial();
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  EXPECT_GE(Clock::now() - begin, milliseconds(60));
  EXPECT_EQ(struck.heard().second, "ECONNRESET");
}

TEST(Detour, AHalfOpenConnectionTellsTheOtherSideNothing) {
  Struck struck("half-open", {{"gone", "service"}});
  auto caller = struck.rig.dial();
  EXPECT_EQ(struck.heard().second, "ECONNRESET");
  caller.send("into the void");
  EXPECT_FALSE(comes_within(caller, milliseconds(100)));
  EXPECT_TRUE(struck.rig.events(events::fault_undone).empty());
  caller.close();
  struck.rig.await_events(events::fault_undone, 1);
}

TEST(Detour, AHangingConnectNeverReachesTheService) {
  Struck struck("hang-connect", Value::object(), "hello");
  auto caller = struck.rig.dial();
  caller.send("anybody?");
  EXPECT_FALSE(comes_within(caller, milliseconds(100)));
  caller.close();
  struck.rig.await_events(events::fault_undone, 1);
  EXPECT_EQ(struck.callee.accepted(), 0);
}

TEST(Detour, ASlowAcceptIsBroughtToTheServiceLater) {
  Callee callee(echo_bytes);
  auto options = tcp_struck("slow-accept", {{"for", "80ms"}});
  options.dead_ports_first = {dead_port()};  // the engine tries the next address, as the proxy would
  Rig rig(callee.port(), options);
  const auto begin = Clock::now();
  auto caller = rig.dial();
  caller.send("e");
  EXPECT_EQ(callee.accepted(), 0);
  EXPECT_EQ(caller.receive(1), "e");
  EXPECT_GE(Clock::now() - begin, milliseconds(80));
  EXPECT_EQ(proof_of(rig)["delay_ms"], 80.0);
}

TEST(Detour, ASlowAcceptThatNobodyAnswersIsARefusal) {
  Rig rig(dead_port(), tcp_struck("slow-accept", {{"for", "1ms"}}));
  auto caller = rig.dial();
  EXPECT_EQ(caller.await_ending(), "end");
  caller.close();
  EXPECT_EQ(cause_of(rig), "refused");
}

TEST(Detour, AResetAfterAcceptNeverReachesTheService) {
  Struck struck("reset-after-accept", {{"after", "30ms"}});
  const auto begin = Clock::now();
  auto caller = struck.rig.dial();
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  EXPECT_GE(Clock::now() - begin, milliseconds(30));
  EXPECT_EQ(struck.callee.accepted(), 0);
}

TEST(Detour, ASlowCloseHoldsTheEndAlone) {
  Callee callee([](Peer& peer) {
    peer.send("bye");
    peer.finish_sending();
    peer.receive_all();
  });
  Rig rig(callee.port(), tcp_struck("slow-close", {{"for", "1s"}, {"flow", "to-caller"}}));
  const auto begin = Clock::now();
  auto caller = rig.dial();
  EXPECT_EQ(caller.receive(3), "bye");
  EXPECT_LT(Clock::now() - begin, milliseconds(1000));
  EXPECT_EQ(caller.await_ending(), "end");
  EXPECT_GE(Clock::now() - begin, milliseconds(1000));
}

TEST(Detour, ACutLetsExactlySoManyBytesThrough) {
  for (const auto* ending : {"close", "reset"}) {
    Struck struck("cut", {{"after-bytes", 3}, {"ending", ending}}, "abcdef");
    auto caller = struck.rig.dial();
    EXPECT_EQ(caller.receive_all(), "abc");
    EXPECT_EQ(caller.ending(), std::string(ending) == "close" ? "end" : "ECONNRESET");
    caller.close();
    EXPECT_EQ(cause_of(struck.rig), "fault:cut");
    EXPECT_EQ(proof_of(struck.rig)["offset"], 3);
  }
}

TEST(Detour, ACutAfterATimeIsNotPutOffByTraffic) {
  Callee callee(echo_bytes);
  Rig rig(callee.port(), tcp_struck("cut", {{"after", "80ms"}}));
  const auto begin = Clock::now();
  auto caller = rig.dial();
  while (caller.try_send("e") && caller.receive(1) == "e" && Clock::now() - begin < std::chrono::seconds(5)) {
  }
  EXPECT_EQ(caller.await_ending(), "end");
  EXPECT_GE(Clock::now() - begin, milliseconds(80));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST(Detour, ALimitEndsOneDirectionAlone) {
  Struck struck("limit", {{"bytes", 3}}, "abcdef");
  auto caller = struck.rig.dial();
  EXPECT_EQ(caller.receive_all(), "abc");
  EXPECT_EQ(caller.ending(), "end");
  caller.send("still here");
  caller.finish_sending();
  EXPECT_EQ(struck.heard().first, "still here");
}

TEST(Detour, ASlicedStreamArrivesPieceByPiece) {
  Struck struck("slice", {{"bytes", 1}, {"pause", "10ms"}, {"flow", "to-caller"}}, "abcdef");
  const auto begin = Clock::now();
  auto caller = struck.rig.dial();
  EXPECT_EQ(caller.receive(6), "abcdef");
  EXPECT_GE(Clock::now() - begin, milliseconds(50));
}

TEST(Detour, ATruncatedStreamStaysOpen) {
  Struck struck("truncate", {{"keep", 3}}, "abcdef");
  auto caller = struck.rig.dial();
  EXPECT_EQ(caller.receive(3), "abc");
  EXPECT_FALSE(comes_within(caller, milliseconds(100)));
  EXPECT_EQ(proof_of(struck.rig)["bytes"], 3);
}

TEST(Detour, AFlippedBitIsTheOnlyDifference) {
  Struck struck("flip-bit", {{"offset", 2}, {"bit", 5}}, "abcdef");
  auto caller = struck.rig.dial();
  EXPECT_EQ(caller.receive(6), "abCdef");
  EXPECT_EQ(proof_of(struck.rig)["offset"], 2);
}

TEST(Detour, ALostReplyMeansThatTheRequestTookEffect) {
  Callee callee([](Peer& peer) {
    if (peer.receive(4) == "take" && peer.try_send("done")) peer.receive_all();
  });
  Rig rig(callee.port(), tcp_struck("lose-reply", Value::object()));
  auto caller = rig.dial();
  caller.send("take");
  EXPECT_EQ(caller.receive_all(), "");
  EXPECT_EQ(caller.ending(), "end");
  caller.close();
  EXPECT_EQ(proof_of(rig)["bytes"], 4);
  EXPECT_EQ(cause_of(rig), "fault:lose-reply");
}

TEST(Detour, HttpIsStillReadAlong) {
  HttpCallee callee;
  Rig rig(callee.port(), {.faults = {link_fault("jitter", "connect", "tcp", 1, {{"up-to", "20ms"}})}});
  auto caller = rig.dial();
  caller.send(get("/"));
  EXPECT_EQ(caller.receive_message(), ok_response("{\"ok\":true}"));
  EXPECT_EQ(rig.await_events(events::request, 1)[0].attrs["outcome"], "replied");
  EXPECT_EQ(rig.await_events(events::fault_fired, 1).size(), 1u);
}

TEST(Detour, AFaultIsKnownToHaveFiredBeforeAnybodySeesIt) {
  for (int i = 0; i < 50; ++i) {
    Struck struck("reset", {{"side", "caller"}});
    auto caller = struck.rig.dial();
    EXPECT_EQ(caller.await_ending(), "ECONNRESET");
    ASSERT_EQ(struck.rig.events(events::fault_fired).size(), 1u) << i;
  }
}

TEST(Detour, ManyStruckConnectionsOneAfterTheOtherAreAllForgotten) {
  Callee callee(echo_bytes);
  Rig rig(callee.port(), tcp_struck("jitter", {{"up-to", "1ms"}}));
  for (int i = 1; i <= 300; ++i) {
    auto caller = rig.dial();
    caller.send("e");
    ASSERT_EQ(caller.receive(1), "e") << i;
    caller.finish_sending();
    ASSERT_EQ(caller.await_ending(), "end") << i;
  }
  EXPECT_EQ(rig.await_events(events::close, 300).size(), 300u);
}

}  // namespace
}  // namespace leafcutter::node
