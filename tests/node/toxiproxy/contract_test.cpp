// The wire contract of Toxiproxy 2.12, line by line, over a real socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "rig.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

using proxy::dead_port;
using proxy::echo;
using proxy::port_of;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

std::string at_port(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

TEST(Contract, VersionIsOneLine) {
  ApiRig rig;
  const auto reply = rig.expect(200, "GET", "/version");
  EXPECT_EQ(reply.body, "{\"version\": \"2.12.0\"}\n");
  EXPECT_EQ(reply.header("content-type"), "application/json;charset=utf-8");
}

TEST(Contract, EveryReplyHasARequestIdOfItsOwn) {
  ApiRig rig;
  std::set<std::string> ids;
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"GET", "/version"}, {"GET", "/proxies"}, {"GET", "/proxies/x"}, {"GET", "/nothing"},
      {"PUT", "/proxies"}, {"POST", "/reset"},  {"POST", "/proxies"}};
  for (const auto& [method, target] : calls) {
    const auto id = rig.call(method, target).header("x-toxiproxy-request-id");
    EXPECT_TRUE(std::regex_match(id, std::regex("[0-9a-v]{20}"))) << method << target << ": " << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), calls.size());
}

TEST(Contract, BrowsersAreRefused) {
  ApiRig rig;
  const auto browser = rig.call("GET", "/proxies", "", {"User-Agent: Mozilla/5.0 (X11; Linux x86_64)"});
  EXPECT_EQ(browser.status, 403);
  EXPECT_EQ(browser.body, "User agent not allowed\n");
  EXPECT_EQ(rig.call("GET", "/proxies", "", {"User-Agent: toxiproxy-cli/v2"}).status, 200);
  EXPECT_EQ(rig.call("GET", "/proxies", "", {"User-Agent: not-Mozilla/5.0"}).status, 200);
}

TEST(Contract, AnEmptyListIsAnObject) {
  ApiRig rig;
  const auto reply = rig.call("GET", "/proxies");
  expect_json(reply, 200);
  EXPECT_EQ(reply.body, "{}");
}

TEST(Contract, CreateAnswersTheProxy) {
  ApiRig rig;
  const auto port = std::to_string(dead_port());
  const auto reply = rig.call("POST", "/proxies", proxy_json("db", "localhost:" + port, upstream_text));
  expect_json(reply, 201);
  // "localhost" comes back as the address that is listened on; no field more, none less, in this order.
  const auto text =
      R"({"name":"db","listen":"127.0.0.1:)" + port + R"(","upstream":"localhost:20001","enabled":true,"toxics":[]})";
  EXPECT_EQ(reply.body, text);
  EXPECT_EQ(rig.call("GET", "/proxies/db").body, text);
  EXPECT_EQ(rig.call("GET", "/proxies").body, "{\"db\":" + text + "}");
  EXPECT_TRUE(listens("127.0.0.1:" + port));
}

TEST(Contract, PortZeroIsResolved) {
  ApiRig rig;
  const auto reply = rig.expect(201, "POST", "/proxies", proxy_json("db", "localhost:0", upstream_text));
  const auto listen = reply.json()["listen"].get<std::string>();
  EXPECT_THAT(listen, StartsWith("127.0.0.1:"));
  EXPECT_NE(port_of(listen), 0);
  EXPECT_TRUE(listens(listen));
  // Without an address it is a free port of loopback.
  const auto other = rig.expect(201, "POST", "/proxies", R"({"name":"x","upstream":"localhost:1"})");
  EXPECT_THAT(other.json()["listen"].get<std::string>(), StartsWith("127.0.0.1:"));
}

TEST(Contract, APortAloneIsOfEveryAddress) {
  ApiRig rig;
  const auto reply = rig.expect(201, "POST", "/proxies", proxy_json("db", ":0", upstream_text));
  const auto listen = reply.json()["listen"].get<std::string>();
  EXPECT_THAT(listen, ContainsRegex("^(\\[::\\]|0\\.0\\.0\\.0):[1-9]"));
  EXPECT_TRUE(listens(at_port(port_of(listen))));
}

TEST(Contract, BadProxiesAreRefused) {
  ApiRig rig;
  expect_error(rig.call("POST", "/proxies", "{}"), 400, "missing required field: name");
  expect_error(rig.call("POST", "/proxies", R"({"name":"a"})"), 400, "missing required field: upstream");
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "bad request body: empty"},
      {"[]", "bad request body: an array; an object would do"},
      {"{", "bad request body: parse error"},
      {R"({"name":5,"upstream":"a:1"})", "bad request body: name: a number; a string would do"},
      {R"({"name":"a","upstream":"a:1","enabled":"yes"})",
       "bad request body: enabled: a string; true or false would do"},
      {R"({"name":"a","upstream":"nowhere"})", "bad request body: upstream: \\\"nowhere\\\" has no port"},
      {R"({"name":"a","upstream":"a:0"})", "bad request body: upstream: port 0"},
      {R"({"name":"a","upstream":"a:1","listen":"local373"})",
       "bad request body: listen: \\\"local373\\\" has no port"},
      {R"({"name":"a","upstream":"a:1","toxics":{}})", "bad request body: toxics: an object; an array would do"},
      {R"({"name":"a","upstream":"a:1","toxics":[{"type":"lag"}]})", "invalid toxic type (toxics[0])"},
  };
  for (const auto& [body, message] : bad) {
    const auto reply = rig.call("POST", "/proxies", body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_THAT(reply.body, HasSubstr("\"error\":\"" + message)) << body;
  }
  EXPECT_EQ(rig.call("GET", "/proxies").body, "{}");
}

TEST(Contract, ANameIsTakenOnce) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  expect_error(rig.call("POST", "/proxies", proxy_json("db", "localhost:0", upstream_text)), 409,
               "proxy already exists");
}

TEST(Contract, APortThatIsTakenIs500AndNothingIsCreated) {
  ApiRig rig;
  const auto listen = rig.proxy("db", upstream_text);
  expect_error(rig.call("POST", "/proxies", proxy_json("other", listen, upstream_text)), 500,
               "listen tcp " + listen + ": bind: address already in use");
  EXPECT_EQ(rig.call("GET", "/proxies/other").status, 404);
  expect_error(rig.call("POST", "/proxies", proxy_json("far", "203.0.113.7:7000", "127.0.0.1:1")), 500,
               "listen tcp 203.0.113.7:7000: Cannot assign requested address; this host has no such address; "
               "127.0.0.1 would do");
}

TEST(Contract, KeysAreReadInAnyCase) {
  ApiRig rig;
  const auto reply =
      rig.expect(201, "POST", "/proxies", R"({"NAME":"db","Listen":"localhost:0","uPsTrEaM":"a:1","Enabled":false})");
  EXPECT_EQ(reply.json()["name"], "db");
  EXPECT_EQ(reply.json()["upstream"], "a:1");
  EXPECT_EQ(reply.json()["enabled"], false);
  const auto toxic =
      rig.expect(200, "POST", "/proxies/db/toxics", R"({"Type":"latency","Attributes":{"LATENCY":7},"Toxicity":0.5})");
  EXPECT_EQ(toxic.json()["attributes"]["latency"], 7);
  EXPECT_EQ(toxic.json()["toxicity"], 0.5);
}

TEST(Contract, NullIsAsIfItWereNotThere) {
  ApiRig rig;
  const auto reply = rig.expect(201, "POST", "/proxies",
                                R"({"name":"db","listen":null,"upstream":"a:1","enabled":null,"toxics":null})");
  EXPECT_EQ(reply.json()["enabled"], true);
}

TEST(Contract, UnknownKeysAreLeftAloneAndNoted) {
  ApiRig rig;
  const auto reply = rig.expect(201, "POST", "/proxies", R"({"name":"db","upstream":"a:1","Logger":{},"lisen":"x"})");
  EXPECT_EQ(reply.headers.count("warning"), 1U);
  EXPECT_EQ(reply.header("warning"), "299 leafcutter \"lisen is no field of a proxy; did you mean 'listen'?\"");
  const auto toxic = rig.expect(200, "POST", "/proxies/db/toxics", R"({"type":"latency","attributes":{"latncy":1}})");
  EXPECT_EQ(toxic.header("warning"),
            "299 leafcutter \"attributes.latncy is no attribute of latency; did you mean 'latency'?\"");
  const auto clean = rig.expect(200, "POST", "/proxies/db", "{}");
  EXPECT_EQ(clean.headers.count("warning"), 0U) << "of the request before";
  const auto hostile = rig.expect(200, "POST", "/proxies/db", R"({"a\r\nX-Evil: \"1":1})");
  EXPECT_EQ(hostile.headers.count("x-evil"), 0U);
}

TEST(Contract, WhatIsNotThereIs404) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  for (const auto* method : {"GET", "POST", "PATCH", "DELETE"})
    expect_error(rig.call(method, "/proxies/x", "{}"), 404, "proxy not found");
  for (const auto* method : {"GET", "POST"})
    expect_error(rig.call(method, "/proxies/x/toxics", "{}"), 404, "proxy not found");
  for (const auto* method : {"GET", "POST", "PATCH", "DELETE"}) {
    expect_error(rig.call(method, "/proxies/x/toxics/y", "{}"), 404, "proxy not found");
    expect_error(rig.call(method, "/proxies/db/toxics/y", "{}"), 404, "toxic not found");
  }
  for (const auto* target : {"/", "/nothing", "/proxies/", "/proxies//toxics", "/proxies/db/x", "/version/1",
                             "/proxies/db/toxics/a/b", "/proxies/%zz", "/proxies/%4"}) {
    const auto reply = rig.call("GET", target);
    EXPECT_EQ(reply.status, 404) << target;
    EXPECT_EQ(reply.body, "404 page not found\n") << target;
    EXPECT_EQ(reply.header("content-type"), "text/plain; charset=utf-8");
  }
}

TEST(Contract, OtherMethodsAre405) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  rig.toxic("db", "latency", R"("latency":1)", R"("name":"lag")");
  const std::vector<std::pair<std::string, std::string>> calls = {{"PUT", "/proxies"},
                                                                  {"DELETE", "/proxies"},
                                                                  {"PATCH", "/proxies"},
                                                                  {"PUT", "/proxies/db"},
                                                                  {"PUT", "/proxies/db/toxics"},
                                                                  {"DELETE", "/proxies/db/toxics"},
                                                                  {"GET", "/reset"},
                                                                  {"PUT", "/proxies/db/toxics/lag"},
                                                                  {"GET", "/populate"},
                                                                  {"POST", "/version"},
                                                                  {"POST", "/metrics"}};
  for (const auto& [method, target] : calls) {
    const auto reply = rig.call(method, target);
    EXPECT_EQ(reply.status, 405) << method << " " << target;
    EXPECT_EQ(reply.body, "");
    EXPECT_NE(reply.header("allow"), "");
    EXPECT_THAT(reply.header("allow"), testing::Not(HasSubstr(method)));
  }
}

TEST(Contract, NamesMayHoldAnything) {
  ApiRig rig;
  rig.expect(201, "POST", "/proxies", R"({"name":"a b/c ü","upstream":"a:1","enabled":false})");
  EXPECT_EQ(rig.expect(200, "GET", "/proxies/a%20b%2Fc%20%C3%BC").json()["name"], "a b/c ü");
  rig.expect(204, "DELETE", "/proxies/a%20b%2Fc%20%C3%BC?really=1");
}

TEST(Contract, UpdateKeepsWhatIsLeftOut) {
  for (const auto* method : {"POST", "PATCH"}) {
    Upstream upstream(echo);
    ApiRig rig;
    const auto listen = rig.proxy("db", upstream.address());
    auto open = Peer::dial(listen);
    open.send("x");
    EXPECT_EQ(open.receive(1), "x");
    const auto reply = rig.call(method, "/proxies/db", R"({"name":"renamed"})");
    expect_json(reply, 200);
    EXPECT_EQ(reply.json()["name"], "db");
    EXPECT_EQ(reply.json()["listen"], listen);
    EXPECT_EQ(reply.json()["enabled"], true);
    open.send("y");
    EXPECT_EQ(open.receive(1), "y") << "nothing changed, so nothing is dropped";
    // The address as it was given, or as it was resolved, is the same address.
    rig.expect(200, method, "/proxies/db", R"({"listen":"localhost:)" + std::to_string(port_of(listen)) + "\"}");
    open.send("z");
    EXPECT_EQ(open.receive(1), "z");
  }
}

TEST(Contract, AnotherUpstreamDropsConnections) {
  Upstream before(echo), after([](Peer&peer) { peer.send("other"); });
  ApiRig rig;
  const auto listen = rig.proxy("db", before.address());
  auto open = Peer::dial(listen);
  open.send("x");
  EXPECT_EQ(open.receive(1), "x");
  const auto reply = rig.expect(200, "POST", "/proxies/db", R"({"upstream":")" + after.address() + "\"}");
  EXPECT_EQ(reply.json()["listen"], listen);
  EXPECT_EQ(ending_soon(open), "end");
  EXPECT_EQ(Peer::dial(listen).receive(5), "other");
}

TEST(Contract, AnotherAddressMovesTheProxyAndKeepsItsToxics) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto listen = rig.proxy("db", upstream.address());
  rig.toxic("db", "latency", R"("latency":100)");
  const auto port = dead_port();
  const auto reply = rig.expect(200, "PATCH", "/proxies/db", R"({"listen":"localhost:)" + std::to_string(port) + "\"}");
  EXPECT_EQ(reply.json()["listen"], at_port(port));
  EXPECT_EQ(reply.json()["toxics"].size(), 1U);
  EXPECT_FALSE(listens(listen));
  auto open = Peer::dial(at_port(port));
  const auto begin = proxy::Clock::now();
  open.send("x");
  EXPECT_EQ(open.receive(1), "x");
  EXPECT_GE(proxy::Clock::now() - begin, 95ms);
}

TEST(Contract, AnUpdateThatCannotListenChangesNothing) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto taken = rig.proxy("other", upstream.address()), listen = rig.proxy("db", upstream.address());
  rig.toxic("db", "latency", R"("latency":1)");
  const auto before = rig.call("GET", "/proxies/db").body;
  expect_error(rig.call("POST", "/proxies/db", R"({"listen":")" + taken + "\"}"), 500,
               "listen tcp " + taken + ": bind: address already in use");
  EXPECT_EQ(rig.call("GET", "/proxies/db").body, before);
  auto open = Peer::dial(listen);
  open.send("x");
  EXPECT_EQ(open.receive(1), "x");
}

TEST(Contract, ToxicsInAnUpdateAreLeftAlone) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  rig.toxic("db", "latency", R"("latency":1)");
  const auto reply = rig.expect(200, "POST", "/proxies/db", R"({"enabled":false,"toxics":[]})");
  EXPECT_EQ(reply.json()["toxics"].size(), 1U) << "clients send back what they last heard";
}

TEST(Contract, DisabledIsRefusedAndEnabledAgainOnTheSamePort) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto listen = rig.proxy("db", upstream.address());
  auto open = Peer::dial(listen);
  open.send("x");
  EXPECT_EQ(open.receive(1), "x");
  EXPECT_EQ(rig.expect(200, "POST", "/proxies/db", R"({"enabled":false})").json()["enabled"], false);
  EXPECT_EQ(ending_soon(open), "end");
  Peer peer;
  EXPECT_EQ(Peer::try_dial(listen, peer), ECONNREFUSED);
  EXPECT_EQ(rig.expect(200, "POST", "/proxies/db", R"({"enabled":true})").json()["listen"], listen);
  EXPECT_TRUE(listens(listen));
}

TEST(Contract, WhatIsCreatedDisabledTakesNoPort) {
  ApiRig rig;
  const auto port = dead_port();
  const auto given = "localhost:" + std::to_string(port);
  const auto reply = rig.expect(201, "POST", "/proxies", proxy_json("db", given, upstream_text, R"("enabled":false)"));
  EXPECT_EQ(reply.json()["listen"], given) << "it is resolved when it is listened on";
  EXPECT_FALSE(listens(at_port(port)));
  rig.toxic("db", "latency", R"("latency":1)");
  const auto enabled = rig.expect(200, "POST", "/proxies/db", R"({"enabled":true})");
  EXPECT_EQ(enabled.json()["listen"], at_port(port));
  EXPECT_EQ(enabled.json()["toxics"].size(), 1U);
  EXPECT_TRUE(listens(at_port(port)));
}

TEST(Contract, ProxiesMayTakeTurnsOnOnePort) {
  Upstream one([](Peer&peer) { peer.send("one"); }), two([](Peer&peer) { peer.send("two"); });
  ApiRig rig;
  const auto listen = rig.proxy("one", one.address());
  rig.expect(200, "POST", "/proxies/one", R"({"enabled":false})");
  rig.expect(201, "POST", "/proxies", proxy_json("two", listen, two.address()));
  EXPECT_EQ(Peer::dial(listen).receive(3), "two");
  expect_error(rig.call("POST", "/proxies/one", R"({"enabled":true})"), 500,
               "listen tcp " + listen + ": bind: address already in use");
  EXPECT_EQ(rig.expect(200, "GET", "/proxies/one").json()["enabled"], false);
  EXPECT_EQ(Peer::dial(listen).receive(3), "two");
  rig.expect(200, "POST", "/proxies/two", R"({"enabled":false})");
  rig.expect(200, "POST", "/proxies/one", R"({"enabled":true})");
  EXPECT_EQ(Peer::dial(listen).receive(3), "one");
}

TEST(Contract, DeleteIs204AndEmpty) {
  ApiRig rig;
  const auto listen = rig.proxy("db", upstream_text);
  const auto reply = rig.call("DELETE", "/proxies/db");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.body, "");
  EXPECT_EQ(reply.headers.count("content-length"), 0U);
  EXPECT_FALSE(listens(listen));
  expect_error(rig.call("DELETE", "/proxies/db"), 404, "proxy not found");
}

}  // namespace
}  // namespace leafcutter::node::toxiproxy
