#include "scenarios/words.hpp"

#include <algorithm>

namespace leafcutter::scenarios {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

/// Reads one word after the other; `at` is where it stands.
class WordReader {
 public:
  WordReader(std::string_view line, Mistake& mistake) : line_(line), mistake_(mistake) {}

  bool skip_blanks() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
    return at_ < line_.size();
  }

  std::optional<Word> read() {
    Word word;
    word.at = at_;
    if (line_[at_] != '"') read_key(word);
    const bool good = at_ < line_.size() && line_[at_] == '"' ? read_quoted(word) : read_bare(word);
    if (!good) return std::nullopt;
    word.bytes = at_ - word.at;
    return word;
  }

 private:
  void read_key(Word& word) {
    auto end = at_;
    while (end < line_.size() && !is_blank(line_[end]) && line_[end] != '=' && line_[end] != '"') ++end;
    if (end == line_.size() || line_[end] != '=') return;
    word.key = line_.substr(at_, end - at_);
    at_ = end + 1;
  }

  bool read_bare(Word& word) {
    for (; at_ < line_.size() && !is_blank(line_[at_]); ++at_) {
      if (line_[at_] == '"') return wrong(at_, 1, "a quote within a word; put the whole value in quotes");
      take(word, line_[at_]);
    }
    word.places.push_back(at_);
    return true;
  }

  bool read_quoted(Word& word) {
    const auto opened = at_;
    word.quoted = true;
    for (++at_; at_ < line_.size() && line_[at_] != '"'; ++at_) {
      if (line_[at_] == '\\' && at_ + 1 < line_.size() && (line_[at_ + 1] == '"' || line_[at_ + 1] == '\\')) ++at_;
      take(word, line_[at_]);
    }
    if (at_ == line_.size()) return wrong(opened, at_ - opened, "this quote is not closed");
    word.places.push_back(at_);
    ++at_;
    if (at_ < line_.size() && !is_blank(line_[at_]))
      return wrong(at_, 1, "a word goes on after its quote; a blank separates words");
    return true;
  }

  void take(Word& word, char c) {
    word.places.push_back(at_);
    word.value += c;
  }

  bool wrong(std::size_t at, std::size_t bytes, const std::string& message) {
    mistake_ = {message, at, bytes};
    return false;
  }

  std::string_view line_;
  Mistake& mistake_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<Word>> split_words(std::string_view line, Mistake& mistake) {
  if (const auto control = std::find_if(line.begin(), line.end(), is_control); control != line.end()) {
    mistake = {"a control character; this is one line of text", static_cast<std::size_t>(control - line.begin()), 1};
    return std::nullopt;
  }
  WordReader reader(line, mistake);
  std::vector<Word> words;
  while (reader.skip_blanks()) {
    auto word = reader.read();
    if (!word) return std::nullopt;
    words.push_back(std::move(*word));
  }
  return words;
}

std::string quoted_word(std::string_view text) {
  if (!text.empty() && text.find_first_of(" \t\"") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string marked(std::string_view line, const Mistake& mistake) {
  std::string shown, marks;
  const auto end = mistake.at + std::max<std::size_t>(mistake.bytes, 1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool continues = (static_cast<unsigned char>(line[i]) & 0xC0) == 0x80;  // a character is one column wide
    shown += is_control(line[i]) || line[i] == '\t' ? ' ' : line[i];
    if (i < end && !continues) marks += i < mistake.at ? ' ' : i == mistake.at ? '^' : '~';
  }
  if (mistake.at >= line.size()) marks += '^';
  return "  " + shown + "\n  " + marks;
}

}  // namespace leafcutter::scenarios
