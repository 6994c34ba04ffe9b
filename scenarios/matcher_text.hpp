// What a scalar means where a value is matched, in a scenario as in an event pattern: `2xx`, `/regex/`, `1..5`,
// numbers, true and false have their meaning where they are written without quotes.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::scenarios {

/// The value of a scalar without quotes: a number, true, false, or text.
Value plain_value(const std::string& text);

/// A decimal number, whole or not, and nothing else.
std::optional<double> number_in(const std::string& text);

/// `plain`: without quotes. The matcher's path is left empty. Errors: bad_input (a regular expression that is none, an
/// empty range).
base::Expected<Matcher> scalar_matcher(const std::string& text, bool plain);
base::Expected<Matcher> regex_matcher(const std::string& regex);
base::Expected<Matcher> range_matcher(std::optional<double> at_least, std::optional<double> at_most);

/// "a.b" -> {"a", "b"}.
std::vector<std::string> split_path(const std::string& path);
std::string joined_path(const std::vector<std::string>& path);

/// base::nearest, but for words that a person may have meant: its cost grows with the length.
std::optional<std::string> near_name(const std::string& word, const std::vector<std::string>& known);

/// The attribute path that was probably meant: "jsn.id" is near "json", and so near "json.id".
std::optional<std::string> nearest_path(const std::vector<std::string>& path, const std::vector<std::string>& names);

}  // namespace leafcutter::scenarios
