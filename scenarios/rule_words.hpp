// What every rule is made of, whatever it strikes: its words, keys that are given once, which occurrences are struck,
// a probability and events. The first mistake ends the reading.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/event_pattern.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/words.hpp"

namespace leafcutter::scenarios::rules {

class RuleWords {
 protected:
  /// `counted`: what occurrences are of ("calls"), for messages.
  RuleWords(const EventScope& events, std::string counted, Mistake& mistake)
      : mistake_(mistake), events_(events), counted_(std::move(counted)) {}

  // All of these are false after a mistake.
  bool split(std::string_view text, const std::string& example);
  bool wrong(std::size_t at, std::size_t bytes, const std::string& message);
  bool wrong(const Word& word, const std::string& message) { return wrong(word.at, word.bytes, message); }
  bool wrong_value(const Word& word, const std::string& message) {
    return wrong(word.value_at(), word.value_bytes(), message);
  }
  /// The place of the key itself.
  bool wrong_key(const Word& word, const std::string& message) { return wrong(word.at, word.key->size(), message); }

  bool take_key(const Word& word);
  /// "#2" is one word, "first 3" are two: `i` is the last one read. `names`: which words there are here.
  bool read_occurrences(std::size_t& i, const std::vector<std::string>& names);
  bool read_probability(const Word& word, bool may_be_zero);
  bool read_event(const Word& word, std::string& out);

  const Word* key(std::string_view name) const;

  Mistake& mistake_;
  std::vector<Word> words_;
  std::vector<const Word*> keys_;
  const Word* occurrences_ = nullptr;
  Fault fault_;
  Aim aim_;

 private:
  const EventScope& events_;
  std::string counted_;
};

}  // namespace leafcutter::scenarios::rules
