// The engine carrying TCP without faults, and what it says of it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <cstring>
#include <future>

#include "base/random.hpp"
#include "loopback.hpp"
#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string noise(std::size_t size, std::uint64_t seed = 1) {
  base::Stream draws(seed, "noise", 0);
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const auto word = draws.next();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  return bytes;
}

/// Sends and receives at the same time; what came back.
std::string exchange(Peer& peer, const std::string& bytes) {
  std::thread sender([&] {
    peer.send(bytes);
    peer.finish_sending();
  });
  auto back = peer.receive_all();
  sender.join();
  return back;
}

TEST(EngineStream, CarriesBothWaysAndSaysHowMuch) {
  Rig rig;
  Upstream upstream(echo);
  auto client = Peer::dial(rig.link("l", upstream.address()));
  client.send("hello");
  EXPECT_EQ(client.receive(5), "hello");
  client.finish_sending();
  EXPECT_EQ(client.ending(), "end");
  const auto closed = rig.await(EventKind::closed, 1);
  EXPECT_EQ(closed[0].cause, Cause::finished);
  EXPECT_EQ(closed[0].bytes, 5u);
  EXPECT_EQ(closed[0].bytes_back, 5u);
  EXPECT_EQ(closed[0].link, "l");
  const auto stats = rig.stats("l");
  EXPECT_EQ(stats.accepted, 1u);
  EXPECT_EQ(stats.connected, 1u);
  EXPECT_EQ(stats.closed, 1u);
  EXPECT_EQ(stats.active, 0u);
  EXPECT_EQ(stats.bytes_to_upstream, 5u);
  EXPECT_EQ(stats.bytes_to_client, 5u);
  EXPECT_EQ(rig.events(EventKind::connected)[0].connection, 1u);
  EXPECT_THAT(rig.events(EventKind::accepted)[0].detail, HasSubstr("127.0.0.1:"));
}

TEST(EngineStream, IPv6AndNames) {
  Rig rig;
  Upstream six(echo, "::1");
  auto client = Peer::dial(rig.link("six", six.address()));
  client.send("x");
  EXPECT_EQ(client.receive(1), "x");
  Upstream four(echo);
  auto named = Peer::dial(rig.link("named", "localhost:" + std::to_string(port_of(four.address()))));
  named.send("y");
  EXPECT_EQ(named.receive(1), "y");
}

TEST(EngineStream, HalfCloseIsHonouredEitherWay) {
  Rig rig;
  Upstream asks([](Peer& peer) {
    const auto request = peer.receive_all();  // the end of the request is its end of stream
    peer.send("answer to " + request);
  });
  auto client = Peer::dial(rig.link("l", asks.address()));
  client.send("question");
  client.finish_sending();
  EXPECT_EQ(client.receive_all(), "answer to question");
  Upstream greets([](Peer& peer) {
    peer.send("bye");
    peer.finish_sending();
    EXPECT_EQ(peer.receive_all(), "late");
  });
  auto late = Peer::dial(rig.link("m", greets.address()));
  EXPECT_EQ(late.receive_all(), "bye");
  late.send("late");
  late.close();
  rig.await(EventKind::closed, 2);
}

TEST(EngineStream, BytesArriveAsTheyWereWithAndWithoutSplice) {
  const auto bytes = noise(24 << 20);
  for (const bool splice : {true, false}) {
    EngineOptions options;
    options.splice = splice;
    Rig rig(std::move(options));
    Upstream upstream(echo);
    auto client = Peer::dial(rig.link("l", upstream.address()));
    EXPECT_TRUE(exchange(client, bytes) == bytes);
    EXPECT_EQ(rig.stats("l").bytes_to_client, bytes.size());
    if (splice)
      EXPECT_GT(rig.stats("l").spliced_bytes, bytes.size() / 4);
    else
      EXPECT_EQ(rig.stats("l").spliced_bytes, 0u);
  }
}

// splice(2) into a socket whose other end has gone raises SIGPIPE and takes no flag against it.
TEST(EngineStream, APeerThatGoesInTheMiddleOfASplicedFlowIsNoSignal) {
  ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  Rig rig;
  Upstream upstream([](Peer& peer) {
    const std::string block(1 << 20, 'x');
    while (peer.try_send(block)) {
    }
  });
  const auto address = rig.link("l", upstream.address());
  for (int round = 0; round < 50; ++round) {
    auto client = Peer::dial(address);
    EXPECT_EQ(client.receive(4 << 20).size(), 4u << 20);
    client.close();
  }
  EXPECT_TRUE(eventually([&] { return rig.stats("l").active == 0; }));
  EXPECT_GT(rig.stats("l").spliced_bytes, 0u);
}

TEST(EngineStream, BytesArriveAsTheyWereWhileFaultsComeAndGo) {
  EngineOptions options;
  options.threads = 2;
  Rig rig(std::move(options));
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address());
  std::atomic<bool> done{false};
  std::thread changer([&] {
    base::Stream draws(3, "changes", 0);
    const std::vector<Fault> choices{fault(Latency{FixedTime{3ms}}), fault(Jitter{0ms, 2ms}),
                                     fault(Bandwidth{80'000'000}), fault(Slice{4000, 1000, 100us}),
                                     fault(Blackhole{}, Flow::to_client)};
    for (int i = 0; !done; ++i) {
      std::vector<Fault> set;
      for (const auto& one : choices)
        if (draws.below(3) == 0) set.push_back(one);
      const auto before = rig.stats("l").bytes_to_upstream;
      rig.set("l", set);
      // A set is in force for some bytes, or for a moment when it stalls them.
      (void)eventually([&] { return done || rig.stats("l").bytes_to_upstream > before + 300'000; }, 5ms);
      rig.set("l", {});
    }
  });
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&, i] {
      const auto bytes = noise(8 << 20, static_cast<std::uint64_t>(i));
      auto client = Peer::dial(address);
      EXPECT_TRUE(exchange(client, bytes) == bytes) << i;
    });
  for (auto& one : clients) one.join();
  done = true;
  changer.join();
  rig.await(EventKind::closed, 4);
  EXPECT_EQ(rig.stats("l").held_bytes, 0u);
}

TEST(EngineStream, AResetIsPassedOnAsAReset) {
  Rig rig;
  {
    std::promise<std::string> saw;
    auto upstream_saw = saw.get_future();
    Upstream upstream([&](Peer& peer) { saw.set_value(peer.ending()); });
    auto client = Peer::dial(rig.link("l", upstream.address()));
    rig.await(EventKind::connected, 1);
    client.reset();
    EXPECT_EQ(rig.await(EventKind::closed, 1)[0].cause, Cause::client_reset);
    // The handshake is the kernel's: the upstream may not even have accepted yet.
    ASSERT_EQ(upstream_saw.wait_for(10s), std::future_status::ready) << "the upstream saw no end of the connection";
    EXPECT_EQ(upstream_saw.get(), "ECONNRESET");
  }
  Upstream resets([](Peer& peer) {
    peer.send("last words");
    peer.receive(1);
    peer.reset();
  });
  auto client = Peer::dial(rig.link("m", resets.address()));
  EXPECT_EQ(client.receive(10), "last words");
  client.send("x");
  EXPECT_EQ(client.ending(), "ECONNRESET");
  EXPECT_EQ(rig.await(EventKind::closed, 2)[1].cause, Cause::upstream_reset);
}

TEST(EngineStream, WhatTheUpstreamSaidBeforeItWentArrives) {
  Rig rig;
  Upstream rude([](Peer& peer) { peer.send("go away"); });  // and closes with the request unread
  const auto address = rig.link("l", rude.address());
  for (int i = 0; i < 20; ++i) {
    auto client = Peer::dial(address);
    (void)client.try_send("a long request");
    EXPECT_EQ(client.receive(7), "go away") << i;
  }
}

TEST(EngineStream, AnUpstreamThatRefusesIsAnEndForTheClientAndNoHarmToOthers) {
  Rig rig;
  Upstream upstream(echo);
  const auto good = rig.link("good", upstream.address());
  auto client = Peer::dial(rig.link("bad", "127.0.0.1:" + std::to_string(dead_port())));
  EXPECT_EQ(client.ending(), "end");
  const auto failed = rig.await(EventKind::connect_failed, 1);
  EXPECT_EQ(failed[0].cause, Cause::refused);
  EXPECT_THAT(failed[0].detail, HasSubstr("Connection refused"));
  EXPECT_EQ(rig.stats("bad").connect_failed, 1u);
  auto other = Peer::dial(good);
  other.send("x");
  EXPECT_EQ(other.receive(1), "x");
}

TEST(EngineStream, ANameThatDoesNotExistIsSaid) {
  Rig rig;
  auto client = Peer::dial(rig.link("l", "no-such-host.invalid:80"));
  EXPECT_EQ(client.ending(), "end");
  const auto failed = rig.await(EventKind::connect_failed, 1);
  EXPECT_EQ(failed[0].cause, Cause::unresolved);
  EXPECT_THAT(failed[0].detail, HasSubstr("no-such-host.invalid"));
}

TEST(EngineStream, BadLinksAreRefusedWithWhatWouldDo) {
  Rig rig;
  Upstream upstream(echo);
  const auto add = [&](const std::string& name, const std::string& listen, const std::string& to,
                       std::vector<Fault> faults = {}) {
    LinkConfig config;
    config.name = name;
    config.listen = listen;
    config.upstream = to;
    config.faults.faults = std::move(faults);
    const auto added = rig.engine->add_link(std::move(config));
    return added ? std::string("added") : added.error().message;
  };
  EXPECT_THAT(add("l", upstream.address(), "127.0.0.1:1"), HasSubstr("Address already in use; another process"));
  EXPECT_THAT(add("l", "127.0.0.1", "127.0.0.1:1"), HasSubstr("listen: \"127.0.0.1\" has no port"));
  EXPECT_THAT(add("l", "127.0.0.1:0", "127.0.0.1"), HasSubstr("upstream"));
  EXPECT_THAT(add("l", "127.0.0.1:0", "127.0.0.1:0"), HasSubstr("port 0"));
  EXPECT_THAT(add("", "127.0.0.1:0", "127.0.0.1:1"), HasSubstr("name"));
  EXPECT_THAT(add("l", "127.0.0.1:0", "127.0.0.1:1", {fault(Loss{})}), HasSubstr("link \"l\": faults[0] (loss)"));
  EXPECT_EQ(add("orders", "127.0.0.1:0", "127.0.0.1:1"), "added");
  EXPECT_THAT(add("orders", "127.0.0.1:0", "127.0.0.1:1"), HasSubstr("\"orders\" already"));
  const auto status = rig.engine->set_faults("ordres", {});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("did you mean \"orders\"?"));
}

TEST(EngineStream, AnInvalidSetLeavesAllLinksAsTheyWere) {
  Rig rig;
  Upstream upstream(echo);
  rig.link("a", upstream.address(), {fault(Latency{})});
  rig.link("b", upstream.address());
  std::map<std::string, FaultSet> sets;
  sets["a"] = {"next", {}};
  sets["b"] = {"next", {fault(Slice{0})}};
  EXPECT_FALSE(rig.engine->set_faults(std::move(sets)));
  EXPECT_EQ(rig.engine->faults("a")->faults.size(), 1u);
  EXPECT_EQ(rig.stats("a").phase, "");
}

TEST(EngineStream, DisabledItRefusesAndEndsAndKeepsItsPort) {
  Rig rig;
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address());
  auto client = Peer::dial(address);
  client.send("x");
  EXPECT_EQ(client.receive(1), "x");
  ASSERT_TRUE(rig.engine->set_enabled("l", false));
  EXPECT_EQ(client.ending(), "end");
  Peer none;
  EXPECT_EQ(Peer::try_dial(address, none), ECONNREFUSED);
  ASSERT_TRUE(rig.engine->set_enabled("l", true));
  auto again = Peer::dial(address);
  again.send("y");
  EXPECT_EQ(again.receive(1), "y");
}

TEST(EngineStream, EnablingWhereSomebodyElseListensFailsAndChangesNothing) {
  Rig rig;
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address());
  ASSERT_TRUE(rig.engine->set_enabled("l", false));
  auto other = open_listener(literal_address(*parse_host_port(address, "test"))[0], SOCK_STREAM);
  ASSERT_TRUE(other);
  const auto refused = rig.engine->set_enabled("l", true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::conflict);
  EXPECT_FALSE(rig.stats("l").enabled);
  EXPECT_EQ(rig.await(EventKind::listening_failed, 1)[0].link, "l");
  other->reset();
  ASSERT_TRUE(rig.engine->set_enabled("l", true));
  auto client = Peer::dial(address);
  client.send("y");
  EXPECT_EQ(client.receive(1), "y");
  EXPECT_EQ(rig.stats("l").bytes_from_client, 1U);
  EXPECT_EQ(rig.stats("l").bytes_from_upstream, 1U);
}

TEST(EngineStream, ARemovedLinkIsGone) {
  Rig rig;
  Upstream upstream(echo);
  const auto address = rig.link("l", upstream.address());
  auto client = Peer::dial(address);
  client.send("x");
  client.receive(1);
  ASSERT_TRUE(rig.engine->remove_link("l"));
  EXPECT_EQ(client.ending(), "end");
  Peer none;
  EXPECT_EQ(Peer::try_dial(address, none), ECONNREFUSED);
  EXPECT_FALSE(rig.engine->stats("l"));
  EXPECT_EQ(rig.await(EventKind::closed, 1)[0].cause, Cause::removed);
}

TEST(EngineStream, WithoutAnUpstreamTheEmbeddersSocketsAreConnected) {
  Rig rig;
  Upstream upstream(echo);
  std::atomic<bool> connected{true};
  LinkConfig config;
  config.name = "l";
  config.listen = "127.0.0.1:0";
  config.open_socket = [&](int family, int type) -> base::Expected<base::UniqueFd> {
    base::UniqueFd fd(::socket(family, type | SOCK_CLOEXEC, 0));
    const auto to = resolve_host(*parse_host_port(upstream.address(), "upstream"))->front();
    if (connected && ::connect(fd.get(), to.get(), to.length) != 0) return base::system_error("connect", errno);
    ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
    return fd;
  };
  const auto address = rig.engine->add_link(std::move(config));
  ASSERT_TRUE(address) << address.error().message;
  EXPECT_EQ(rig.stats("l").upstream, "");
  auto client = Peer::dial(*address);
  client.send("x");
  EXPECT_EQ(client.receive(1), "x");
  connected = false;
  auto second = Peer::dial(*address);
  EXPECT_EQ(rig.await(EventKind::connect_failed, 1).at(0).detail,
            "there is no upstream, and the embedder's socket is not connected");
  LinkConfig neither;
  neither.name = "neither";
  neither.listen = "127.0.0.1:0";
  EXPECT_FALSE(rig.engine->add_link(std::move(neither)));
}

TEST(EngineStream, AdoptedListenersAndSocketsOfTheEmbedder) {
  Rig rig;
  Upstream upstream(echo);
  base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ASSERT_EQ(::listen(listener.get(), 10), 0);
  LinkConfig config;
  config.name = "l";
  config.listeners.push_back(std::move(listener));
  config.upstream = upstream.address();
  std::atomic<int> opened{0};
  config.open_socket = [&](int family, int type) -> base::Expected<base::UniqueFd> {
    ++opened;
    return base::UniqueFd(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  };
  const auto address = rig.engine->add_link(std::move(config));
  ASSERT_TRUE(address);
  auto client = Peer::dial("127.0.0.1:" + std::to_string(port_of(*address)));
  client.send("x");
  EXPECT_EQ(client.receive(1), "x");
  EXPECT_EQ(opened, 1);
}

}  // namespace
}  // namespace leafcutter::node::proxy
