// JSON made readable for a YAML parser, which does not take all of it; values keep their lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leafcutter::node::runs {

struct JsonFlaw {
  int line = 1, column = 1;
  std::string message;
};

/// What keeps it from being JSON, or nothing.
std::optional<JsonFlaw> json_flaw(std::string_view text);

/// `text` is JSON. Pairs of surrogates become the character that they stand for.
std::string json_as_yaml(std::string_view text);

}  // namespace leafcutter::node::runs
