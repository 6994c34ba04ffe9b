// What a link tells of HTTP exchanges that no fault touches, and that it touches none of their bytes.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>

#include "rig.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

TEST(HttpLink, TellsOfARequestAndItsReply) {
  HttpCallee callee(
      [](const std::string&) { return ok_response("{\"stored\":true}", "Content-Type: application/json\r\n"); });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  const auto sent = post("/orders/order-17?fast=1", "{\"id\":\"order-17\"}");
  caller.send(sent);
  const auto response = caller.receive_message();
  EXPECT_EQ(response, ok_response("{\"stored\":true}", "Content-Type: application/json\r\n"));
  EXPECT_EQ(callee.requests(), std::vector<std::string>{sent});
  const auto request = rig.await_events(events::request, 1)[0];
  auto attrs = request.attrs;
  EXPECT_EQ(request.lane, "shop -> broker");
  EXPECT_TRUE(attrs["started_ms"].is_number_integer());
  attrs.erase("started_ms");
  EXPECT_EQ(attrs, (Value{{"from", "shop"},
                          {"to", "broker"},
                          {"port", "http"},
                          {"method", "POST"},
                          {"path", "/orders/order-17"},
                          {"query", "fast=1"},
                          {"json", {{"id", "order-17"}}},
                          {"outcome", "replied"},
                          {"reply", {{"status", 200}, {"json", {{"stored", true}}}, {"delivered", true}}}}));
  EXPECT_EQ(rig.await_events(events::reply, 1)[0].attrs, (Value{{"from", "broker"},
                                                                {"to", "shop"},
                                                                {"port", "http"},
                                                                {"method", "POST"},
                                                                {"path", "/orders/order-17"},
                                                                {"status", 200},
                                                                {"json", {{"stored", true}}},
                                                                {"request", {{"json", {{"id", "order-17"}}}}}}));
  rig.sites->finish();
  const auto sites = rig.events(events::sites)[0].attrs["sites"];
  EXPECT_NE(std::find(sites.begin(), sites.end(), (Value{"shop -> broker", "request", "POST /orders/order-#", 1})),
            sites.end());
  EXPECT_NE(std::find(sites.begin(), sites.end(), (Value{"shop -> broker", "connect", "tcp", 1})), sites.end());
  EXPECT_TRUE(eventually([&] { return rig.activity.busy().empty(); }));
}

TEST(HttpLink, OrdersCallerLinkAndCallee) {
  Rig* shared = nullptr;
  HttpCallee callee([&](const std::string&) {
    // The callee's own event happened after the caller's: the request had been delivered before it could act.
    shared->recorder->record("broker", "log", {{"line", "working"}});
    return ok_response("done");
  });
  Rig rig(callee.port(), {});
  shared = &rig;
  rig.recorder->record("shop", "log", {{"line", "asking"}});
  auto caller = rig.dial();
  caller.send(get("/x"));
  caller.receive_message();
  // As soon as the caller has the reply, what it does next happened after the callee's work.
  const auto next = rig.recorder->record("shop", "log", {{"line", "answered"}});
  EXPECT_EQ(next.at("broker"), 1u);
  const auto logs = rig.events(events::log);
  EXPECT_EQ(logs[1].lane, "broker");
  EXPECT_EQ(logs[1].clock.at("shop"), 1u);
  const auto request = rig.await_events(events::request, 1)[0];
  EXPECT_EQ(request.clock.at("shop"), 1u);
  EXPECT_EQ(request.clock.at("broker"), 1u);
  const auto reply = rig.await_events(events::reply, 1)[0];
  EXPECT_GT(reply.clock.at("shop -> broker"), request.clock.at("shop -> broker"));
}

TEST(HttpLink, CountsRequestsOfOneConnectionAndOfSeveral) {
  HttpCallee callee;
  Rig rig(callee.port(), {});
  auto kept = rig.dial();
  for (int i = 0; i < 3; ++i) {
    kept.send(post("/a", std::to_string(i)));
    EXPECT_EQ(kept.receive_message(), ok_response("{\"ok\":true}"));
  }
  for (int i = 0; i < 2; ++i) {
    auto fresh = rig.dial();
    fresh.send(post("/a", "again"));
    EXPECT_EQ(fresh.receive_message(), ok_response("{\"ok\":true}"));
  }
  rig.await_events(events::reply, 5);
  EXPECT_EQ(rig.sites->visit({"shop -> broker", "request", "POST /a"}).occurrence, 6u);
  EXPECT_EQ(rig.sites->visit({"shop -> broker", "connect", "tcp"}).occurrence, 4u);
  EXPECT_EQ(callee.accepted(), 3);
}

TEST(HttpLink, KeepsPipelinedRequestsApart) {
  HttpCallee callee([](const std::string& request) { return ok_response(request.substr(0, request.find(" HTTP"))); });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  std::string all;
  for (int i = 0; i < 100; ++i)
    all += i % 2 == 0 ? get("/p" + std::to_string(i)) : post("/q" + std::to_string(i), "body");
  // Cut in the middle of everything.
  for (std::size_t at = 0; at < all.size(); at += 37) caller.send(std::string_view(all).substr(at, 37));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(caller.receive_message(), ok_response((i % 2 == 0 ? "GET /p" : "POST /q") + std::to_string(i)));
  const auto requests = rig.await_events(events::request, 100);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(requests[i].attrs["path"], (i % 2 == 0 ? "/p" : "/q") + std::to_string(i));
    EXPECT_EQ(requests[i].attrs["outcome"], "replied");
    EXPECT_EQ(requests[i].attrs["reply"]["body"], (i % 2 == 0 ? "GET /p" : "POST /q") + std::to_string(i));
  }
  EXPECT_EQ(callee.requests().size(), 100u);
}

TEST(HttpLink, FollowsEveryKindOfBody) {
  const std::vector<std::string> responses = {
      "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n",  // to HEAD
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "HTTP/1.1 204 No Content\r\n\r\n",
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end",
  };
  const std::vector<std::string> requests = {
      "HEAD /head HTTP/1.1\r\nHost: c\r\n\r\n",
      "POST /continue HTTP/1.1\r\nHost: c\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody",
      "PUT /chunks HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
      "GET /nothing HTTP/1.1\r\nHost: c\r\n\r\n",
      "GET /end HTTP/1.0\r\n\r\n",
  };
  Callee callee([&](Peer& peer) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(peer.receive(requests[i].size()), requests[i]);
      peer.send(responses[i]);
    }
    peer.close();
  });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    caller.send(requests[i]);
    EXPECT_EQ(caller.receive(responses[i].size()), responses[i]);
  }
  EXPECT_EQ(caller.await_ending(), "end");
  const auto told = rig.await_events(events::request, 5);
  const std::vector<int> statuses = {200, 201, 200, 204, 200};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(told[i].attrs["outcome"], "replied") << i;
    EXPECT_EQ(told[i].attrs["reply"]["status"], statuses[i]) << i;
  }
  EXPECT_EQ(told[1].attrs["body"], "body");
  EXPECT_EQ(told[2].attrs["body"], "hi");
  EXPECT_EQ(told[2].attrs["reply"]["body"], "hello");
  EXPECT_EQ(told[4].attrs["reply"]["body"], "to the end");
}

TEST(HttpLink, CarriesLargeBodiesUnchanged) {
  const std::string large(10 << 20, 'L');
  std::string got;
  HttpCallee callee([&](const std::string& request) {
    got = request;
    return ok_response(large);
  });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  std::thread sender([&] { caller.send(post("/large", large)); });
  const auto response = caller.receive_message();
  sender.join();
  EXPECT_TRUE(response == ok_response(large));
  EXPECT_TRUE(got == post("/large", large));
  const auto request = rig.await_events(events::request, 1)[0].attrs;
  EXPECT_EQ(request["outcome"], "replied");
  EXPECT_LE(request["body"].get<std::string>().size(), 4096u);
}

TEST(HttpLink, StepsAsideAfterAnUpgrade) {
  const std::string upgrade = "GET /ws HTTP/1.1\r\nHost: c\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  const std::string switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  Callee callee([&](Peer& peer) {
    EXPECT_EQ(peer.receive(upgrade.size()), upgrade);
    peer.send(switched + "frame 1");
    EXPECT_EQ(peer.receive(7), "GET /x\n");
    peer.send("frame 2");
  });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  caller.send(upgrade);
  EXPECT_EQ(caller.receive(switched.size() + 7), switched + "frame 1");
  caller.send("GET /x\n");
  EXPECT_EQ(caller.receive(7), "frame 2");
  caller.close();
  const auto closed = rig.await_events(events::close, 1)[0].attrs;
  EXPECT_NE(closed["detail"].get<std::string>().find("Upgrade"), std::string::npos);
  const auto requests = rig.events(events::request);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].attrs["reply"]["status"], 101);
}

TEST(HttpLink, CarriesATunnel) {
  const std::string connect = "CONNECT far:443 HTTP/1.1\r\nHost: far\r\n\r\n";
  const std::string opened = "HTTP/1.1 200 Connection established\r\n\r\n";
  Callee callee([&](Peer& peer) {
    peer.receive(connect.size());
    peer.send(opened);
    EXPECT_EQ(peer.receive(5), "\x16\x03\x01hi");
    peer.send("\x16\x03\x02ho");
  });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  caller.send(connect);
  EXPECT_EQ(caller.receive(opened.size()), opened);
  caller.send("\x16\x03\x01hi");
  EXPECT_EQ(caller.receive(5), "\x16\x03\x02ho");
  EXPECT_EQ(rig.await_events(events::request, 1)[0].attrs["outcome"], "replied");
}

TEST(HttpLink, CarriesWhatIsNotHttp) {
  const std::vector<std::string> greetings = {"PING\r\n", std::string("\x16\x03\x01\x00\x05", 5),
                                              "GET / HTTP/1.1\nbare line feeds\n\n", std::string(200, '\xff')};
  Callee callee([](Peer& peer) {
    for (;;) {
      const auto byte = peer.receive(1);
      if (byte.empty() || !peer.try_send(byte)) return;
    }
  });
  Rig rig(callee.port(), {});
  for (std::size_t i = 0; i < greetings.size(); ++i) {
    auto caller = rig.dial();
    caller.send(greetings[i]);
    EXPECT_EQ(caller.receive(greetings[i].size()), greetings[i]);
    caller.close();
    const auto closed = rig.await_events(events::close, i + 1)[i].attrs;
    EXPECT_NE(closed.value("detail", "").find("not HTTP"), std::string::npos) << closed.dump();
  }
  EXPECT_TRUE(rig.events(events::request).empty());
}

TEST(HttpLink, CarriesACalleeThatSpeaksFirst) {
  Callee callee([](Peer& peer) {
    peer.send("220 ready\r\n");
    EXPECT_EQ(peer.receive(4), "HELO");
    peer.send("250 ok");
  });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  EXPECT_EQ(caller.receive(11), "220 ready\r\n");
  caller.send("HELO");
  EXPECT_EQ(caller.receive(6), "250 ok");
}

TEST(HttpLink, CarriesAResponseThatIsNone) {
  Callee callee([](Peer& peer) {
    peer.receive_until("\r\n\r\n");
    peer.send("+OK not HTTP at all");
  });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  caller.send(get("/"));
  EXPECT_EQ(caller.receive_all(), "+OK not HTTP at all");
  caller.close();
  EXPECT_EQ(rig.await_events(events::request, 1)[0].attrs["outcome"], "no-reply");
  EXPECT_TRUE(rig.events(events::reply).empty());
}

TEST(HttpLink, SaysWhenNoReplyCame) {
  Callee closing([](Peer& peer) { peer.receive_until("\r\n\r\n"); });
  Rig rig(closing.port(), {});
  auto caller = rig.dial();
  caller.send(get("/x"));
  EXPECT_EQ(caller.await_ending(), "end");
  const auto request = rig.await_events(events::request, 1)[0].attrs;  // before the caller closes its side
  EXPECT_EQ(request["outcome"], "no-reply");
  EXPECT_FALSE(request.contains("reply"));
  EXPECT_TRUE(eventually([&] { return rig.activity.busy().empty(); }));
}

TEST(HttpLink, SaysWhenTheCalleeCrashed) {
  Callee crashing([](Peer& peer) {
    peer.receive_until("\r\n\r\n");
    peer.close_with_reset();
  });
  Rig rig(crashing.port(), {});
  auto caller = rig.dial();
  caller.send(get("/x"));
  EXPECT_EQ(caller.await_ending(), "ECONNRESET");
  EXPECT_EQ(rig.await_events(events::request, 1)[0].attrs["outcome"], "reset");
}

TEST(HttpLink, DoesNotCallAReplyDeliveredToACallerThatHasLeft) {
  std::atomic<bool> left{false};
  HttpCallee callee([&](const std::string&) {
    EXPECT_TRUE(eventually([&] { return left.load(); }));
    return ok_response("late");
  });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  caller.send(get("/x"));
  EXPECT_TRUE(eventually([&] { return callee.requests().size() == 1; }));
  caller.close();
  left = true;
  const auto request = rig.await_events(events::request, 1)[0].attrs;
  EXPECT_EQ(request["outcome"], "no-reply");
  EXPECT_EQ(request["reply"]["status"], 200);
  EXPECT_EQ(request["reply"]["delivered"], false);
  EXPECT_TRUE(rig.events(events::reply).empty());
}

TEST(HttpLink, ButDoesToOneThatHasOnlyFinishedSending) {
  std::atomic<bool> finished{false};
  HttpCallee callee([&](const std::string&) {
    EXPECT_TRUE(eventually([&] { return finished.load(); }));
    return ok_response("late");
  });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  caller.send(get("/x"));
  EXPECT_TRUE(eventually([&] { return callee.requests().size() == 1; }));
  caller.finish_sending();
  finished = true;
  EXPECT_EQ(caller.receive_all(), ok_response("late"));
  EXPECT_EQ(rig.await_events(events::request, 1)[0].attrs["outcome"], "replied");
}

TEST(HttpLink, IsBusyWhileARequestIsUnderWay) {
  std::atomic<bool> answer{false};
  HttpCallee callee([&](const std::string&) {
    EXPECT_TRUE(eventually([&] { return answer.load(); }));
    return ok_response("x");
  });
  Rig rig(callee.port(), {});
  auto caller = rig.dial();
  caller.send(get("/slow?q"));
  EXPECT_TRUE(eventually([&] { return callee.requests().size() == 1; }));
  EXPECT_EQ(rig.activity.busy(), std::vector<std::string>{"request shop -> broker GET /slow"});
  answer = true;
  caller.receive_message();
  rig.await_events(events::reply, 1);
  EXPECT_TRUE(eventually([&] { return rig.activity.busy().empty(); }));
}

}  // namespace
}  // namespace leafcutter::node
