// Defects of Toxiproxy that were measured, each as a test that it would fail, and what its users asked for most.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>

#include "node/proxy/socket_address.hpp"
#include "rig.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

using proxy::Clock;
using proxy::echo;
using proxy::slowness;

/// Says `count` megabytes, whoever reads them.
void flood(Peer& peer) {
  peer.receive(1);
  const std::string block(1 << 20, 'f');
  while (peer.try_send(block)) {
  }
}

/// Listens and never accepts, with a full queue: connections to it are neither made nor refused.
class DeadEnd {
 public:
  DeadEnd() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto any = proxy::literal_address({"127.0.0.1", 0})[0];
    EXPECT_EQ(::bind(fd_.get(), any.get(), any.length), 0);
    EXPECT_EQ(::listen(fd_.get(), 0), 0);
    const auto own = proxy::local_address(fd_.get());
    address_ = own.text();
    for (int i = 0; i < 4; ++i) {
      fill_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)::connect(fill_.back().get(), own.get(), own.length);
    }
  }
  const std::string& address() const { return address_; }

 private:
  base::UniqueFd fd_;
  std::string address_;
  std::vector<base::UniqueFd> fill_;
};

/// How long a call takes.
proxy::Duration time_of(const std::function<void()>& call) {
  const auto begin = Clock::now();
  call();
  return Clock::now() - begin;
}

/// The best of three calls that add the toxic and remove it again.
proxy::Duration removal_time(const ApiRig& rig, const std::string& type, const std::string& attributes) {
  auto best = proxy::Duration::max();
  for (int i = 0; i < 3; ++i) {
    rig.toxic("db", type, attributes, R"("name":"again")");
    best = std::min(best, time_of([&] { rig.remove_toxic("db", "again"); }));
  }
  return best;
}

// (1: the seed is ignored, is Toxicity.IsDrawnForEachConnectionFromTheSeed.)

TEST(Defects, AClientThatEndsItsHalfStillGetsItsAnswer) {
  for (const bool toxic : {false, true}) {
    Upstream upstream([](Peer& peer) {
      const auto request = peer.receive_all();
      peer.send("answer to " + request);
    });
    ApiRig rig;
    const auto listen = rig.proxy("db", upstream.address());
    if (toxic) {
      rig.toxic("db", "latency", R"("latency":20)");
      rig.toxic("db", "slow_close", R"("delay":20)", R"("stream":"upstream")");
    }
    auto peer = Peer::dial(listen);
    peer.send("request");
    peer.finish_sending();
    EXPECT_EQ(peer.receive_all(), "answer to request");
    EXPECT_EQ(ending_soon(peer), "end");
  }
}

TEST(Defects, ResetPeerResetsConnectionsThatWereOpenAlready) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto listen = rig.proxy("db", upstream.address());
  std::vector<Peer> peers;
  for (int i = 0; i < 10; ++i) {
    peers.push_back(Peer::dial(listen));
    peers.back().send("x");
    EXPECT_EQ(peers.back().receive(1), "x");
  }
  rig.toxic("db", "reset_peer", R"("timeout":0)");
  for (auto& peer : peers) EXPECT_EQ(peer.ending(), "ECONNRESET");
}

TEST(Defects, ResetPeerWithAToxicityOfZeroResetsNothing) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto listen = rig.proxy("db", upstream.address());
  rig.toxic("db", "reset_peer", "", R"("toxicity":0)");
  for (int i = 0; i < 50; ++i) {
    auto peer = Peer::dial(listen);
    peer.send("x");
    peer.finish_sending();
    EXPECT_EQ(peer.receive_all(), "x");
    EXPECT_EQ(ending_soon(peer), "end") << "connection " << i;
  }
}

TEST(Defects, DisablingDoesNotWaitForAConnectThatHangs) {
  const DeadEnd nowhere;
  ApiRig rig;
  const auto listen = rig.proxy("db", nowhere.address());
  auto waiting = Peer::dial(listen), also_waiting = Peer::dial(listen);
  ASSERT_TRUE(eventually([&] { return rig.stats("db").accepted == 2; }));
  EXPECT_TRUE(waiting.quiet_for(100ms)) << "the connect hangs, or the test says nothing";
  EXPECT_LT(time_of([&] { rig.expect(200, "POST", "/proxies/db", R"({"enabled":false})"); }), 500ms * slowness);
  EXPECT_EQ(ending_soon(waiting), "end");
  EXPECT_EQ(ending_soon(also_waiting), "end");
}

TEST(Defects, AConnectThatHangsKeepsNoOtherClientWaiting) {
  const DeadEnd nowhere;
  Upstream upstream(echo);
  ApiRig rig;
  const auto listen = rig.proxy("db", nowhere.address());
  auto waiting = Peer::dial(listen);
  ASSERT_TRUE(eventually([&] { return rig.stats("db").accepted == 1; }));
  rig.expect(201, "POST", "/proxies", proxy_json("other", "localhost:0", upstream.address()));
  auto peer = Peer::dial(rig.stats("other").listen);
  peer.send("x");
  EXPECT_EQ(peer.receive(1), "x");
  auto second = Peer::dial(listen);
  EXPECT_TRUE(eventually([&] { return rig.stats("db").accepted == 2; })) << "the accept loop waits for the connect";
}

TEST(Defects, ClientsThatStopReadingDoNotStopTheInterface) {
  Upstream upstream(flood);
  ApiRig rig;
  const auto listen = rig.proxy("db", upstream.address());
  rig.toxic("db", "latency", R"("latency":3000)");
  std::vector<Peer> stuck;
  for (int i = 0; i < 6; ++i) {
    stuck.push_back(Peer::dial(listen));
    stuck.back().send("?");
  }
  ASSERT_TRUE(eventually([&] { return rig.stats("db").held_bytes > (8 << 20); }));
  EXPECT_LT(time_of([&] { rig.remove_toxic("db", "latency_downstream"); }), 50ms * slowness);
  EXPECT_LT(time_of([&] { rig.expect(200, "GET", "/proxies"); }), 50ms * slowness);
  EXPECT_LT(time_of([&] { rig.expect(200, "GET", "/metrics"); }), 50ms * slowness);
  EXPECT_LE(rig.stats("db").held_bytes_peak, std::uint64_t{64} << 20) << "the budget of a link";
  EXPECT_LT(time_of([&] { rig.expect(204, "DELETE", "/proxies/db"); }), 500ms * slowness);
}

TEST(Defects, AThousandStuckClientsDoNotSlowARemoval) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  constexpr rlim_t descriptors = 5000;
  if (limit.rlim_max < descriptors)
    GTEST_SKIP() << "a process may have no more than " << limit.rlim_max << " files here";
  limit.rlim_cur = std::max(limit.rlim_cur, descriptors);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  // One thread that floods all of them, in place of a thousand.
  const auto listener = proxy::open_listener(proxy::literal_address({"127.0.0.1", 0})[0], SOCK_STREAM);
  ASSERT_TRUE(listener);
  ApiRig rig;
  const auto listen = rig.proxy("db", proxy::local_address(listener->get()).text());
  rig.toxic("db", "latency", R"("latency":60000)");
  std::vector<Peer> clients;
  std::vector<base::UniqueFd> servers;
  const std::string block(64 << 10, 'f');
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(Peer::dial(listen));
    ASSERT_TRUE(eventually([&] {
      servers.emplace_back(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!servers.back()) servers.pop_back();
      return servers.size() == static_cast<std::size_t>(i) + 1;
    }));
    (void)::send(servers.back().get(), block.data(), block.size(), MSG_NOSIGNAL);
  }
  ASSERT_TRUE(eventually([&] { return rig.stats("db").held_bytes > (20 << 20) && rig.stats("db").active == 1000; }));
  EXPECT_LT(time_of([&] { rig.remove_toxic("db", "latency_downstream"); }), 50ms * slowness);
  EXPECT_LT(removal_time(rig, "latency", R"("latency":60000)"), 50ms * slowness);
  EXPECT_LT(removal_time(rig, "bandwidth", R"("rate":0)"), 50ms * slowness);
  EXPECT_LT(removal_time(rig, "slicer", R"("average_size":10,"delay":1000000)"), 50ms * slowness);
}

TEST(Defects, ResetPeerReachesIdleConnectionsAndTimeoutEndsBusyOnes) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto listen = rig.proxy("db", upstream.address());
  rig.toxic("db", "reset_peer", R"("timeout":100)");
  auto idle = Peer::dial(listen);
  const auto begin = Clock::now();
  EXPECT_EQ(idle.ending(), "ECONNRESET");
  EXPECT_LT(Clock::now() - begin, 1s * slowness);
  rig.remove_toxic("db", "reset_peer_downstream");
  // (A timeout under steady traffic is Toxics.TimeoutIsNotReArmedByTraffic.)
}

TEST(Configuration, IsWhatTheInterfaceSaysOfItsProxies) {
  std::string said;
  {
    const ApiRig rig;
    rig.proxy("a", "127.0.0.1:1");
    rig.toxic("a", "latency", R"("latency": 7, "jitter": 3)", R"("toxicity": 0.25, "name": "far")");
    rig.toxic("a", "reset_peer", "", R"("stream": "upstream", "only": {"connections": {"last": 3}})");
    rig.proxy("b", "127.0.0.1:2");
    rig.expect(200, "PATCH", "/proxies/b", R"({"enabled": false})");
    said = rig.call("GET", "/proxies").body;
  }
  ServiceOptions options;
  options.config = said;
  const ApiRig again(std::move(options));
  EXPECT_EQ(again.call("GET", "/proxies").body, said);
  // Over HTTP an array is wanted, as ever.
  EXPECT_EQ(again.call("POST", "/populate", said).status, 400);
}

TEST(Defects, ToxicsAreHonouredWhereverProxiesComeFrom) {
  Upstream upstream(echo);
  const auto toxics =
      R"("toxics":[{"type":"latency","attributes":{"latency":80}},)"
      R"({"type":"limit_data","name":"cap","stream":"upstream","toxicity":0.5,"attributes":{"bytes":9}}])";
  ServiceOptions options;
  options.config = "[" + proxy_json("configured", "localhost:0", upstream.address(), toxics) + "]";
  ApiRig rig(std::move(options));
  rig.expect(201, "POST", "/proxies", proxy_json("created", "localhost:0", upstream.address(), toxics));
  rig.expect(201, "POST", "/populate", "[" + proxy_json("populated", "localhost:0", upstream.address(), toxics) + "]");
  const auto proxies = rig.expect(200, "GET", "/proxies").json();
  for (const auto* name : {"configured", "created", "populated"}) {
    ASSERT_EQ(proxies[name]["toxics"].size(), 2U) << name;
    EXPECT_EQ(proxies[name]["toxics"][0]["name"], "cap");
    EXPECT_EQ(proxies[name]["toxics"][0]["toxicity"], 0.5);
    EXPECT_EQ(proxies[name]["toxics"][1]["attributes"]["latency"], 80);
    auto peer = Peer::dial(proxies[name]["listen"].get<std::string>());
    EXPECT_GE(time_of([&] {
                peer.send("x");
                EXPECT_EQ(peer.receive(1), "x");
              }),
              80ms)
        << name;
  }
  // Populating again with other toxics sets those, without dropping a connection; without any it leaves them.
  auto open = Peer::dial(proxies["populated"]["listen"].get<std::string>());
  open.send("x");
  EXPECT_EQ(open.receive(1), "x");
  const auto again = [&](const std::string& more) {
    const auto body =
        "[" + proxy_json("populated", proxies["populated"]["listen"].get<std::string>(), upstream.address(), more) +
        "]";
    return rig.expect(201, "POST", "/populate", body).json()["proxies"][0]["toxics"].size();
  };
  EXPECT_EQ(again(""), 2U);
  EXPECT_EQ(again(R"("toxics":[{"type":"noop"}])"), 1U);
  EXPECT_EQ(again(R"("toxics":[])"), 0U);
  EXPECT_LT(time_of([&] {
              open.send("y");
              EXPECT_EQ(open.receive(1), "y");
            }),
            75ms * slowness);
}

}  // namespace
}  // namespace leafcutter::node::toxiproxy
