// The wire contract of Toxiproxy 2.12 for toxics, populate and metrics, over a real socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "rig.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

using proxy::echo;
using proxy::port_of;
using testing::HasSubstr;
using testing::StartsWith;

// --- toxics ---

TEST(Contract, AToxicHasDefaults) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  const auto reply = rig.call("POST", "/proxies/db/toxics", R"({"type":"latency"})");
  expect_json(reply, 200);
  const auto text =
      R"({"attributes":{"latency":0,"jitter":0},"name":"latency_downstream","type":"latency","stream":"downstream","toxicity":1})";
  EXPECT_EQ(reply.body, text);
  EXPECT_EQ(rig.call("GET", "/proxies/db/toxics/latency_downstream").body, text);
  EXPECT_EQ(rig.call("GET", "/proxies/db/toxics").body, std::string("[") + text + "]");
  EXPECT_EQ(rig.expect(200, "GET", "/proxies/db").json()["toxics"].dump(), std::string("[") + text + "]");
}

TEST(Contract, EveryTypeSaysItsAttributes) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  const std::vector<std::pair<std::string, std::string>> types = {
      {"latency", R"({"latency":0,"jitter":0})"}, {"bandwidth", R"({"rate":0})"},
      {"slow_close", R"({"delay":0})"},           {"timeout", R"({"timeout":0})"},
      {"reset_peer", R"({"timeout":0})"},         {"slicer", R"({"average_size":0,"size_variation":0,"delay":0})"},
      {"limit_data", R"({"bytes":0})"},           {"noop", R"({})"}};
  EXPECT_EQ(types.size(), toxic_kinds().size());
  for (const auto& [type, attributes] : types) {
    const auto reply =
        rig.expect(200, "POST", "/proxies/db/toxics", R"({"type":")" + type + R"(","stream":"upstream"})");
    EXPECT_EQ(reply.json()["attributes"].dump(), attributes);
    EXPECT_EQ(reply.json()["name"], type + "_upstream");
  }
}

TEST(Contract, BadToxicsAreRefused) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  expect_error(rig.call("POST", "/proxies/db/toxics", R"({"type":"lag"})"), 400, "invalid toxic type");
  expect_error(rig.call("POST", "/proxies/db/toxics", "{}"), 400, "invalid toxic type");
  expect_error(rig.call("POST", "/proxies/db/toxics", R"({"type":"latency","stream":"walrustream"})"), 400,
               "stream was invalid, can be either upstream or downstream");
  const std::vector<std::pair<std::string, std::string>> bad = {
      {R"({"type":"latency","attributes":{"latency":"1"}})", "attributes.latency: a string; a whole number"},
      {R"({"type":"latency","attributes":{"latency":-1}})", "attributes.latency: -1; a whole number from 0"},
      {R"({"type":"latency","attributes":{"latency":1.5}})", "attributes.latency: 1.5; a whole number"},
      {R"({"type":"latency","attributes":{"latency":1e300}})", "attributes.latency: "},
      {R"({"type":"latency","attributes":[]})", "attributes: an array; an object would do"},
      {R"({"type":"latency","toxicity":1.01})", "toxicity: 1.01; a number from 0 to 1 would do"},
      {R"({"type":"latency","toxicity":-1})", "toxicity: -1"},
      {R"({"type":"latency","toxicity":"x"})", "toxicity: a string"},
      {R"({"type":"latency","only":{"peers":["nobody"]}})", "selector.peers: \\\"nobody\\\" is no address"},
      {R"({"type":"latency","only":{"connections":{"first":0}}})", "selector.connections: "},
  };
  for (const auto& [body, message] : bad) {
    const auto reply = rig.call("POST", "/proxies/db/toxics", body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_THAT(reply.body, HasSubstr("\"error\":\"bad request body: " + message)) << body;
  }
  EXPECT_EQ(rig.call("GET", "/proxies/db/toxics").body, "[]");
}

TEST(Contract, WholeNumbersMayBeWrittenAsFractions) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  const auto reply =
      rig.expect(200, "POST", "/proxies/db/toxics", R"({"type":"latency","attributes":{"latency":10.0}})");
  EXPECT_EQ(reply.json()["attributes"]["latency"].dump(), "10");
}

TEST(Contract, ToxicNamesAreUniqueAcrossBothStreams) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  rig.toxic("db", "latency", "", R"("name":"x","stream":"upstream")");
  expect_error(rig.call("POST", "/proxies/db/toxics", R"({"type":"slicer","name":"x","stream":"downstream"})"), 409,
               "toxic already exists");
  // Their default names differ.
  rig.toxic("db", "latency", "", R"("stream":"upstream")");
  rig.toxic("db", "latency", "", R"("stream":"downstream")");
}

TEST(Contract, ToxicsOfTheUpstreamWayComeFirst) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  rig.toxic("db", "latency", "", R"("name":"a")");
  rig.toxic("db", "slicer", "", R"("name":"b","stream":"UPSTREAM")");
  rig.toxic("db", "noop", "", R"("name":"c")");
  std::string names;
  for (const auto& toxic : rig.expect(200, "GET", "/proxies/db/toxics").json())
    names += toxic["name"].get<std::string>();
  EXPECT_EQ(names, "bac");
}

TEST(Contract, AnUpdateMergesAttributes) {
  for (const auto* method : {"POST", "PATCH"}) {
    ApiRig rig;
    rig.proxy("db", upstream_text);
    rig.toxic("db", "latency", R"("latency":100,"jitter":10)", R"("name":"lag","toxicity":0.5)");
    const auto reply =
        rig.call(method, "/proxies/db/toxics/lag",
                 R"({"attributes":{"jitter":20},"type":"bandwidth","stream":"upstream","name":"other"})");
    expect_json(reply, 200);
    EXPECT_EQ(
        reply.body,
        R"({"attributes":{"latency":100,"jitter":20},"name":"lag","type":"latency","stream":"downstream","toxicity":0.5})");
    EXPECT_EQ(rig.call("GET", "/proxies/db/toxics/lag").body, reply.body);
    EXPECT_EQ(rig.expect(200, method, "/proxies/db/toxics/lag", R"({"toxicity":1})").json()["toxicity"], 1);
    EXPECT_EQ(rig.call(method, "/proxies/db/toxics/lag", R"({"attributes":{"latency":"x"}})").status, 400);
    EXPECT_EQ(rig.expect(200, "GET", "/proxies/db/toxics/lag").json()["attributes"]["latency"], 100);
  }
}

TEST(Contract, DeletingAToxicIs204) {
  ApiRig rig;
  rig.proxy("db", upstream_text);
  rig.toxic("db", "latency", "");
  const auto reply = rig.call("DELETE", "/proxies/db/toxics/latency_downstream");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.body, "");
  expect_error(rig.call("DELETE", "/proxies/db/toxics/latency_downstream"), 404, "toxic not found");
}

TEST(Contract, ResetEnablesAllAndRemovesToxics) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto a = rig.proxy("a", upstream.address()), b = rig.proxy("b", upstream.address());
  rig.expect(201, "POST", "/proxies", proxy_json("c", "localhost:0", upstream.address(), R"("enabled":false)"));
  rig.toxic("a", "timeout", "");
  rig.toxic("c", "timeout", "");
  rig.expect(200, "POST", "/proxies/b", R"({"enabled":false})");
  const auto reply = rig.call("POST", "/reset");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.body, "");
  const auto proxies = rig.expect(200, "GET", "/proxies").json();
  for (const auto* name : {"a", "b", "c"}) {
    EXPECT_EQ(proxies[name]["enabled"], true);
    EXPECT_EQ(proxies[name]["toxics"].size(), 0U);
    auto open = Peer::dial(proxies[name]["listen"].get<std::string>());
    open.send("x");
    EXPECT_EQ(open.receive(1), "x");
  }
}

TEST(Contract, ResetGoesOnPastAPortThatIsTaken) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto listen = rig.proxy("other", upstream.address());
  rig.expect(201, "POST", "/proxies", proxy_json("a", listen, upstream.address(), R"("enabled":false)"));
  const auto z = rig.proxy("z", upstream.address());
  rig.toxic("z", "timeout", "");
  rig.expect(200, "POST", "/proxies/z", R"({"enabled":false})");
  expect_error(rig.call("POST", "/reset"), 500, "listen tcp " + listen + ": bind: address already in use");
  EXPECT_EQ(rig.expect(200, "GET", "/proxies/a").json()["enabled"], false);
  auto open = Peer::dial(z);
  open.send("x");
  EXPECT_EQ(open.receive(1), "x");
}

// --- populate ---

TEST(Contract, PopulateAnswersItsProxies) {
  ApiRig rig;
  const auto reply = rig.call("POST", "/populate",
                              "[" + proxy_json("one", "localhost:0", "a:1") + "," +
                                  proxy_json("two", "localhost:0", "b:1", R"("enabled":false)") + "]");
  expect_json(reply, 201);
  const auto proxies = reply.json()["proxies"];
  ASSERT_EQ(proxies.size(), 2U);
  EXPECT_EQ(proxies[0]["name"], "one");
  EXPECT_TRUE(listens(proxies[0]["listen"].get<std::string>()));
  EXPECT_EQ(proxies[1]["enabled"], false);
  EXPECT_THAT(reply.body, StartsWith(R"({"proxies":[{"name":"one","listen":)"));
  EXPECT_EQ(rig.call("POST", "/populate", "[]").body, R"({"proxies":[]})");
}

TEST(Contract, PopulateChecksEverythingBeforeItCreatesAnything) {
  ApiRig rig;
  const auto good = proxy_json("one", "localhost:0", "a:1");
  const auto refused = [&](const std::string& body, const std::string& message) {
    const auto reply = rig.call("POST", "/populate", body);
    expect_json(reply, 400);
    EXPECT_THAT(reply.body, StartsWith(R"({"error":")" + message)) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr(R"(,"status":400,"proxies":null})"));
  };
  refused("[" + good + R"(,{"upstream":"a:1"}])", "missing required field: name at proxy 2");
  refused("[" + good + R"(,{"name":"two"}])", "missing required field: upstream at proxy 2");
  refused("[" + good + R"(,{"name":"two","upstream":"a:1","toxics":[{"type":"x"}]}])",
          "invalid toxic type (toxics[0]) at proxy 2");
  refused("[" + good + "," + good + "]", "bad request body: duplicate proxy name at proxy 2");
  refused(good, "bad request body: an object; an array of proxies would do");
  refused("[5]", "bad request body: proxies[0]: a number; an object would do");
  EXPECT_EQ(rig.call("GET", "/proxies").body, "{}");
}

TEST(Contract, PopulateStopsAtAPortThatIsTaken) {
  Upstream upstream(echo);
  ApiRig rig;
  for (const auto& bad : {upstream.address(), std::string("local373")}) {
    const auto reply =
        rig.call("POST", "/populate",
                 "[" + proxy_json("one", "localhost:0", upstream.address()) + "," + proxy_json("two", bad, "a:1") +
                     "," + proxy_json("three", "localhost:0", "a:1") + "]");
    expect_json(reply, 500);
    EXPECT_EQ(reply.json()["status"], 500);
    EXPECT_THAT(reply.json()["error"].get<std::string>(), StartsWith("listen tcp " + bad + ": "));
    ASSERT_EQ(reply.json()["proxies"].size(), 1U);
    auto open = Peer::dial(reply.json()["proxies"][0]["listen"].get<std::string>());
    open.send("x");
    EXPECT_EQ(open.receive(1), "x");
    EXPECT_EQ(rig.expect(200, "GET", "/proxies").json().size(), 1U);
    rig.expect(204, "DELETE", "/proxies/one");
  }
}

TEST(Contract, PopulateLeavesAloneWhatIsAsItSays) {
  Upstream upstream(echo), other([](Peer&peer) { peer.send("other"); });
  ApiRig rig;
  const auto listen = rig.proxy("one", upstream.address());
  rig.toxic("one", "latency", R"("latency":1)");
  const auto moved = rig.proxy("two", upstream.address());
  rig.toxic("two", "latency", R"("latency":1)");
  auto open = Peer::dial(listen);
  open.send("x");
  EXPECT_EQ(open.receive(1), "x");
  const auto given = "localhost:" + std::to_string(port_of(listen));
  const auto reply = rig.expect(201, "POST", "/populate",
                                "[" + proxy_json("one", given, upstream.address(), R"("toxics":null)") + "," +
                                    proxy_json("two", moved, other.address()) + "]");
  EXPECT_EQ(reply.json()["proxies"][0]["listen"], listen);
  EXPECT_EQ(reply.json()["proxies"][0]["toxics"].size(), 1U);
  open.send("y");
  EXPECT_EQ(open.receive(1), "y");
  EXPECT_EQ(reply.json()["proxies"][1]["toxics"].size(), 0U) << "it is another one now";
  EXPECT_EQ(Peer::dial(moved).receive(5), "other");
}

TEST(Contract, PopulateKeepsAProxyThatCannotMove) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto taken = rig.proxy("taken", upstream.address()), listen = rig.proxy("db", upstream.address());
  rig.toxic("db", "latency", R"("latency":1)");
  const auto before = rig.call("GET", "/proxies/db").body;
  rig.expect(500, "POST", "/populate", "[" + proxy_json("db", taken, upstream.address()) + "]");
  EXPECT_EQ(rig.call("GET", "/proxies/db").body, before);
  auto open = Peer::dial(listen);
  open.send("x");
  EXPECT_EQ(open.receive(1), "x");
}

// --- metrics ---

TEST(Contract, MetricsCountBytesOfBothWays) {
  Upstream upstream([](Peer& peer) {
    peer.receive(3);
    peer.send("answer");
  });
  ApiRig rig;
  const auto listen = rig.proxy("d\\\"b", upstream.address());
  auto open = Peer::dial(listen);
  open.send("abc");
  EXPECT_EQ(open.receive(6), "answer");
  const auto labels = [&](const std::string& direction) {
    return R"({direction=")" + direction + R"(",listener=")" + listen + R"(",proxy="d\"b",upstream=")" +
           upstream.address() + "\"} ";
  };
  std::string text;
  const auto has = [&](const std::string& line) {
    return eventually([&] {
      const auto reply = rig.call("GET", "/metrics");
      EXPECT_EQ(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
      text = reply.body;
      return text.find("\n" + line + "\n") != std::string::npos;
    });
  };
  // While the connection is open, not only afterwards.
  EXPECT_TRUE(has("toxiproxy_proxy_received_bytes_total" + labels("upstream") + "3")) << text;
  EXPECT_TRUE(has("toxiproxy_proxy_sent_bytes_total" + labels("upstream") + "3")) << text;
  EXPECT_TRUE(has("toxiproxy_proxy_received_bytes_total" + labels("downstream") + "6")) << text;
  EXPECT_TRUE(has("toxiproxy_proxy_sent_bytes_total" + labels("downstream") + "6")) << text;
  EXPECT_TRUE(has(R"(leafcutter_proxy_connections_total{proxy="d\"b"} 1)")) << text;
  EXPECT_TRUE(has("# TYPE toxiproxy_proxy_sent_bytes_total counter")) << text;
}

TEST(Contract, MetricsTellWhatIsReceivedFromWhatIsSent) {
  Upstream upstream(echo);
  ApiRig rig;
  const auto listen = rig.proxy("db", upstream.address());
  rig.toxic("db", "timeout", "", R"("stream":"upstream")");
  auto open = Peer::dial(listen);
  open.send("12345");
  std::string text;
  EXPECT_TRUE(eventually([&] {
    text = rig.call("GET", "/metrics").body;
    return std::regex_search(text, std::regex(R"(received_bytes_total\{direction="upstream"[^}]*\} 5)")) &&
           std::regex_search(
               text, std::regex(R"(leafcutter_toxic_bytes_total\{proxy="db",toxic="timeout_upstream"[^}]*\} 5)"));
  })) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(sent_bytes_total\{direction="upstream"[^}]*\} 0)"))) << text;
}

}  // namespace
}  // namespace leafcutter::node::toxiproxy
