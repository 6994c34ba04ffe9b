// The JSON Schema and the loader of Run documents come from one table; here they are asked the same questions, about
// every small change to good documents and about documents made at random. JSON and YAML are asked the same, too.
#include <gtest/gtest.h>

#include "../../scenarios/every_change.hpp"
#include "../../scenarios/json_schema_validator.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "node/runs/loader.hpp"
#include "node/runs/vocabulary.hpp"
#include "scenarios/loader/structure.hpp"
#include "tests/support/checkout.hpp"

namespace leafcutter::node::runs {
namespace {

using protocols::Value;
using scenarios::Form;
using scenarios::loading::Node;

std::string run_schema_says(const Node& document) {
  static const auto schema = run_json_schema();
  std::string out;
  for (const auto& error : scenarios::testing::validate(schema, scenarios::loading::to_value(document)))
    out += error + "\n";
  return out;
}

/// About keys and forms alone, as a schema can say it; names and contradictions are the loader's.
template <int version>
std::string run_structure_says(const Node& document) {
  scenarios::loading::Notes notes("r.yaml");
  const auto& vocabulary = run_vocabulary(version);
  scenarios::loading::check_against(vocabulary, vocabulary.shapes.front().name, document, "", notes);
  std::string out;
  for (const auto& error : notes.errors()) out += error.text() + "\n";
  return out;
}

/// Documents with one fault each, of all that are in the file.
std::vector<Node> pieces_of(const std::string& name) {
  scenarios::loading::Notes notes(name);
  const auto text = base::read_file(tests::checkout() + "/tests/node/runs/data/" + name);
  const auto whole = *scenarios::loading::parse_document(*text, notes);
  std::vector<Node> pieces;
  const auto child = [](Node& node, std::string_view key) -> Node& {
    return const_cast<Node&>(*std::as_const(node).find(key));
  };
  for (const auto& phase : whole.find("phases")->items)
    for (std::size_t k = 0; k < phase.find("proxies")->items.size(); ++k) {
      const auto faults = phase.find("proxies")->items[k].find("faults")->items;
      for (const auto& fault : faults) {
        auto piece = whole;
        child(piece, "proxies").items.resize(1);
        auto one = phase;
        auto& proxies = child(one, "proxies");
        proxies.items = {proxies.items[k]};
        child(proxies.items[0], "faults").items = {fault};
        child(piece, "phases").items = {one};
        pieces.push_back(std::move(piece));
      }
    }
  return pieces;
}

template <int version>
void expect_agreement(const std::string& file, std::size_t least) {
  std::size_t asked = 0, refused = 0;
  for (const auto& piece : pieces_of(file)) {
    ASSERT_EQ(run_structure_says<version>(piece), "");
    ASSERT_EQ(run_schema_says(piece), "");
    const scenarios::testing::EveryChange changes(piece, run_structure_says<version>, run_schema_says);
    asked += changes.asked;
    refused += changes.refused;
  }
  EXPECT_GT(asked, least);
  EXPECT_GT(refused, least / 2);
  EXPECT_GT(asked - refused, least / 20);
}

TEST(RunSchema, AgreesWithTheLoaderAboutEveryChangeToAGoodDocument) {
  expect_agreement<1>("first.yaml", 1000);
  expect_agreement<2>("second.yaml", 3000);
}

/// Values that the vocabulary allows, now and then one that it does not.
class RandomDocument {
 public:
  RandomDocument(int version, base::Stream& random) : vocabulary_(run_vocabulary(version)), random_(random) {}

  Value make() { return of_shape(vocabulary_.shapes.front()); }

 private:
  bool chance(std::uint64_t of) { return random_.below(of) == 0; }
  template <class Item>
  const Item& one_of(const std::vector<Item>& items) {
    return items[random_.below(items.size())];
  }

  Value of_shape(const scenarios::Shape& shape) {
    auto made = Value::object();
    for (const auto& key : shape.keys)
      if (key.required ? !chance(300) : chance(3)) made[key.name] = of_key(key);
    if (!shape.some_of.empty()) {
      const auto& name = one_of(shape.some_of);
      made[name] = of_key(*shape.key(name));
    }
    if (chance(300)) made["unknwon"] = 1;
    return made;
  }

  Value of_key(const scenarios::Key& key) {
    if (chance(300)) return Value::array({nullptr});
    if (key.name == "listen") return "127.0.0.1:0";
    if (key.name == "upstream") return one_of<std::string>({"h:1", "127.0.0.1:80", "[::1]:9"});
    if (key.name == "name" || key.name == "proxy") return one_of<std::string>({"a", "a", "a", "b"});
    if (key.name == "peers") return Value::array({one_of<std::string>({"10.0.0.0/8", "::1", "127.0.0.1"})});
    return of_form(key.form);
  }

  Value of_form(const Form& form) {
    if (form.nullable && chance(4)) return nullptr;
    switch (form.kind) {
      case Form::Kind::word: return one_of(form.words);
      case Form::Kind::boolean: return chance(2);
      case Form::Kind::integer: {
        const auto most = std::min(form.most, form.least + 1000);
        return form.least + random_.below(most - form.least + 1);
      }
      case Form::Kind::number: {
        const auto span = std::min(form.to - form.from, 1000.0);
        return form.from + span * static_cast<double>(1 + random_.below(1000)) / 1000;
      }
      case Form::Kind::pattern: return one_of<std::string>({"250ms", "1m 30s", "2 hours", "0.5s"});
      case Form::Kind::list: {
        auto list = Value::array();
        for (auto left = form.least + random_.below(3); left > 0; --left) list.push_back(of_form(form.parts[0]));
        return list;
      }
      case Form::Kind::tagged: {
        const auto which = random_.below(form.words.size());
        auto made = of_shape(vocabulary_.shape(form.parts[which].noun));
        made[form.noun] = form.words[which];
        return made;
      }
      case Form::Kind::shape: return of_shape(vocabulary_.shape(form.noun));
      default: return "text " + std::to_string(random_.below(100));
    }
  }

  const scenarios::Vocabulary& vocabulary_;
  base::Stream& random_;
};

TEST(RunSchema, DocumentsMadeAtRandomMeanTheSameInJsonAndYamlAndFitTheSchema) {
  static const auto schema = run_json_schema();
  std::size_t loaded = 0, refused = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    base::Stream random(20, "run documents", i);
    const auto document = RandomDocument(i % 3 == 0 ? 1 : 2, random).make();
    const auto text = document.dump();
    const auto json = load_run_text(text, "r.json");
    ASSERT_EQ(json.run.has_value(), json.errors.empty()) << text;
    // The same tree in YAML's own notation, many lines of it.
    scenarios::loading::Notes notes("r");
    const auto node = scenarios::loading::parse_document(text, notes);
    ASSERT_TRUE(node.has_value()) << text;
    const auto yaml = load_run_text(scenarios::loading::flow_text(*node), "r.yaml");
    ASSERT_EQ(yaml.run.has_value(), json.run.has_value()) << text << "\n"
                                                          << (yaml.errors.empty() ? "" : yaml.errors[0].text());
    ASSERT_EQ(yaml.errors.size(), json.errors.size()) << text;
    const auto valid = scenarios::testing::validate(schema, document);
    if (json.run) {
      ++loaded;
      ASSERT_TRUE(valid.empty()) << text << "\n" << valid[0];
      ASSERT_EQ(yaml.run->phases.size(), json.run->phases.size());
      for (std::size_t k = 0; k < json.run->phases.size(); ++k) {
        ASSERT_EQ(yaml.run->phases[k].sets, json.run->phases[k].sets) << text;
        ASSERT_EQ(yaml.run->phases[k].duration, json.run->phases[k].duration) << text;
      }
    } else {
      ++refused;
    }
    if (!valid.empty()) {
      ASSERT_FALSE(json.run.has_value()) << text;
    }
  }
  EXPECT_GT(loaded, 200U);
  EXPECT_GT(refused, 200U);
}

TEST(RunSchema, ClosesEveryMapping) {
  const auto schema = run_json_schema();
  EXPECT_EQ(schema["oneOf"].size(), 2U);
  for (const auto& version : schema["oneOf"]) EXPECT_EQ(version["additionalProperties"], false);
  for (const auto& [name, definition] : schema["$defs"].items())
    EXPECT_EQ(definition["additionalProperties"], false) << name;
}

}  // namespace
}  // namespace leafcutter::node::runs
