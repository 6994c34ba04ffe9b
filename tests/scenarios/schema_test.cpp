// The JSON Schema and the loader come from one table; here they are asked the same questions.
#include <gtest/gtest.h>

#include "base/text.hpp"
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

/// Calls `ask` with the document after each of a family of changes to each of its nodes.
class EveryChange {
 public:
  explicit EveryChange(Node document) : document_(std::move(document)) { walk(document_, "the document"); }

  std::size_t asked = 0, refused = 0;

 private:
  void ask(const std::string& what) {
    const auto loader = loader_says(document_);
    const auto schema = schema_says(document_);
    EXPECT_EQ(loader.empty(), schema.empty()) << what << "\nloader: " << loader << "schema: " << schema;
    ++asked;
    refused += loader.empty() ? 0 : 1;
  }

  static Node scalar(const std::string& text, bool plain) {
    Node node;
    node.kind = Node::Kind::scalar;
    node.text = text;
    node.plain = plain;
    return node;
  }

  static Node empty(Node::Kind kind) {
    Node node;
    node.kind = kind;
    return node;
  }

  void walk(Node& node, const std::string& path) {
    const auto original = node;
    const std::pair<const char*, Node> replacements[] = {{"nothing", empty(Node::Kind::null)},
                                                         {"an empty list", empty(Node::Kind::list)},
                                                         {"an empty mapping", empty(Node::Kind::map)},
                                                         {"a number", scalar("7", true)},
                                                         {"a large number", scalar("70000000000", true)},
                                                         {"text", scalar("sometext", false)}};
    for (const auto& [what, replacement] : replacements) {
      node = replacement;
      ask(path + " replaced by " + what);
    }
    node = original;
    if (node.is_map()) {
      node.keys.push_back(scalar("zzz-unknown", true));
      node.items.push_back(scalar("x", true));
      ask(path + " with an unknown key");
      node = original;
      for (std::size_t i = 0; i < original.keys.size(); ++i) {
        node.keys.erase(node.keys.begin() + static_cast<std::ptrdiff_t>(i));
        node.items.erase(node.items.begin() + static_cast<std::ptrdiff_t>(i));
        ask(path + " without " + original.keys[i].text);
        node = original;
      }
    }
    for (std::size_t i = 0; i < node.items.size(); ++i)
      walk(node.items[i], path + "/" + (node.is_map() ? node.keys[i].text : std::to_string(i)));
  }

  Node document_;
};

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
      const EveryChange changes(piece);
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
