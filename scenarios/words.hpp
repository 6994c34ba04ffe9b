// Languages of one line, such as rules and event patterns: words that are bare or `key=value`, a value in quotes when
// it holds blanks, and mistakes that know their place in the line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leafcutter::scenarios {

/// What is wrong with a line, and the bytes of it that are meant.
struct Mistake {
  std::string message;
  std::size_t at = 0, bytes = 0;
};

struct Word {
  std::size_t at = 0, bytes = 0;    ///< in the line, quotes included
  std::optional<std::string> key;   ///< before the first "="; nothing: a bare word
  std::string value;                ///< after it, or the bare word; without quotes
  bool quoted = false;              ///< the value stood in quotes
  std::vector<std::size_t> places;  ///< where each byte of `value` stands in the line, and where it ends

  std::size_t value_at() const { return places.front(); }
  std::size_t value_bytes() const { return places.back() - places.front(); }
};

/// A quote begins a value and ends it; \" and \\ within are a quote and a backslash. Nothing: see `mistake`.
std::optional<std::vector<Word>> split_words(std::string_view line, Mistake& mistake);

/// `text` as a value of split_words(): as it is, or in quotes.
std::string quoted_word(std::string_view text);

/// The line, and below it marks under the bytes that are meant; both indented by two blanks.
std::string marked(std::string_view line, const Mistake& mistake);

}  // namespace leafcutter::scenarios
