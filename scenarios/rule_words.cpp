#include "scenarios/rule_words.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "scenarios/matcher_text.hpp"
#include "scenarios/rule_terms.hpp"

namespace leafcutter::scenarios::rules {
namespace {

constexpr std::size_t longest_rule = 4096;

}  // namespace

bool RuleWords::split(std::string_view text, const std::string& example) {
  if (text.size() > longest_rule)
    return wrong(longest_rule, text.size() - longest_rule, "a rule has at most 4096 bytes");
  auto words = split_words(text, mistake_);
  if (!words) return false;
  words_ = std::move(*words);
  return !words_.empty() || wrong(0, text.size(), "expected a rule such as \"" + example + "\", found nothing");
}

bool RuleWords::wrong(std::size_t at, std::size_t bytes, const std::string& message) {
  mistake_ = {message, at, bytes};
  return false;
}

bool RuleWords::take_key(const Word& word) {
  if (key(*word.key) != nullptr) return wrong(word, "\"" + *word.key + "\" is given twice");
  if (word.value.empty()) return wrong(word, "\"" + *word.key + "\" has no value");
  keys_.push_back(&word);
  return true;
}

const Word* RuleWords::key(std::string_view name) const {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const Word* word) { return *word->key == name; });
  return found == keys_.end() ? nullptr : *found;
}

bool RuleWords::read_occurrences(std::size_t& i, const std::vector<std::string>& names) {
  const auto& word = words_[i];
  const bool nth = word.value.starts_with('#');
  const auto named = std::find(names.begin(), names.end(), word.value);
  if (word.quoted || (!nth && named == names.end())) {
    const auto near = near_name(word.value, names);
    return wrong(word, "expected key=value, #n, first n, every n or from n; found \"" + word.value + "\"" +
                           (near ? "; did you mean \"" + *near + "\"?" : ""));
  }
  if (occurrences_ != nullptr)
    return wrong(word, "it is said twice which " + counted_ + " are struck: \"" + occurrences_->value + "\" and \"" +
                           word.value + "\"");
  occurrences_ = &word;
  if (!nth && i + 1 == words_.size())
    return wrong(word, "\"" + word.value + "\" needs a number, such as \"" + word.value + " 3\"");
  const auto& number = nth ? word : words_[++i];
  const auto digits = nth ? word.value.substr(1) : number.value;
  std::uint32_t n = 0;
  const auto* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, n);
  if (number.key || error != std::errc{} || end != last || n == 0)
    return wrong(number, "expected a whole number from 1 to " +
                             std::to_string(std::numeric_limits<std::uint32_t>::max()) + ", found \"" +
                             (number.key ? *number.key + "=" : "") + digits + "\"");
  using Which = Occurrences::Which;
  aim_.occurrences = {nth                 ? Which::nth
                      : *named == "first" ? Which::first
                      : *named == "every" ? Which::every
                                          : Which::from,
                      n};
  return true;
}

bool RuleWords::read_probability(const Word& word, bool may_be_zero) {
  const auto millionths = probability_in(word.value, may_be_zero);
  if (!millionths) return wrong_value(word, millionths.error().message);
  aim_.per_million = *millionths;
  return true;
}

bool RuleWords::read_event(const Word& word, std::string& out) {
  Mistake within;
  if (!read_event_pattern(word.value, events_, within)) {
    const auto from = word.places[std::min(within.at, word.value.size())];
    const auto to = word.places[std::min(within.at + within.bytes, word.value.size())];
    return wrong(from, std::max<std::size_t>(to - from, 1), "\"" + *word.key + "\": " + within.message);
  }
  out = word.value;
  return true;
}

}  // namespace leafcutter::scenarios::rules
