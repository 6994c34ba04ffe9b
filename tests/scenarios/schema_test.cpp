// The JSON Schema and the loader come from one table; here they are asked the same questions.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "every_change.hpp"
#include "json_schema_validator.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/loader/document.hpp"
#include "scenarios/loader/structure.hpp"

namespace leafcutter::scenarios {
namespace {

using loading::Node;

Node parse(const std::string& text) {
  loading::Notes notes("s.yaml");
  auto node = loading::parse_document(text, notes);
  EXPECT_TRUE(node.has_value()) << text;
  return node.value_or(Node{});
}

Node good_document(const std::string& name) {
  return parse(*base::read_file(std::string(LEAFCUTTER_SOURCE_DIR) + "/tests/scenarios/data/" + name));
}

bool loader_accepts(const Node& document) {
  loading::Notes notes("s.yaml");
  loading::check_structure(document, notes);
  return !notes.any_error();
}

std::string loader_says(const Node& document) {
  loading::Notes notes("s.yaml");
  loading::check_structure(document, notes);
  std::string out;
  for (const auto& error : notes.errors()) out += error.text() + "\n";
  return out;
}

std::string schema_says(const Node& document) {
  static const auto schema = json_schema();
  std::string out;
  for (const auto& error : testing::validate(schema, loading::to_value(document))) out += error + "\n";
  return out;
}

TEST(JsonSchema, AcceptsEveryGoodDocument) {
  for (const auto* name : {"outbox.yaml", "everything.yaml"}) {
    const auto document = good_document(name);
    EXPECT_EQ(schema_says(document), "") << name;
    EXPECT_EQ(loader_says(document), "") << name;
  }
}

TEST(JsonSchema, RefusesUnknownKeysAndWrongTypesWithTheLoader) {
  const std::string services = "leafcutter: 1\nname: n\nworkload: [ { settle: {} } ]\nservices: ";
  for (const auto* bad :
       {"{ a: { run: [x], prots: {} } }", "{ a: { run: x } }", "{ a: { run: [] } }", "{ a: {} }", "{}", "[a]",
        "{ a: { run: [x], ports: { p: 0 } } }", "{ a: { run: [x], ports: { p: { protocol: http } } } }",
        "{ a: { run: [x], ready: { tcp: a, log: b } } }", "{ 9a: { run: [x] } }",
        "{ a: { run: [x], restart: { on: crsh } } }", "{ a: { run: [x], ready: { log: a, port: b } } }",
        "{ a: { run: [x], variants: { v: {} } } }", "{ a: { run: [x], ready: { log: a, within: 5 } } }"}) {
    const auto document = parse(services + bad + "\n");
    EXPECT_FALSE(loader_accepts(document)) << bad;
    EXPECT_NE(schema_says(document), "") << bad;
  }
}

/// A small document with one element of one section of the whole: what is asked of it costs little, and is the same.
std::vector<Node> pieces(const Node& whole) {
  const auto small = parse("leafcutter: 1\nname: n\nservices: { a: { run: [x] } }\nworkload: [ { settle: {} } ]\n");
  std::vector<Node> all = {small};
  for (std::size_t i = 0; i < whole.keys.size(); ++i)
    for (std::size_t k = 0; k < whole.items[i].items.size(); ++k) {
      auto section = whole.items[i];
      section.items = {section.items[k]};
      if (section.is_map()) section.keys = {section.keys[k]};
      auto piece = small;
      for (std::size_t at = 0; at <= piece.keys.size(); ++at) {
        if (at == piece.keys.size()) {
          piece.keys.push_back(whole.keys[i]);
          piece.items.push_back(section);
          break;
        }
        if (piece.keys[at].text == whole.keys[i].text) {
          piece.items[at] = section;
          break;
        }
      }
      all.push_back(piece);
    }
  return all;
}

TEST(JsonSchema, AgreesWithTheLoaderAboutEveryChangeToAGoodDocument) {
  std::size_t asked = 0;
  std::size_t refused = 0;
  for (const auto* name : {"outbox.yaml", "everything.yaml"})
    for (const auto& piece : pieces(good_document(name))) {
      ASSERT_EQ(loader_says(piece), "");
      const testing::EveryChange changes(piece, loader_says, schema_says);
      asked += changes.asked;
      refused += changes.refused;
    }
  EXPECT_GT(asked, 2000u);
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(asked - refused, 500u);
}

TEST(JsonSchema, ClosesEveryMappingButPatternsAndChecks) {
  const auto schema = json_schema();
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["additionalProperties"], false);
  for (const auto& [name, definition] : schema["$defs"].items())
    EXPECT_EQ(definition["additionalProperties"], name == "pattern" || name == "check") << name;
}

}  // namespace
}  // namespace leafcutter::scenarios
