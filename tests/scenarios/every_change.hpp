// A good document, changed in every place in every small way: whether a loader and a JSON Schema agree about each.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "scenarios/loader/document.hpp"

namespace leafcutter::scenarios::testing {

using loading::Node;

/// Asks both about the document after each of a family of changes to each of its nodes; they must agree.
class EveryChange {
 public:
  using Says = std::string (*)(const Node& document);
  EveryChange(Node document, Says loader, Says schema)
      : document_(std::move(document)), loader_says_(loader), schema_says_(schema) {
    walk(document_, "the document");
  }

  std::size_t asked = 0, refused = 0;

 private:
  void ask(const std::string& what) {
    const auto loader = loader_says_(document_);
    const auto schema = schema_says_(document_);
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
                                                         {"zero", scalar("0", true)},
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
  Says loader_says_, schema_says_;
};

}  // namespace leafcutter::scenarios::testing
