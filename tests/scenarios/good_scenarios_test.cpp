// The scenario that shows the language's face, and one that says everything once: they load, and mean what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/dns_lanes.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/predicate.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::scenarios {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

LoadResult load(const std::string& name, const std::string& variant = "") {
  LoadOptions options;
  options.check_programs = false;
  options.variant = variant;
  auto result = load_file(std::string(LEAFCUTTER_SOURCE_DIR) + "/tests/scenarios/data/" + name, options);
  for (const auto& error : result.errors) ADD_FAILURE() << error.text();
  if (!result.scenario) result.scenario.emplace();
  return result;
}

std::vector<std::string> link_ids(const Scenario& scenario) {
  std::vector<std::string> ids;
  for (const auto& link : scenario.links) ids.push_back(link.id());
  return ids;
}

std::vector<std::string> choices(const Scenario& scenario, const std::string& lane) {
  std::vector<std::string> all;
  for (const auto& fault : scenario.explore.faults)
    if (fault.lane == lane)
      all.push_back(fault.kind + " " + fault.operation + (fault.path_glob.empty() ? "" : " " + fault.path_glob) +
                    (fault.params.empty() ? "" : " " + fault.params.dump()));
  return all;
}

TEST(Outbox, ServicesMeanWhatTheySay) {
  const auto result = load("outbox.yaml");
  const auto& scenario = *result.scenario;
  EXPECT_EQ(scenario.name, "outbox");
  EXPECT_TRUE(scenario.about.starts_with("An order is stored, then announced."));
  EXPECT_EQ(scenario.folder, std::string(LEAFCUTTER_SOURCE_DIR) + "/tests/scenarios/data");
  ASSERT_EQ(scenario.services.size(), 2u);
  const auto& broker = scenario.services[0];
  EXPECT_EQ(broker.name, "broker");
  EXPECT_THAT(broker.run, ElementsAre(scenario.folder + "/bin/broker", "--port", "7002", "--data", "${data}"));
  EXPECT_EQ(broker.ready.by, Readiness::By::http);
  EXPECT_EQ(broker.ready.port, "http");
  EXPECT_EQ(broker.ready.path, "/health");
  EXPECT_EQ(broker.ready.within, 10s);
  EXPECT_EQ(broker.restart.on, RestartPolicy::On::never);
  const auto& shop = scenario.services[1];
  EXPECT_EQ(shop.ports.at(0).number, 7001);
  EXPECT_EQ(shop.ports.at(0).protocol, Protocol::http);
  EXPECT_EQ(shop.ready.within, 5s);
  EXPECT_THAT(shop.needs, ElementsAre("broker"));
  EXPECT_EQ(shop.restart.on, RestartPolicy::On::crash);
  EXPECT_EQ(shop.restart.at_most, 3u);
  EXPECT_EQ(shop.where.line, 12);
  EXPECT_THAT(scenario.variants, ElementsAre("fixed"));
  EXPECT_THAT(link_ids(scenario),
              ElementsAre("broker -> shop", "shop -> broker", "workload -> broker", "workload -> shop"));
  EXPECT_EQ(scenario.link("shop -> broker")->number, 7002);
}

TEST(Outbox, AVariantChangesTheServiceThatDeclaresIt) {
  const auto plain = load("outbox.yaml");
  const auto fixed = load("outbox.yaml", "fixed");
  EXPECT_EQ(fixed.scenario->variant, "fixed");
  auto expected = plain.scenario->services[1].run;
  expected.emplace_back("--fixed");
  EXPECT_EQ(fixed.scenario->services[1].run, expected);
  EXPECT_EQ(fixed.scenario->services[0].run, plain.scenario->services[0].run);
  EXPECT_NE(identity(*plain.scenario), identity(*fixed.scenario));
}

TEST(Outbox, TheWorkloadMeansWhatItSays) {
  const auto result = load("outbox.yaml");
  const auto& workload = result.scenario->workload;
  ASSERT_EQ(workload.size(), 2u);
  EXPECT_EQ(workload[0].what, Step::Do::repeat);
  EXPECT_EQ(workload[0].times, 5u);
  EXPECT_EQ(workload[0].as, "i");
  ASSERT_EQ(workload[0].steps.size(), 1u);
  const auto& post = workload[0].steps[0];
  EXPECT_EQ(post.label, "post shop/orders");
  EXPECT_EQ(post.method, "POST");
  EXPECT_EQ(post.service, "shop");
  EXPECT_EQ(post.port, "http");
  EXPECT_EQ(post.target, "/orders");
  EXPECT_TRUE(post.json_body);
  EXPECT_EQ(post.body, R"({"id":"order-${i}","item":"leaf"})");
  EXPECT_FALSE(post.reply_required);
  EXPECT_TRUE(matches(post.expect, {{"status", 201}}));
  EXPECT_TRUE(matches(post.expect, {{"status", 503}}));
  EXPECT_FALSE(matches(post.expect, {{"status", 500}}));
  EXPECT_EQ(post.save.at("accepted"), "status == 201");
  EXPECT_EQ(workload[1].what, Step::Do::settle);
  EXPECT_EQ(workload[1].quiet, 300ms);
  EXPECT_EQ(workload[1].within, 5s);
}

TEST(Outbox, ThePropertiesMeanWhatTheySay) {
  const auto result = load("outbox.yaml");
  const auto& properties = result.scenario->properties;
  ASSERT_EQ(properties.size(), 3u);
  const auto& announced = properties[0];
  EXPECT_EQ(announced.kind, Property::Kind::eventually);
  ASSERT_TRUE(announced.for_each.has_value());
  EXPECT_EQ(announced.for_each->event, "reply");
  EXPECT_THAT(announced.for_each->key, ElementsAre("json", "id"));
  EXPECT_EQ(announced.within, 5s);
  EXPECT_EQ(announced.pattern.text,
            "{ event: request, to: broker, path: /announce, key: json.id, reply: { status: 2xx } }");
  auto pattern = CompiledPattern::compile(announced.pattern);
  ASSERT_TRUE(pattern.ok());
  protocols::Event event;
  event.kind = "request";
  event.lane = "shop -> broker";
  event.attrs = {{"from", "shop"},
                 {"to", "broker"},
                 {"path", "/announce"},
                 {"json", {{"id", "order-1"}}},
                 {"reply", {{"status", 204}}}};
  EXPECT_TRUE(*pattern->matches(event));
  EXPECT_EQ(pattern->key(event), "order-1");
  event.attrs["reply"]["status"] = 500;
  EXPECT_FALSE(*pattern->matches(event));
  event.attrs.erase("reply");
  EXPECT_FALSE(*pattern->matches(event));
  EXPECT_EQ(properties[1].kind, Property::Kind::count);
  EXPECT_EQ(properties[1].at_most, 1u);
  EXPECT_FALSE(properties[1].at_least.has_value());
  EXPECT_EQ(properties[2].kind, Property::Kind::check);
  EXPECT_THAT(properties[2].check.command, ElementsAre(result.scenario->folder + "/bin/check-orders", "${shop.data}"));
  EXPECT_EQ(properties[2].check.exit, 0);
}

TEST(Outbox, TheFaultsAreExpandedInTheOrderWritten) {
  const auto result = load("outbox.yaml");
  const auto& explore = result.scenario->explore;
  EXPECT_EQ(explore.at_once, 2u);
  EXPECT_EQ(explore.occurrences, 3u);
  EXPECT_EQ(explore.seed, 7u);
  EXPECT_EQ(explore.max_leaves, 400u);
  EXPECT_EQ(explore.max_time, 5min);
  EXPECT_EQ(explore.leaf_timeout, 30s);
  std::vector<std::string> expected;
  for (const std::string family : {"write", "fsync", "rename", "connect"})
    for (const std::string rest : {" {\"error\":\"EIO\"}", " {\"error\":\"ENOSPC\"}"})
      expected.push_back("errno " + family + rest);
  for (std::size_t at = 2; const std::string family : {"write", "fsync", "rename", "connect"}) {
    expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(at),
                    {"crash-before " + family, "crash-after " + family});
    at += 4;
  }
  expected.emplace_back("crash step");
  EXPECT_EQ(choices(*result.scenario, "shop"), expected);
  EXPECT_THAT(choices(*result.scenario, "shop -> broker"),
              ElementsAre("refuse connect", "reset request", "blackhole request", "lose-response request",
                          "latency request {\"for\":\"2s\"}"));
  EXPECT_THAT(choices(*result.scenario, "broker"), ElementsAre("crash step"));
  EXPECT_EQ(explore.faults.front().lane, "shop");
  EXPECT_EQ(explore.faults.back().lane, "broker");
  EXPECT_THAT(explore.observe.at("shop"), ElementsAre("write", "fsync", "rename", "connect"));
  EXPECT_EQ(explore.observe.count("broker"), 0u);
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_EQ(result.warnings[0].message,
            "service \"broker\" is never restarted: after a crash it stays down (see \"restart\")");
}

TEST(Everything, Services) {
  const auto result = load("everything.yaml", "old");
  const auto& scenario = *result.scenario;
  std::vector<std::string> names;
  for (const auto& service : scenario.services) names.push_back(service.name);
  EXPECT_THAT(names, ElementsAre("store", "cache", "front_end", "worker"));
  const auto& store = scenario.services[0];
  EXPECT_THAT(store.run, ElementsAre(scenario.folder + "/./bin/store-1.0"));
  EXPECT_EQ(store.environment.at("MODE"), "old");
  EXPECT_EQ(store.environment.at("EMPTY"), "");
  EXPECT_EQ(store.seed_data, scenario.folder + "/seed");
  ASSERT_EQ(store.prepare.size(), 2u);
  EXPECT_THAT(store.prepare[1], ElementsAre("true"));
  EXPECT_EQ(store.ready.by, Readiness::By::log);
  EXPECT_EQ(store.restart.on, RestartPolicy::On::any_exit);
  EXPECT_EQ(store.restart.at_most, 0u);
  EXPECT_EQ(scenario.services[1].ready.by, Readiness::By::tcp);
  EXPECT_EQ(scenario.services[2].ready.path, "/ready?deep=1");
  EXPECT_EQ(scenario.services[3].ready.by, Readiness::By::command);
  EXPECT_THAT(scenario.variants, ElementsAre("old", "slow"));
  EXPECT_THAT(link_ids(scenario),
              ElementsAre("front_end -> store:main", "front_end -> store:admin", "front_end -> cache",
                          "workload -> front_end", "workload -> cache", "workload -> store:admin"));
}

TEST(Everything, Egress) {
  const auto result = load("everything.yaml");
  std::vector<std::string> ways;
  for (const auto& way : result.scenario->ways_out) ways.push_back(way_out_text(way));
  EXPECT_THAT(ways, ElementsAre("worker -> api.example.org:443", "worker -> [2001:db8::7]:53 (at [::1]:5353)",
                                "workload -> [2001:db8::7]:53 (at [::1]:5353)",
                                "cache -> localhost:5432 (at db.example.org:5432)"));
  EXPECT_EQ(outside_addresses(*result.scenario),
            (std::map<std::string, std::string>{{"api.example.org", "10.77.1.1"}}));
  EXPECT_EQ(outside_text(*load("outbox.yaml").scenario), "");
}

TEST(Everything, Workload) {
  const auto result = load("everything.yaml");
  const auto& steps = result.scenario->workload;
  ASSERT_EQ(steps.size(), 13u);
  EXPECT_TRUE(steps[0].reply_required);
  EXPECT_EQ(steps[0].target, "/items?limit=3");
  EXPECT_EQ(steps[0].retries, 3u);
  EXPECT_EQ(steps[0].within, 500ms);
  EXPECT_TRUE(matches(steps[0].expect, {{"status", 299}, {"json", {{"total", 3}, {"items", {{{"id", 1}}}}}}}));
  EXPECT_FALSE(matches(steps[0].expect, {{"status", 299}, {"json", {{"total", 3}, {"items", Value::array()}}}}));
  EXPECT_EQ(steps[1].label, "put front_end/items/${first}");
  EXPECT_EQ(steps[1].body, "total=${total}");
  EXPECT_FALSE(steps[1].json_body);
  EXPECT_EQ(steps[2].when_lua, "total ~= 0");
  EXPECT_EQ(steps[3].label, "patch it");
  EXPECT_EQ(steps[3].port, "admin");
  EXPECT_EQ(steps[3].body,
            R"({"n":${total},"plain":"text","list":[1,2.5,true,null,"2"],"nested":{"a":{"b":"${first}"}}})");
  EXPECT_EQ(steps[4].label, "patch it (2)");
  EXPECT_EQ(steps[4].port, "admin");  // the only one that speaks HTTP
  EXPECT_EQ(steps[5].what, Step::Do::exchange);
  EXPECT_EQ(steps[5].send, std::string("SET k ${total}\r\nAA\0", 19));
  EXPECT_EQ(steps[5].until, "\\+OK");
  EXPECT_TRUE(matches(steps[5].expect, {{"reply", "+OK\r\n"}}));
  EXPECT_FALSE(steps[5].reply_required);
  EXPECT_TRUE(steps[6].reply_required);
  EXPECT_TRUE(steps[6].expect.empty());
  EXPECT_EQ(steps[7].what, Step::Do::command);
  EXPECT_TRUE(matches(steps[7].expect, {{"exit", 3}, {"stdout", "all fine"}}));
  EXPECT_FALSE(matches(steps[7].expect, {{"exit", 1}, {"stdout", "all fine"}}));
  EXPECT_EQ(steps[8].label, "repeat");
  EXPECT_EQ(steps[8].steps.at(0).label, "repeat (2)");
  EXPECT_EQ(steps[8].steps.at(0).steps.at(0).target, "/${i}/${j}");
  ASSERT_EQ(steps[9].branches.size(), 2u);
  EXPECT_EQ(steps[9].branches[0].size(), 2u);
  EXPECT_EQ(steps[11].quiet, 100ms);
  EXPECT_EQ(steps[12].quiet, 200ms);
  EXPECT_EQ(steps[12].within, 5s);
  EXPECT_EQ(steps[12].label, "settle (2)");
}

TEST(Everything, Properties) {
  const auto result = load("everything.yaml");
  const auto& properties = result.scenario->properties;
  ASSERT_EQ(properties.size(), 7u);
  EXPECT_EQ(properties[0].kind, Property::Kind::always);
  EXPECT_EQ(properties[0].holds.size(), 2u);
  EXPECT_EQ(properties[0].holds_lua, "json.n == nil or json.n > 0");
  EXPECT_EQ(properties[0].pattern.where_lua, "status ~= 404");
  EXPECT_EQ(properties[1].kind, Property::Kind::never);
  EXPECT_EQ(properties[2].within, 10s);
  EXPECT_EQ(properties[3].at_least, 1u);
  EXPECT_EQ(properties[3].at_most, 10u);
  const auto& request = properties[4].check;
  EXPECT_EQ(request.http_service + ":" + request.http_port + request.http_path, "front_end:http/count");
  EXPECT_EQ(request.within, 3s);
  EXPECT_TRUE(matches(request.reply, {{"status", 200}, {"json", {{"n", 1}}}}));
  EXPECT_FALSE(matches(request.reply, {{"status", 404}, {"json", {{"n", 1}}}}));  // without `status`, any 2xx
  EXPECT_EQ(properties[5].check.exit, 3);
  EXPECT_TRUE(matches(properties[5].check.reply, {{"stdout", ""}}));
}

TEST(Everything, Exploration) {
  const auto result = load("everything.yaml");
  const auto& scenario = *result.scenario;
  EXPECT_THAT(
      choices(scenario, "store"),
      ElementsAre("errno fsync *.log {\"error\":\"EIO\"}", "delay fsync *.log {\"for\":\"20ms\"}",
                  "crash-before fsync *.log", "crash-after fsync *.log", "errno read *.log {\"error\":\"EIO\"}",
                  "delay read *.log {\"for\":\"20ms\"}", "crash-before read *.log",  // a read leaves nothing behind
                  "errno connect {\"error\":\"EIO\"}", "delay connect {\"for\":\"20ms\"}", "crash-before connect",
                  "crash-after connect", "crash step"));
  EXPECT_THAT(choices(scenario, "front_end -> store:main"),
              ElementsAre("reset connect", "latency connect {\"for\":\"100ms\"}", "latency connect {\"for\":\"2s\"}"));
  EXPECT_THAT(choices(scenario, "front_end -> store:admin"),
              ElementsAre("reset request", "latency request {\"for\":\"100ms\"}", "latency request {\"for\":\"2s\"}",
                          // Of the connection's bytes, also where requests are seen.
                          "blackhole connect {\"mode\":\"stall\"}",
                          "latency connect {\"distribution\":\"pareto\",\"for\":\"10ms\",\"shape\":\"1.5\"}",
                          "cut connect {\"after-bytes\":100}", "half-open connect"));
  EXPECT_THAT(choices(scenario, "front_end -> cache"), ElementsAre("refuse connect", "blackhole connect"));
  for (const auto* lane : {"front_end -> dns", "store -> dns"})
    EXPECT_THAT(choices(scenario, lane),
                ElementsAre("dns-serv-fail query", "dns-delay query {\"for\":\"2s\"}",
                            "dns-refused query {\"times\":2}", "dns-ttl query {\"seconds\":60,\"times\":3}"));
  EXPECT_THAT(services_that_ask(scenario, {}), ElementsAre("front_end", "store"));
  Plan plan;
  plan.faults = {{"dns-refused", {"worker -> dns", "query", "store A"}, 1, Value::object(), {}}};
  EXPECT_THAT(services_that_ask(scenario, plan), ElementsAre("front_end", "store", "worker"));
  for (const auto& fault : scenario.explore.faults) {
    const auto* kind = fault_kind(fault.kind);
    ASSERT_NE(kind, nullptr);
    EXPECT_TRUE(check_params(*kind, fault.params).ok()) << fault.kind;
    EXPECT_NE(std::find(kind->operations.begin(), kind->operations.end(), fault.operation), kind->operations.end())
        << fault.kind << " " << fault.operation;
  }
  EXPECT_THAT(scenario.explore.observe.at("cache"), ElementsAre("open", "read"));
  EXPECT_THAT(scenario.explore.observe.at("worker"), ElementsAre("unlink"));  // a property asks for them
  EXPECT_EQ(scenario.explore.leaf_timeout, 45s);
}

TEST(Order, SatisfiesNeedsAndOtherwiseKeepsTheDocuments) {
  LoadOptions options;
  options.check_programs = false;
  const auto result = load_text(
      "leafcutter: 1\nname: n\nservices:\n  d: { run: [x], needs: [a, c] }\n  e: { run: [x] }\n  c: { run: [x], needs: "
      "[b] }\n  b: { run: [x] }\n  a: { run: [x] }\n"
      "workload: [ { settle: {} } ]\n",
      "s.yaml", options);
  ASSERT_TRUE(result.scenario.has_value());
  std::string order;
  for (const auto& service : result.scenario->services) order += service.name;
  EXPECT_EQ(order, "ebcad");
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_EQ(result.warnings[0].text(),
            "s.yaml:1:1: nothing can fail: there are no properties, and no step expects anything");
}

TEST(Warnings, SayWhatIsProbablyNotMeant) {
  LoadOptions options;
  options.check_programs = false;
  const auto result = load_text(
      "leafcutter: 1\nname: n\nservices:\n  a: { run: [x], ports: { p: 1 } }\n"
      "workload:\n  - get: a/\nproperties:\n  - name: p\n    never: { event: request, to: a }\n",
      "s.yaml", options);
  ASSERT_TRUE(result.scenario.has_value());
  ASSERT_EQ(result.warnings.size(), 2u);
  EXPECT_EQ(result.warnings[0].text(),
            "s.yaml:6:10: port \"p\" of service \"a\" is not declared as http: requests to it are no events");
  EXPECT_EQ(result.warnings[1].text(),
            "s.yaml:9:34: no port of service \"a\" is declared as http, so there will be no event \"request\"");
}

TEST(Labels, AreUniqueWhateverTheUserCallsHisSteps) {
  LoadOptions options;
  options.check_programs = false;
  const auto result = load_text(
      "leafcutter: 1\nname: n\nservices: { a: { run: [x] } }\nworkload: [ { settle: {}, name: settle (2) }, { settle: "
      "{} }, { settle: {} }, { settle: {} } ]\n",
      "s.yaml", options);
  ASSERT_TRUE(result.scenario.has_value());
  std::vector<std::string> labels;
  for (const auto& step : result.scenario->workload) labels.push_back(step.label);
  EXPECT_THAT(labels, ElementsAre("settle (2)", "settle", "settle (3)", "settle (4)"));
}

}  // namespace
}  // namespace leafcutter::scenarios
