// Plain bytes through a link: untouched, bounded, with their ends.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/random.hpp"
#include "rig.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

RigOptions tcp(std::vector<Fault> faults = {}) {
  return {.protocol = scenarios::Protocol::tcp, .faults = std::move(faults)};
}

std::string noise(std::size_t size, std::uint64_t seed) {
  base::Stream draws(seed, "noise", 0);
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const auto word = draws.next();
    std::copy_n(reinterpret_cast<const char*>(&word), 8, bytes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return bytes;
}

void echo(Peer& peer) {
  for (;;) {
    const auto bytes = peer.receive(1);
    if (bytes.empty() || !peer.try_send(bytes)) return;
  }
}

TEST(Pumping, CarriesTenMegabytesBothWaysAtOnceUnchanged) {
  constexpr std::size_t size = 10 << 20;
  const auto up = noise(size, 1), down = noise(size, 2);
  std::string got_up, got_down;
  Value closed;
  {
    Callee callee([&](Peer& peer) {
      std::thread sender([&] {
        peer.send(down);
        peer.finish_sending();
      });
      got_up = peer.receive_all();
      sender.join();
    });
    Rig rig(callee.port(), tcp());
    auto caller = rig.dial();
    std::thread sender([&] {
      caller.send(up);
      caller.finish_sending();
    });
    got_down = caller.receive_all();
    sender.join();
    closed = rig.await_events(events::close, 1)[0].attrs;
    EXPECT_EQ(rig.events(events::connect).size(), 1u);
    EXPECT_EQ(rig.events(events::connect)[0].attrs["accepted"], true);
  }
  EXPECT_TRUE(got_up == up);
  EXPECT_TRUE(got_down == down);
  EXPECT_EQ(closed["up_bytes"], size);
  EXPECT_EQ(closed["down_bytes"], size);
}

TEST(Pumping, HonoursAHalfClose) {
  Callee callee([](Peer& peer) {
    const auto all = peer.receive_all();  // answers only after the caller's end
    peer.send("got " + std::to_string(all.size()));
  });
  Rig rig(callee.port(), tcp());
  auto caller = rig.dial();
  caller.send("12345");
  caller.finish_sending();
  EXPECT_EQ(caller.receive_all(), "got 5");
  EXPECT_EQ(caller.ending(), "end");
  EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "caller-closed");
}

TEST(Pumping, LetsTheCalleeEndFirst) {
  Callee callee([](Peer& peer) {
    peer.send("bye");
    peer.finish_sending();
    EXPECT_EQ(peer.receive_all(), "still here");
  });
  Rig rig(callee.port(), tcp());
  auto caller = rig.dial();
  EXPECT_EQ(caller.receive_all(), "bye");
  caller.send("still here");
  caller.finish_sending();
  EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "callee-closed");
}

TEST(Pumping, HandsOnAReset) {
  Callee resetting([](Peer& peer) {
    peer.receive(2);
    peer.close_with_reset();
  });
  {
    Rig rig(resetting.port(), tcp());
    auto caller = rig.dial();
    caller.send("hi");
    EXPECT_EQ(caller.await_ending(), "ECONNRESET");
    EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "callee-reset");
  }
  std::string seen;
  {
    Callee callee([&](Peer& peer) { seen = peer.await_ending(); });
    Rig rig(callee.port(), tcp());
    auto caller = rig.dial();
    rig.await_events(events::connect, 1);
    caller.close_with_reset();
    EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["cause"], "caller-reset");
  }
  EXPECT_EQ(seen, "ECONNRESET");
}

TEST(Pumping, BringsTheLastWordsOfACalleeThatResets) {
  Callee callee([](Peer& peer) {
    peer.receive(4);
    peer.send("last words");
    peer.close_with_reset();
  });
  Rig rig(callee.port(), tcp());
  auto caller = rig.dial();
  caller.send("1234");
  const auto words = caller.receive_all();
  // The callee's own kernel may throw its last words away with the reset; what it sent must not get lost here.
  EXPECT_TRUE(words == "last words" || words.empty()) << words;
  EXPECT_EQ(caller.ending(), "ECONNRESET");
  EXPECT_EQ(rig.await_events(events::close, 1)[0].attrs["down_bytes"], words.size());
}

TEST(Pumping, RefusesWhereNobodyListens) {
  Rig rig(dead_port(), tcp());
  auto caller = rig.dial();
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  EXPECT_EQ(rig.await_events(events::connect, 1)[0].attrs["accepted"], false);
  const auto closed = rig.await_events(events::close, 1)[0].attrs;
  EXPECT_EQ(closed["cause"], "refused");
  EXPECT_FALSE(closed.contains("detail"));
}

TEST(Pumping, TriesTheUpstreamsInTheirOrder) {
  Callee callee(echo);
  auto options = tcp();
  options.dead_ports_first = {dead_port(), dead_port()};
  Rig rig(callee.port(), options);
  auto caller = rig.dial();
  caller.send("x");
  EXPECT_EQ(caller.receive(1), "x");
  EXPECT_EQ(rig.events(events::connect).size(), 1u);
}

TEST(Pumping, HoldsNoMoreThanItsBoundForASlowReader) {
  constexpr int kernel_bytes = 32 * 1024;  // the kernel doubles it
  std::atomic<bool> finish{false};
  Callee callee(
      [&](Peer& peer) {
        EXPECT_TRUE(eventually([&] { return finish.load(); }));
        EXPECT_EQ(peer.receive_all().find_first_not_of('s'), std::string::npos);
      },
      kernel_bytes);
  for (const auto protocol : {scenarios::Protocol::tcp, scenarios::Protocol::http}) {
    finish = false;
    Rig rig(callee.port(), {.protocol = protocol, .faults = {}, .buffer_bytes = kernel_bytes});
    auto caller = rig.dial();
    caller.buffer_sizes(kernel_bytes);
    std::size_t written = 0;
    const std::string chunk(16 * 1024, 's');
    // Writes until nothing has gone for 100 ms.
    for (;;) {
      pollfd writable{caller.fd(), POLLOUT, 0};
      if (::poll(&writable, 1, 100) <= 0) break;
      const auto count = ::send(caller.fd(), chunk.data(), chunk.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) written += static_cast<std::size_t>(count);
      ASSERT_LT(written, 64u << 20);
    }
    // Four kernel buffers of at most 2 x 32 KiB (and what the kernel charges beyond), and one of the proxy.
    EXPECT_LT(written, 4u * 2 * kernel_bytes + 2 * kernel_bytes + (256u << 10));
    EXPECT_GT(written, 64u << 10);
    finish = true;
    caller.finish_sending();
    const auto closed = rig.await_events(events::close, 1)[0].attrs;
    EXPECT_EQ(closed["up_bytes"], written);
  }
}

TEST(Pumping, ADelayedAnswerIsCausedByTheQuestion) {
  Callee callee(echo);
  Rig rig(callee.port(), tcp());
  rig.recorder->record("shop", "log", {{"line", "before"}});
  auto caller = rig.dial();
  caller.send("x");
  EXPECT_EQ(caller.receive(1), "x");
  const auto seen = rig.recorder->now("broker");
  ASSERT_TRUE(seen.contains("shop"));
  EXPECT_EQ(seen.at("shop"), 1u);
}

TEST(Pumping, StopsAtOnceWithoutEvents) {
  std::atomic<int> ended{0};
  Callee callee([&](Peer& peer) {
    peer.receive_all();
    ++ended;
  });
  Rig rig(callee.port(), tcp());
  std::vector<Peer> callers;
  for (int i = 0; i < 5; ++i) callers.push_back(rig.dial());
  rig.await_events(events::connect, 5);
  rig.stop();
  for (auto& caller : callers) EXPECT_NE(caller.await_ending(), "");
  EXPECT_TRUE(eventually([&] { return ended == 5; }));
  EXPECT_TRUE(rig.events(events::close).empty());
}

}  // namespace
}  // namespace leafcutter::node
