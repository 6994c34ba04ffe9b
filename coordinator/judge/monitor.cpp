#include "coordinator/judge/monitor.hpp"

#include <map>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "coordinator/finding.hpp"
#include "coordinator/judge/attributes.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/predicate.hpp"

namespace leafcutter::coordinator {

using base::Status;
using protocols::Event;
using scenarios::CompiledPattern;
using scenarios::Pattern;
using scenarios::Property;
using scenarios::Reason;

namespace {

std::string of_key(const std::string& key) {
  return key.empty() ? std::string() : "key " + one_line_text(key, 80) + ": ";
}

/// A pattern asked about events, its keys in hand.
class Watch {
 public:
  struct Hit {
    bool matched = false;
    std::optional<std::string> key;
  };

  Status compile(const Pattern& pattern) {
    pattern_ = &pattern;
    auto compiled = CompiledPattern::compile(pattern);
    if (!compiled) return compiled.error();
    compiled_.emplace(std::move(*compiled));
    return base::ok();
  }

  base::Expected<Hit> ask(const Event& event) {
    // Cheap first: most events are of another kind.
    if (!compiled_ || event.kind != pattern_->event) return Hit{};
    auto matched = compiled_->matches(event);
    if (!matched) return matched.error();
    if (!*matched) return Hit{};
    return Hit{true, compiled_->key(event)};
  }

  /// An event that matches but lacks the key cannot be assigned to an obligation; it is remembered, because leaving it
  /// out in silence could hide a failure.
  void remember_keyless(const Event& event) {
    if (!keyless_) keyless_ = ref(event);
  }

  bool keyed() const { return pattern_ && !pattern_->key.empty(); }
  const std::string& text() const { return pattern_->text; }

  /// "an event that matches "..." has no json.id", when there was one.
  std::optional<std::string> keyless() const {
    if (!keyless_) return std::nullopt;
    std::string path;
    for (const auto& part : pattern_->key) path += (path.empty() ? "" : ".") + part;
    return "event " + std::to_string(keyless_->seq) + " of " + keyless_->lane + " matches \"" + pattern_->text +
           "\" but has no " + path + " to tell it by";
  }

 private:
  const Pattern* pattern_ = nullptr;
  std::optional<CompiledPattern> compiled_;
  std::optional<EventRef> keyless_;
};

/// The patterns of a property with their obligations' keys: what `for-each` saw.
class KeyedMonitor : public Monitor {
 public:
  explicit KeyedMonitor(const Property& property) : Monitor(property) {
    compiled_ = pattern_.compile(property.pattern);
    if (compiled_ && property.for_each) compiled_ = antecedent_.compile(*property.for_each);
  }

 protected:
  struct First {
    std::chrono::nanoseconds at{0};
    EventRef event;
  };

  virtual Status found(const std::string& key, const Event& event) = 0;
  virtual void decide(const Ending& ending) = 0;

  Status look(const Event& event) final {
    if (!compiled_) return compiled_.error();
    if (property_.for_each) {
      auto hit = antecedent_.ask(event);
      if (!hit) return hit.error();
      if (hit->matched && hit->key) obligations_.emplace(*hit->key, First{event.at, ref(event)});
      if (hit->matched && !hit->key) antecedent_.remember_keyless(event);
    }
    auto hit = pattern_.ask(event);
    if (!hit) return hit.error();
    if (!hit->matched) return base::ok();
    if (hit->key) return found(*hit->key, event);
    if (!property_.for_each && property_.kind != Property::Kind::count) return found("", event);
    // It could not have met an obligation of `eventually` either way; elsewhere it might have been an offence.
    if (property_.kind != Property::Kind::eventually) pattern_.remember_keyless(event);
    return base::ok();
  }

  void conclude(const Ending& ending) final {
    for (const auto* watch : {&antecedent_, &pattern_})
      if (const auto keyless = watch->keyless()) leave_open(*keyless, Reason::check_unavailable);
    decide(ending);
  }

  /// The key under which matches of the pattern count for the obligation `key`.
  const std::string& match_key(const std::string& key) const {
    static const std::string none;
    return pattern_.keyed() ? key : none;
  }
  /// Does a match with this key concern an obligation at all?
  bool concerned(const std::string& key) const {
    if (!property_.for_each) return true;
    if (!pattern_.keyed() || !antecedent_.keyed()) return !obligations_.empty();
    return obligations_.contains(key);
  }

  Watch antecedent_, pattern_;
  std::map<std::string, First> obligations_;

 private:
  Status compiled_ = base::ok();
};

/// `never`: no match at all. `always`: every match satisfies `holds`. With for-each: only matches with an antecedent's
/// key count, wherever the antecedent stands in the trace.
class SafetyMonitor final : public KeyedMonitor {
 public:
  explicit SafetyMonitor(const Property& property) : KeyedMonitor(property) {
    if (property.kind != Property::Kind::always) return;
    // The demand is a pattern of its own, so that it sees exactly what a pattern sees.
    Pattern demand;
    demand.event = property.pattern.event;
    demand.matchers = property.holds;
    demand.where_lua = property.holds_lua;
    auto compiled = CompiledPattern::compile(demand);
    if (compiled)
      holds_.emplace(std::move(*compiled));
    else
      failed_ = compiled.error();
  }

 protected:
  Status found(const std::string& key, const Event& event) override {
    if (failed_) return *failed_;
    seen_keys_.insert(key);
    const bool always = property_.kind == Property::Kind::always;
    if (always) {
      auto held = holds_->matches(event);
      if (!held) return held.error();
      if (*held) return base::ok();
    }
    Offence offence{key, ref(event), message(event, always)};
    if (!property_.for_each)
      violate(of_key(key) + offence.message, key, {offence.event});
    else if (offences_by_key_[key]++ == 0)
      offences_.push_back(std::move(offence));
    return base::ok();
  }

  void decide(const Ending& ending) override {
    for (const auto& offence : offences_) {
      if (!concerned(offence.key)) continue;
      std::vector<EventRef> evidence{offence.event};
      if (const auto antecedent = obligations_.find(offence.key); antecedent != obligations_.end())
        evidence.push_back(antecedent->second.event);
      violate(of_key(offence.key) + offence.message, offence.key, std::move(evidence));
    }
    if (property_.for_each)
      outcome_.vacuous = obligations_.empty();
    else
      outcome_.vacuous = property_.kind == Property::Kind::always && seen_keys_.empty();
    // What was lost could have broken it; a leaf that was merely cut short is judged by what it did show.
    if (const auto unknown = ending.absence_unknown(); unknown && *unknown != Reason::not_settled)
      leave_open("it held as far as the trace goes, but " + ending.why_unknown(), *unknown);
  }

 private:
  struct Offence {
    std::string key;
    EventRef event;
    std::string message;
  };

  std::string message(const Event& event, bool always) const {
    const auto what = one_line_text(one_line(event), 160);
    if (!always) return what + ", which must never happen (\"" + pattern_.text() + "\")";
    auto wanted = describe(property_.holds);
    if (!property_.holds_lua.empty())
      wanted += wanted.empty() ? property_.holds_lua : " and (" + property_.holds_lua + ")";
    return what + " breaks \"" + wanted + "\", which every \"" + pattern_.text() + "\" must satisfy";
  }

  std::optional<CompiledPattern> holds_;
  std::optional<base::Error> failed_;
  std::set<std::string> seen_keys_;
  std::vector<Offence> offences_;
  std::map<std::string, std::uint64_t> offences_by_key_;
};

/// `eventually`: for each obligation a match at some time in the leaf, before or after its antecedent: a service may
/// well act before it answers for the act. `within` sets the time after which a match is too late.
class EventuallyMonitor final : public KeyedMonitor {
 public:
  using KeyedMonitor::KeyedMonitor;

 protected:
  Status found(const std::string& key, const Event& event) override {
    // The earliest match is the best one for any deadline.
    const auto [entry, fresh] = matches_.emplace(match_key_of(key), First{event.at, ref(event)});
    if (!fresh && event.at < entry->second.at) entry->second = First{event.at, ref(event)};
    return base::ok();
  }

  void decide(const Ending& ending) override {
    if (!property_.for_each) obligations_.emplace("", First{});
    outcome_.vacuous = obligations_.empty();
    for (const auto& [key, antecedent] : obligations_) decide(key, antecedent, ending);
  }

 private:
  std::string match_key_of(const std::string& key) const {
    return property_.for_each && antecedent_.keyed() ? key : std::string();
  }

  void decide(const std::string& key, const First& antecedent, const Ending& ending) {
    const auto match = matches_.find(match_key(key));
    const auto deadline =
        property_.within ? ending.deadline(antecedent.at, *property_.within) : std::chrono::nanoseconds::max();
    if (match != matches_.end() && match->second.at <= deadline) return;

    std::vector<EventRef> evidence;
    if (property_.for_each) evidence.push_back(antecedent.event);
    std::string message = of_key(key);
    if (property_.for_each) message += "\"" + antecedent_.text() + "\" was seen, but ";
    message += "\"" + pattern_.text() + "\"";
    if (match != matches_.end()) {
      evidence.push_back(match->second.event);
      message += " came only after the " + base::format_duration(*property_.within) + " it was due in";
    } else {
      message += ending.observed_past(deadline) ? " did not come within " + base::format_duration(*property_.within)
                                                : " never came";
    }
    const auto unknown = ending.absence_unknown();
    if (!unknown && match == matches_.end() && property_.within && !ending.observed_past(deadline))
      message += ", and nothing moves any more";
    if (!unknown || ending.observed_past(deadline))
      violate(std::move(message), key, std::move(evidence));
    else
      leave_open(message + "; " + ending.why_unknown(), *unknown);
  }

  std::map<std::string, First> matches_;
};

/// `count`: how many matches, for each key where the pattern has one.
class CountMonitor final : public KeyedMonitor {
 public:
  using KeyedMonitor::KeyedMonitor;

 protected:
  Status found(const std::string& key, const Event& event) override {
    auto& tally = tallies_[key];
    ++tally.count;
    if (tally.events.size() < evidence_kept) tally.events.push_back(ref(event));
    if (property_.at_most && tally.count == *property_.at_most + 1) tally.excess = ref(event);
    return base::ok();
  }

  void decide(const Ending& ending) override {
    if (!property_.for_each && !pattern_.keyed()) obligations_.emplace("", First{});
    if (property_.for_each)
      outcome_.vacuous = obligations_.empty();
    else
      outcome_.vacuous = pattern_.keyed() && tallies_.empty();
    for (const auto& [key, tally] : tallies_)
      if (tally.excess && concerned(key)) exceed(key, tally);
    if (property_.at_least) {
      if (!property_.for_each && pattern_.keyed())
        for (const auto& [key, tally] : tallies_) obligations_.emplace(key, First{{}, tally.events.front()});
      for (const auto& [key, antecedent] : obligations_) fall_short(key, antecedent, ending);
    }
    if (const auto unknown = ending.absence_unknown(); property_.at_most && unknown && *unknown != Reason::not_settled)
      leave_open("it held as far as the trace goes, but " + ending.why_unknown(), *unknown);
  }

 private:
  static constexpr std::size_t evidence_kept = 8;
  struct Tally {
    std::uint64_t count = 0;
    std::vector<EventRef> events;
    std::optional<EventRef> excess;
  };

  void exceed(const std::string& key, const Tally& tally) {
    std::vector<EventRef> evidence{*tally.excess};
    for (const auto& event : tally.events)
      if (!(event == *tally.excess)) evidence.push_back(event);
    violate(of_key(key) + "\"" + pattern_.text() + "\" came " + std::to_string(tally.count) + " times, at most " +
                std::to_string(*property_.at_most) + " allowed",
            key, std::move(evidence));
  }

  void fall_short(const std::string& key, const First& antecedent, const Ending& ending) {
    const auto tally = tallies_.find(match_key(key));
    const auto count = tally == tallies_.end() ? 0 : tally->second.count;
    if (count >= *property_.at_least) return;
    std::vector<EventRef> evidence;
    if (!antecedent.event.lane.empty()) evidence.push_back(antecedent.event);
    if (tally != tallies_.end())
      evidence.insert(evidence.end(), tally->second.events.begin(), tally->second.events.end());
    auto message = of_key(key) + "\"" + pattern_.text() + "\" came " + std::to_string(count) + " times, at least " +
                   std::to_string(*property_.at_least) + " demanded";
    const auto unknown = ending.absence_unknown();
    if (!unknown)
      violate(std::move(message), key, std::move(evidence));
    else
      leave_open(message + "; " + ending.why_unknown(), *unknown);
  }

  std::map<std::string, Tally> tallies_;
};

/// `check`: state read back after the leaf; the leaf ran it and said so in a `check` event.
class CheckMonitor final : public Monitor {
 public:
  explicit CheckMonitor(const Property& property) : Monitor(property) {}

 protected:
  Status look(const Event& event) override {
    if (event.kind != scenarios::events::check || text_of(event.attrs, "property") != property_.name) return base::ok();
    seen_ = true;
    const auto ok = flag_of(event.attrs, "ok");
    if (ok.value_or(false)) return base::ok();
    const bool ran = number_of(event.attrs, "exit") || number_of(event.attrs, "status");
    const auto detail = one_line_text(text_of(event.attrs, "detail"), 300);
    if (!ran || !ok) {
      leave_open("the check could not be run to its end" + (detail.empty() ? std::string() : ": " + detail),
                 Reason::check_unavailable);
      return base::ok();
    }
    violate(message(event, detail), "", {ref(event)});
    return base::ok();
  }

  void conclude(const Ending& ending) override {
    if (seen_) return;
    const auto unknown = ending.absence_unknown();
    const bool decided = !unknown || *unknown == Reason::not_settled;
    leave_open("the check was not run" + (decided ? std::string() : "; " + ending.why_unknown()),
               decided ? Reason::check_unavailable : *unknown);
  }

 private:
  std::string message(const Event& event, const std::string& detail) const {
    std::string found = "the check ";
    if (const auto exit = number_of(event.attrs, "exit")) {
      found += "ended with exit status " + std::to_string(*exit);
      const auto wanted = property_.check.exit.value_or(0);
      if (wanted != *exit) found += " (" + std::to_string(wanted) + " expected)";
    } else {
      found += "was answered with status " + std::to_string(number_of(event.attrs, "status").value_or(0));
    }
    auto said = one_line_text(text_of(event.attrs, "stdout"), 300);
    if (said.empty()) said = one_line_text(text_of(event.attrs, "body"), 300);
    if (!detail.empty()) found += ": " + detail;
    if (!said.empty() && detail.find(said) == std::string::npos) found += ": " + said;
    return found;
  }

  bool seen_ = false;
};

std::string describe_one(const scenarios::Matcher& matcher) {
  using Test = scenarios::Matcher::Test;
  std::string path;
  for (const auto& part : matcher.path) path += (path.empty() ? "" : ".") + part;
  const auto number = [](double value) {
    const auto text = protocols::Value(value).dump();
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  };
  switch (matcher.test) {
    case Test::equals:
    case Test::one_of:
      return path + ": " + matcher.value.dump(-1, ' ', false, protocols::Value::error_handler_t::replace);
    case Test::status_class: return path + ": " + std::to_string(matcher.status_class) + "xx";
    case Test::regex: return path + ": /" + matcher.regex + "/";
    case Test::exists: return path + (matcher.value == false ? " is absent" : " exists");
    case Test::nested: return path + ": {" + coordinator::describe(matcher.nested) + "}";
    case Test::range: break;
  }
  std::string range;
  if (matcher.at_least) range += " >= " + number(*matcher.at_least);
  if (matcher.at_most) range += std::string(range.empty() ? "" : " and") + " <= " + number(*matcher.at_most);
  return path + range;
}

}  // namespace

EventRef ref(const Event& event) { return EventRef{event.lane, event.seq}; }

std::string describe(const std::vector<scenarios::Matcher>& matchers) {
  std::string text;
  for (const auto& matcher : matchers) text += (text.empty() ? "" : ", ") + describe_one(matcher);
  return text;
}

std::unique_ptr<Monitor> Monitor::make(const Property& property) {
  switch (property.kind) {
    case Property::Kind::always:
    case Property::Kind::never: return std::make_unique<SafetyMonitor>(property);
    case Property::Kind::eventually: return std::make_unique<EventuallyMonitor>(property);
    case Property::Kind::count: return std::make_unique<CountMonitor>(property);
    case Property::Kind::check: break;
  }
  return std::make_unique<CheckMonitor>(property);
}

Monitor::~Monitor() = default;

void Monitor::see(const Event& event) {
  if (broken_) return;
  if (auto status = look(event); !status) broken_ = status.error().message;
}

PropertyOutcome Monitor::finish(const Ending& ending) {
  if (broken_) {
    // Whatever was violated before the expression failed stays violated; the rest is unknown.
    outcome_.open.push_back(
        {property_.name + ": its expression could not be evaluated: " + *broken_, Reason::check_unavailable});
    return std::move(outcome_);
  }
  conclude(ending);
  return std::move(outcome_);
}

void Monitor::violate(std::string message, const std::string& key, std::vector<EventRef> evidence) {
  if (outcome_.violations.size() >= violations_kept) return;
  outcome_.violations.push_back({property_.name, std::move(message), key, std::move(evidence)});
}

void Monitor::leave_open(const std::string& what, Reason reason) {
  if (outcome_.open.size() < violations_kept) outcome_.open.push_back({property_.name + ": " + what, reason});
}

}  // namespace leafcutter::coordinator
