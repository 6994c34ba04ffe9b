#include "scenarios/rule.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/kernel_rule.hpp"
#include "scenarios/matcher_text.hpp"
#include "scenarios/rule_arguments.hpp"
#include "scenarios/rule_terms.hpp"
#include "scenarios/rule_words.hpp"

namespace leafcutter::scenarios {
namespace {

std::vector<std::string> syscall_kind_names() {
  std::vector<std::string> names;
  for (const auto& kind : fault_kinds())
    if (kind.mechanism == Mechanism::syscall && kind.name != "errno") names.push_back(kind.name);
  return names;
}

std::string family_list() {
  std::vector<std::string> names;
  for (const auto& family : syscall_families()) names.push_back(family.name);
  return base::join_names(names);
}

/// Reads one rule; the first mistake ends it.
class RuleReader : private rules::RuleWords {
 public:
  RuleReader(const RuleScope& scope, Mistake& mistake) : RuleWords(scope.events, "calls", mistake), scope_(scope) {}

  std::optional<Fault> read(std::string_view text) {
    if (!split(text, "fsync=EIO path=*.wal #2")) return std::nullopt;
    fault_.site.lane = scope_.lane;
    if (const auto* kind = process_kind(words_.front())) {
      if (!read_process(*kind)) return std::nullopt;
      fault_.aim = std::move(aim_);
      return std::move(fault_);
    }
    if (!collect() || !read_call() || !read_effect() || !read_keys() || !check()) return std::nullopt;
    fault_.site.operation = family_->name;
    fault_.aim = std::move(aim_);
    if (!check_uncounted()) return std::nullopt;
    return std::move(fault_);
  }

 private:
  // --- a fault of a whole service: KIND[:ARGUMENT] after=EVENT ---

  static const FaultKind* process_kind(const Word& word) {
    if (word.key || word.quoted) return nullptr;
    const auto* kind = fault_kind(word.value.substr(0, word.value.find(':')));
    return kind != nullptr && kind->mechanism == Mechanism::process ? kind : nullptr;
  }

  bool read_process(const FaultKind& kind) {
    const auto& first = words_.front();
    const auto name = "\"" + kind.name + "\" ";
    if (scope_.services.empty())
      return wrong(first.at, kind.name.size(),
                   name +
                       "strikes services, and there is one program here; at a call it is written CALL=EFFECT, such as "
                       "fsync=crash-before");
    if (!rules::strikes_after_events(kind))
      return wrong(
          first.at, kind.name.size(),
          name + "is in force from the start of a service and waits for no event; it stands under \"process\"");
    fault_.kind = kind.name;
    fault_.site.operation = kind.operations.front();
    if (!rules::take_arguments(kind, first, 0, fault_.params, mistake_)) return false;
    for (std::size_t i = 1; i < words_.size(); ++i) {
      const auto& word = words_[i];
      if (word.key != "after" && word.key != "service")
        return wrong(word, name + "strikes a whole service, once: it takes after= and service=; found \"" +
                               word.key.value_or(word.value) + "\"");
      if (!take_key(word)) return false;
      if (!(word.key == "after" ? read_event(word, aim_.after) : read_service(word))) return false;
    }
    return !aim_.after.empty() ||
           wrong(first, name + "needs the event that it strikes after, such as after=\"ready service=" + scope_.lane +
                            "\"; before steps of the workload it stands under \"process\"");
  }

  // --- the words, by what they are ---

  bool collect() {
    const auto& first = words_.front();
    if (!first.key || first.quoted || first.key->empty())
      return wrong(first, "expected CALL=EFFECT, such as fsync=EIO; found \"" + first.value + "\"");
    for (std::size_t i = 1; i < words_.size(); ++i)
      if (!(words_[i].key ? collect_key(words_[i]) : collect_occurrences(i))) return false;
    return true;
  }

  bool collect_key(const Word& word) {
    std::vector<std::string> known;
    for (const auto& key : rules::rule_keys())
      if (key.name != "service" || !scope_.services.empty()) known.push_back(key.name);
    if (std::find(known.begin(), known.end(), *word.key) == known.end()) {
      if (*word.key == "service")
        return wrong(word.at, word.key->size(), "there is one program here and no service to choose");
      return wrong(word.at, word.key->size(), "unknown key \"" + *word.key + "\"" + rules::hint(*word.key, known));
    }
    return take_key(word);
  }

  /// "#2" and "uncounted" are one word, "first 3" are two.
  bool collect_occurrences(std::size_t& i) {
    const auto& word = words_[i];
    if (!word.quoted && word.value == "uncounted") {
      if (uncounted_ != nullptr) return wrong(word, "\"uncounted\" is said twice");
      uncounted_ = &word;
      return aim_.uncounted = true;
    }
    return read_occurrences(i, {"first", "every", "from", "uncounted"});
  }

  // --- CALL ---

  bool read_call() {
    const auto& word = words_.front();
    const auto families = rules::families_named(*word.key);
    if (families.empty()) {
      std::vector<std::string> known;
      for (const auto& family : syscall_families()) {
        known.push_back(family.name);
        known.insert(known.end(), family.calls.begin(), family.calls.end());
      }
      const auto near = rules::near_call(*word.key, known);
      return wrong(word.at, word.key->size(),
                   "unknown system call \"" + *word.key + "\"" +
                       (near ? "; did you mean \"" + *near + "\"?" : "; the families are " + family_list()));
    }
    family_ = families.size() == 1 ? families.front() : by_object(families);
    if (family_ == nullptr) {
      const auto& call = *word.key;
      return wrong(word.at, call.size(),
                   "\"" + call + "\" serves files and sockets; say object=file (family \"" + families[0]->name +
                       "\") or object=socket-tcp (family \"" + families[1]->name + "\")");
    }
    if (*word.key != family_->name) aim_.call = *word.key;
    return true;
  }

  /// Files and sockets share calls; the object, a path or a peer tells them apart.
  const SyscallFamily* by_object(const std::vector<const SyscallFamily*>& families) const {
    const auto* object = key("object");
    for (const auto* family : families) {
      const auto classes = classes_of(*family);
      if (object != nullptr) {
        if (std::find(classes.begin(), classes.end(), object->value) != classes.end()) return family;
      } else if (key(family->object == "socket" ? "peer" : "path") != nullptr) {
        return family;
      }
    }
    return object != nullptr ? families.front() : nullptr;  // an unknown class: that is what is wrong
  }

  // --- EFFECT ---

  bool read_effect() {
    const auto& word = words_.front();
    const auto colon = std::min(word.value.find(':'), word.value.size());
    const auto name = word.value.substr(0, colon);
    const auto bytes = word.places[colon] - word.value_at();
    if (name.empty()) return wrong(word, "expected an effect after \"=\": an error such as EIO, or a kind of fault");
    if (const auto number = error_number(name); number != 0) {
      const bool digits = name.find_first_not_of("0123456789") == std::string::npos;
      fault_.kind = "errno";
      fault_.params["error"] = digits ? error_name(number) : name;
      return rules::take_arguments(*fault_kind("errno"), word, 1, fault_.params, mistake_);
    }
    fault_.kind = name == "crash" || name == "power-loss" ? name + "-before" : name;
    const auto* kind = fault_kind(fault_.kind);
    if (kind == nullptr || kind->name == "errno") return unknown_effect(name, bytes);
    if (kind->mechanism != Mechanism::syscall)
      return wrong(
          word.value_at(), bytes,
          "\"" + name + "\" strikes " +
              (kind->mechanism == Mechanism::link ? "links, not system calls; in a scenario it stands under \"network\""
               : kind->mechanism == Mechanism::dns
                   ? "lookups of names, not system calls; in a scenario it stands under \"dns\""
                   : "services, not system calls; in a scenario it stands under \"process\""));
    if (!rules::take_arguments(*kind, word, 0, fault_.params, mistake_)) return false;
    if (kind->needs_image && !scope_.without_image.empty())
      return wrong(word.value_at(), bytes, "\"" + name + "\" " + scope_.without_image);
    return true;
  }

  bool unknown_effect(const std::string& name, std::size_t bytes) {
    if (name == "errno")
      return wrong(words_.front().value_at(), bytes, "an error is named by itself, such as fsync=EIO");
    if (name.find_first_not_of("0123456789") == std::string::npos)
      return wrong(words_.front().value_at(), bytes,
                   "an error is a name such as EIO or a number from 1 to 4095, found \"" + name + "\"");
    const auto kinds = syscall_kind_names();
    auto known = kinds;
    known.insert(known.end(), {"crash", "power-loss"});
    known.insert(known.end(), error_names().begin(), error_names().end());
    const auto near = near_name(name, known);
    return wrong(words_.front().value_at(), bytes,
                 "unknown effect \"" + name + "\"" +
                     (near ? "; did you mean \"" + *near + "\"?"
                           : "; expected the name of an error, or one of " + base::join_names(kinds)));
  }

  // --- keys ---

  bool read_keys() {
    for (const auto* word : keys_) {
      const auto& name = *word->key;
      const auto& value = word->value;
      if (const auto refusal = rules::key_refusal(*family_, name); !refusal.empty()) return wrong(*word, refusal);
      if (name == "path")
        aim_.path = value;
      else if (name == "peer")
        aim_.peer = value;
      else if (!(name == "call"          ? read_call_key(*word)
                 : name == "object"      ? read_object(*word)
                 : name == "flags"       ? read_flags(*word)
                 : name == "probability" ? read_probability(*word, false)
                 : name == "service"     ? read_service(*word)
                 : name == "after"       ? read_event(*word, aim_.after)
                 : name == "until"       ? read_until(*word)
                                         : read_range(*word, name == "size" ? aim_.size : aim_.offset)))
        return false;
    }
    return true;
  }

  bool read_call_key(const Word& word) {
    const auto& calls = family_->calls;
    if (std::find(calls.begin(), calls.end(), word.value) == calls.end()) {
      const auto near = rules::near_call(word.value, calls);
      return wrong_value(word,
                         "family \"" + family_->name + "\" has no call \"" + word.value + "\"" +
                             (near ? "; did you mean \"" + *near + "\"?" : "; it has " + base::join_names(calls)));
    }
    if (!aim_.call.empty() && aim_.call != word.value)
      return wrong(
          word, "the rule is about \"" + aim_.call + "\" already; use call= with the family \"" + family_->name + "\"");
    aim_.call = word.value;
    return true;
  }

  bool read_object(const Word& word) {
    const auto refusal = rules::object_refusal(*family_, word.value);
    aim_.object = word.value;
    return refusal.empty() || wrong_value(word, refusal);
  }

  bool read_flags(const Word& word) {
    for (const auto& flag : rules::pieces_of(word, 0, '|')) {
      if (const auto refusal = rules::flag_refusal(*family_, flag.text); !refusal.empty())
        return wrong(flag.at, flag.text.size(), refusal);
      if (std::find(aim_.flags.begin(), aim_.flags.end(), flag.text) == aim_.flags.end())
        aim_.flags.push_back(flag.text);
    }
    return true;
  }

  bool read_service(const Word& word) {
    const auto& known = scope_.services;
    if (std::find(known.begin(), known.end(), word.value) == known.end())
      return wrong_value(word,
                         "the rule's \"on\" has no service \"" + word.value + "\"" + rules::hint(word.value, known));
    fault_.site.lane = word.value;
    return true;
  }

  bool read_until(const Word& word) {
    const auto& parameters = fault_kind(fault_.kind)->parameters;
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [](const FaultParameter& p) { return p.type == FaultParameter::Type::event; });
    if (found == parameters.end())
      return wrong(word.at, word.key->size(), "\"" + fault_.kind + "\" waits for nothing; \"until\" goes with hold");
    std::string pattern;
    if (!read_event(word, pattern)) return false;
    fault_.params[found->name] = pattern;
    return true;
  }

  bool read_range(const Word& word, std::optional<Range>& out) {
    out = rules::size_range_in(word.value);
    return out || wrong_value(word, "expected bytes as 100, 1..100, 4k.. or ..1M, found \"" + word.value + "\"");
  }

  // --- whether it can strike at all ---

  bool check() {
    const auto& word = words_.front();
    const auto& kind = *fault_kind(fault_.kind);
    const auto effect = word.places[std::min(word.value.find(':'), word.value.size())] - word.value_at();
    if (const auto refusal = rules::kind_refusal(*family_, kind); !refusal.empty())
      return wrong(word.value_at(), effect, refusal);
    const auto* size = key("size");
    if (size != nullptr && aim_.size->at_most && (kind.name == "short" || kind.name == "torn") &&
        *aim_.size->at_most <= fault_.params["bytes"].get<std::uint64_t>())
      return wrong(*size, "\"" + kind.name + "\" strikes calls of more than " + fault_.params["bytes"].dump() +
                              " bytes, and size= leaves none of them");
    if (kind.name == "no-space" &&
        (aim_.occurrences.which != Occurrences::Which::from || aim_.per_million < 1'000'000)) {
      const auto& at = occurrences_ != nullptr && aim_.occurrences.which != Occurrences::Which::from
                           ? *occurrences_
                           : *key("probability");
      return wrong(at, "a full disk stays full: \"no-space\" takes no occurrences but \"from n\", and no probability");
    }
    return true;
  }

  /// A wish that would not be granted is refused: the user would take the cost for that of the kernel alone.
  bool check_uncounted() {
    if (uncounted_ == nullptr) return true;
    const auto kernel = kernel_rule(fault_, scope_.kernel);
    return !kernel.calls.empty() || wrong(*uncounted_, "not without counting: " + kernel.why_not);
  }

  const RuleScope& scope_;
  const Word* uncounted_ = nullptr;
  const SyscallFamily* family_ = nullptr;
};

}  // namespace

std::optional<Fault> read_rule(std::string_view text, const RuleScope& scope, Mistake& mistake) {
  return RuleReader(scope, mistake).read(text);
}

}  // namespace leafcutter::scenarios
