#include "scenarios/predicate.hpp"

#include <gtest/gtest.h>

#include "scenarios/loader.hpp"
#include "scenarios/regex.hpp"

namespace leafcutter::scenarios {
namespace {

using protocols::Event;

/// The pattern as a scenario writes it, through the loader.
Pattern pattern_of(const std::string& text) {
  LoadOptions options;
  options.check_programs = false;
  const auto result = load_text(
      "leafcutter: 1\nname: n\nservices:\n  shop: { run: [x], ports: { http: { port: 80, protocol: http } } }\n  db: { "
      "run: [x], ports: { main: 1 } }\n"
      "workload: [ { settle: {} } ]\nproperties:\n  - name: p\n    count: " +
          text + "\n    at-most: 1\n",
      "s.yaml", options);
  EXPECT_TRUE(result.scenario.has_value()) << text << "\n" << (result.errors.empty() ? "" : result.errors[0].text());
  return result.scenario ? result.scenario->properties[0].pattern : Pattern{};
}

Event reply(Value attrs) {
  Event event;
  event.kind = "reply";
  event.lane = "workload -> shop";
  event.attrs = std::move(attrs);
  return event;
}

bool matched(const std::string& text, const Event& event) {
  auto compiled = CompiledPattern::compile(pattern_of(text));
  EXPECT_TRUE(compiled.ok()) << text;
  const auto result = compiled->matches(event);
  EXPECT_TRUE(result.ok()) << text << ": " << (result ? "" : result.error().text());
  return result.ok() && *result;
}

TEST(Matchers, MeanWhatIsWritten) {
  const auto event = reply({{"from", "shop"},
                            {"status", 201},
                            {"body", "timed out"},
                            {"json", {{"id", "o-1"}, {"n", 2.5}, {"list", {{{"k", 1}}}}, {"none", nullptr}}}});
  for (const auto* good : {"{ event: reply }",
                           "{ event: reply, status: 201 }",
                           "{ event: reply, status: 2xx }",
                           "{ event: reply, status: 200..201 }",
                           "{ event: reply, status: { at-least: 201 } }",
                           "{ event: reply, status: { at-most: 201 } }",
                           "{ event: reply, body: /tim.d out/ }",
                           "{ event: reply, body: { matches: '^timed' } }",
                           "{ event: reply, status: [500, 201] }",
                           "{ event: reply, status: [500, 2xx] }",
                           "{ event: reply, json.id: o-1 }",
                           "{ event: reply, json: { id: o-1, n: 2..3 } }",
                           "{ event: reply, json.list.0.k: 1 }",
                           "{ event: reply, json.missing: { exists: false } }",
                           "{ event: reply, json.id: { exists: true } }",
                           "{ event: reply, json.none: { exists: false } }",
                           "{ event: reply, json.none: ~ }",
                           "{ event: reply, request: { json: { exists: false } } }",
                           "{ event: reply, json.list: { equals: [{ k: 1 }] } }",
                           "{ event: reply, from: shop, where: \"status == 201 and json.n > 2\" }",
                           "{ event: reply, lane: workload -> shop }",
                           "{ event: reply, where: lane == 'workload -> shop' }"})
    EXPECT_TRUE(matched(good, event)) << good;
  for (const auto* bad : {"{ event: request }",
                          "{ event: reply, status: 200 }",
                          "{ event: reply, status: \"201\" }",
                          "{ event: reply, status: \"2xx\" }",
                          "{ event: reply, status: 3xx }",
                          "{ event: reply, status: 202..299 }",
                          "{ event: reply, body: /^out/ }",
                          "{ event: reply, status: [500, 503] }",
                          "{ event: reply, status: [4xx, 5xx] }",
                          "{ event: reply, json.id: { exists: false } }",
                          "{ event: reply, json.missing: { exists: true } }",
                          "{ event: reply, json.missing: x }",
                          "{ event: reply, json.missing: /./ }",
                          "{ event: reply, json.missing: 0..9 }",
                          "{ event: reply, json.list.1.k: 1 }",
                          "{ event: reply, json.list.x.k: 1 }",
                          "{ event: reply, request: { json: { id: o-1 } } }",
                          "{ event: reply, from: db }",
                          "{ event: reply, where: status > 201 }",
                          "{ event: reply, lane: db -> shop }",
                          "{ event: reply, where: json.missing }",
                          "{ event: reply, body: 2xx }"})
    EXPECT_FALSE(matched(bad, event)) << bad;
}

TEST(Matchers, ServiceIsTheLaneOfAService) {
  Event exit;
  exit.kind = "exit";
  exit.lane = "shop";
  exit.attrs = {{"signal", 9}};
  EXPECT_TRUE(matched("{ event: exit, service: shop }", exit));
  EXPECT_FALSE(matched("{ event: exit, service: db }", exit));
  EXPECT_TRUE(matched("{ event: exit, where: service == 'shop' }", exit));
  auto keyed = CompiledPattern::compile(pattern_of("{ event: exit, key: service }"));
  EXPECT_EQ(keyed->key(exit), "shop");
}

TEST(Patterns, GiveTheirKeyAsText) {
  auto keyed = CompiledPattern::compile(pattern_of("{ event: reply, key: json.id }"));
  ASSERT_TRUE(keyed.ok());
  EXPECT_EQ(keyed->key(reply({{"json", {{"id", "o-1"}}}})), "o-1");
  EXPECT_EQ(keyed->key(reply({{"json", {{"id", 7}}}})), "7");
  EXPECT_EQ(keyed->key(reply({{"json", {{"other", 7}}}})), std::nullopt);
  EXPECT_EQ(keyed->key(reply({{"json", {{"id", nullptr}}}})), std::nullopt);
  EXPECT_EQ(keyed->key(reply(Value::array())), std::nullopt);
  EXPECT_EQ(CompiledPattern::compile(pattern_of("{ event: reply }"))->key(reply({})), "");
}

TEST(Patterns, AFailingExpressionIsAnErrorAndNotNo) {
  auto compiled = CompiledPattern::compile(pattern_of("{ event: reply, where: json.a.b == 1 }"));
  ASSERT_TRUE(compiled.ok());
  EXPECT_FALSE(compiled->matches(reply({{"json", Value::object()}})).ok());
  EXPECT_TRUE(*compiled->matches(reply({{"json", {{"a", {{"b", 1}}}}}})));
  // The cheap matchers come first: where they say no, Lua is not asked.
  auto guarded =
      CompiledPattern::compile(pattern_of("{ event: reply, json.a: { exists: true }, where: json.a.b == 1 }"));
  EXPECT_FALSE(*guarded->matches(reply({{"json", Value::object()}})));
  Pattern broken;
  broken.where_lua = "((";
  EXPECT_FALSE(CompiledPattern::compile(broken).ok());
}

TEST(Regex, IsLinearAndSearches) {
  EXPECT_TRUE(regex_search("b+", "abbc"));
  EXPECT_FALSE(regex_search("^b", "abbc"));
  EXPECT_FALSE(regex_search("(", "("));
  EXPECT_FALSE(check_regex("(").ok());
  EXPECT_FALSE(regex_search("(a*)*b", std::string(100'000, 'a')));  // exponential for a regex that backtracks
  for (int i = 0; i < 200; ++i)
    EXPECT_TRUE(regex_search("^" + std::to_string(i) + "$", std::to_string(i)));  // more than are kept
  EXPECT_TRUE(regex_search("b+", "abbc"));
}

TEST(Expand, ReplacesNamesAndRefusesUnknownOnes) {
  const Value variables = {{"i", 3}, {"id", "x"}, {"shop", {{"port", 80}}}, {"db.port", 5432}, {"flag", true}};
  EXPECT_EQ(*expand("order-${i}-${id}", variables), "order-3-x");
  EXPECT_EQ(*expand("${shop.port}:${db.port}:${flag}", variables), "80:5432:true");
  EXPECT_EQ(*expand("$${i} $i {i} $", variables), "${i} $i {i} $");
  EXPECT_EQ(*expand("", variables), "");
  EXPECT_EQ(expand("${ids}", variables).error().message, "${ids} is not known here; did you mean ${id}?");
  EXPECT_FALSE(expand("${shop.prt}", variables).ok());
  EXPECT_FALSE(expand("${", variables).ok());
  EXPECT_FALSE(expand("${}", variables).ok());
  EXPECT_FALSE(expand("${i}", Value(nullptr)).ok());
  EXPECT_EQ(*expand("${id}", {{"id", "${i}"}}), "${i}");  // what comes in is not expanded again
}

TEST(Expand, KeepsJsonValid) {
  const Value variables = {{"n", 3}, {"text", "a \"quoted\"\nline"}, {"list", {1, 2}}};
  const auto expanded =
      expand_json(R"({"n":${n},"s":"n=${n}","t":"${text}","u":${text},"l":${list},"e":"\"${n}\\"})", variables);
  ASSERT_TRUE(expanded.ok());
  const auto parsed = Value::parse(*expanded, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << *expanded;
  EXPECT_EQ(
      parsed,
      (Value{
          {"n", 3}, {"s", "n=3"}, {"t", variables["text"]}, {"u", variables["text"]}, {"l", {1, 2}}, {"e", "\"3\\"}}));
  EXPECT_FALSE(expand_json("${x}", variables).ok());
}

TEST(Expand, FillsWhatIsExpected) {
  Matcher one;
  one.path = {"id"};
  one.value = "${i}";
  Matcher text = one;
  text.value = "order-${i}";
  Matcher nested;
  nested.test = Matcher::Test::nested;
  nested.path = {"json"};
  nested.nested = {one};
  const Value variables = {{"i", 3}};
  EXPECT_TRUE(matches(expand({one}, variables), {{"id", 3}}));
  EXPECT_TRUE(matches(expand({one}, variables), {{"id", "3"}}));
  EXPECT_FALSE(matches(expand({one}, variables), {{"id", 4}}));
  EXPECT_TRUE(matches(expand({text}, variables), {{"id", "order-3"}}));
  EXPECT_FALSE(matches(expand({text}, variables), {{"id", "order-4"}}));
  EXPECT_TRUE(matches(expand({nested}, variables), {{"json", {{"id", 3}}}}));
  EXPECT_FALSE(matches({one}, {{"id", 3}}));  // not expanded: the text itself
}

}  // namespace
}  // namespace leafcutter::scenarios
