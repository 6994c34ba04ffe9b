#include "scenarios/event_pattern.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/matcher_text.hpp"

namespace leafcutter::scenarios {
namespace {

/// A glob as a regular expression between slashes; without a backslash, which within quotes would have to be doubled.
std::string glob_as_regex(std::string_view glob) {
  std::string out = "/^";
  for (const char c : glob) {
    const bool special = std::string_view("\\.+?()[]{}|^$").find(c) != std::string_view::npos;
    out += c == '*' ? ".*" : !special ? std::string(1, c) : c == '\\' || c == '^' ? "." : "[" + std::string(1, c) + "]";
  }
  return out + "$/";
}

class EventPatternReader {
 public:
  EventPatternReader(const EventScope& scope, Mistake& mistake) : scope_(scope), mistake_(mistake) {}

  std::optional<Pattern> read(std::string_view text) {
    const auto words = split_words(text, mistake_);
    if (!words) return std::nullopt;
    if (words->empty()) {
      wrong(0, text.size(), "expected an event pattern such as \"reply from=shop status=201\", found nothing");
      return std::nullopt;
    }
    if (!read_event(words->front())) return std::nullopt;
    pattern_.text = text;
    for (auto word = words->begin() + 1; word != words->end(); ++word)
      if (!read_matcher(*word)) return std::nullopt;
    return std::move(pattern_);
  }

 private:
  static std::vector<std::string> kinds() {
    std::vector<std::string> names;
    for (const auto& kind : event_kinds())
      if (kind.selectable) names.push_back(kind.name);
    return names;
  }

  bool read_event(const Word& word) {
    const auto known = scope_.events.empty() ? kinds() : scope_.events;
    if (word.key || word.quoted)
      return wrong(word.at, word.bytes,
                   "an event pattern begins with a kind of event: one of " + base::join_names(known));
    kind_ = event_kind(word.value);
    if (kind_ == nullptr || !kind_->selectable) {
      const auto near = near_name(word.value, known);
      return wrong(word.at, word.bytes,
                   "unknown event \"" + word.value + "\"" +
                       (near ? "; did you mean \"" + *near + "\"?" : "; known: " + base::join_names(known)));
    }
    if (std::find(known.begin(), known.end(), word.value) == known.end())
      return wrong(word.at, word.bytes,
                   "there is no event \"" + word.value + "\" here; there is " + base::join_names(known));
    pattern_.event = word.value;
    return true;
  }

  bool read_matcher(const Word& word) {
    if (!word.key) return wrong(word.at, word.bytes, "expected attribute=value, found \"" + word.value + "\"");
    const auto path = split_path(*word.key);
    if (!has_attribute(*kind_, path)) {
      const auto names = attribute_names(*kind_);
      const auto near = nearest_path(path, names);
      return wrong(word.at, word.key->size(),
                   "event \"" + kind_->name + "\" has no attribute \"" + *word.key + "\"" +
                       (near ? "; did you mean \"" + *near + "\"?" : "; it has " + base::join_names(names)));
    }
    if (word.value.empty() && !word.quoted)
      return wrong(word.at, word.bytes, "\"" + *word.key + "\" has no value; an empty one is written \"\"");
    auto matcher = scalar_matcher(word.value, !word.quoted);
    if (!matcher) return wrong(word.value_at(), word.value_bytes(), matcher.error().message);
    if (matcher->test == Matcher::Test::equals && !(check_name(word) && check_call(word) && check_star(word)))
      return false;
    matcher->path = path;
    pattern_.matchers.push_back(std::move(*matcher));
    return true;
  }

  /// A pattern that names somebody who does not exist would never match.
  bool check_name(const Word& word) {
    const bool lane = *word.key == "lane";
    const bool service =
        *word.key == "from" || *word.key == "to" || (*word.key == "service" && kind_->lane == "service");
    const auto& known = lane ? scope_.lanes : scope_.services;
    if ((!lane && !service) || known.empty() || std::find(known.begin(), known.end(), word.value) != known.end())
      return true;
    const auto near = near_name(word.value, known);
    return wrong(word.value_at(), word.value_bytes(),
                 "there is no " + std::string(lane ? "lane" : "service") + " \"" + word.value + "\"" +
                     (near ? "; did you mean \"" + *near + "\"?" : "; there is " + base::join_names(known)));
  }

  /// The same of a system call, or a family of them.
  bool check_call(const Word& word) {
    if (kind_->name != events::syscall || (*word.key != "family" && *word.key != "call")) return true;
    const bool by_family = *word.key == "family";
    std::vector<std::string> known;
    if (!by_family) known.emplace_back("io_uring_setup");  // it is answered, and belongs to no family
    for (const auto& family : syscall_families()) {
      if (by_family) known.push_back(family.name);
      if (!by_family) known.insert(known.end(), family.calls.begin(), family.calls.end());
    }
    if (std::find(known.begin(), known.end(), word.value) != known.end()) return true;
    const auto near = near_name(word.value, known);
    const auto names = by_family ? "; known: " + base::join_names(known) : std::string();
    return wrong(word.value_at(), word.value_bytes(),
                 std::string("there is no ") + (by_family ? "family of system calls" : "system call") + " \"" +
                     word.value + "\" that can be seen" + (near ? "; did you mean \"" + *near + "\"?" : names));
  }

  /// A rule's own `path` and `peer` are globs, and whoever writes one beside them would wait for ever.
  bool check_star(const Word& word) {
    if (word.quoted || word.value.find('*') == std::string::npos) return true;
    return wrong(word.value_at(), word.value_bytes(),
                 "values of events are no globs; as a regular expression this is " + *word.key + "=" +
                     glob_as_regex(word.value) + " (a \"*\" that is meant as such stands in quotes)");
  }

  bool wrong(std::size_t at, std::size_t bytes, const std::string& message) {
    mistake_ = {message, at, bytes};
    return false;
  }

  const EventScope& scope_;
  Mistake& mistake_;
  const EventKind* kind_ = nullptr;
  Pattern pattern_;
};

}  // namespace

std::optional<Pattern> read_event_pattern(std::string_view text, const EventScope& scope, Mistake& mistake) {
  return EventPatternReader(scope, mistake).read(text);
}

base::Expected<Pattern> parse_event_pattern(std::string_view text) {
  Mistake mistake;
  auto pattern = read_event_pattern(text, {}, mistake);
  if (pattern) return std::move(*pattern);
  return base::Error{base::ErrorCode::bad_input, mistake.message, {"", 0, static_cast<int>(mistake.at) + 1}};
}

}  // namespace leafcutter::scenarios
