#include "scenarios/predicate.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/regex.hpp"
#include "scenarios/template.hpp"

namespace leafcutter::scenarios {
namespace {

/// The text that a value stands for where text is wanted: strings as they are, everything else as JSON.
std::string as_text(const Value& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Value::error_handler_t::replace);
}

bool in_range(const Matcher& matcher, const Value& value) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  return (!matcher.at_least || number >= *matcher.at_least) && (!matcher.at_most || number <= *matcher.at_most);
}

bool matches_class(int status_class, const Value& value) {
  if (!value.is_number_integer()) return false;
  const auto status = value.get<std::int64_t>();
  return status >= status_class * 100 && status < (status_class + 1) * 100;
}

/// One alternative of `one_of`: a plain value, or "2xx" among statuses.
bool equals_one(const Value& list, const Value& value) {
  return list.is_array() && std::any_of(list.begin(), list.end(), [&](const Value& one) {
           if (one == value) return true;
           if (!one.is_string() || !value.is_number()) return false;
           const auto& text = one.get_ref<const std::string&>();
           return text.size() == 3 && text[0] >= '1' && text[0] <= '5' && text.ends_with("xx") &&
                  matches_class(text[0] - '0', value);
         });
}

bool matches_one(const Matcher& matcher, const Value* value) {
  switch (matcher.test) {
    case Matcher::Test::exists:
      return (value != nullptr && !value->is_null()) == (matcher.value.is_boolean() && matcher.value.get<bool>());
    case Matcher::Test::nested: {
      static const Value nothing;  // below what is missing everything is missing
      return matches(matcher.nested, value != nullptr ? *value : nothing);
    }
    case Matcher::Test::equals: return value != nullptr && *value == matcher.value;
    case Matcher::Test::one_of: return value != nullptr && equals_one(matcher.value, *value);
    case Matcher::Test::status_class: return value != nullptr && matches_class(matcher.status_class, *value);
    case Matcher::Test::range: return value != nullptr && in_range(matcher, *value);
    case Matcher::Test::regex:
      return value != nullptr && !value->is_null() && regex_search(matcher.regex, as_text(*value));
  }
  return false;
}

/// `lane` is a field of the event itself, and `service` its name on the events of a service.
bool is_lane(const std::vector<std::string>& path, const EventKind* kind) {
  return path.size() == 1 &&
         (path[0] == "lane" || (path[0] == "service" && kind != nullptr && kind->lane == "service"));
}

}  // namespace

const Value* at_path(const Value& attrs, const std::vector<std::string>& path) {
  const Value* at = &attrs;
  for (const auto& part : path) {
    if (at->is_object()) {
      const auto found = at->find(part);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else if (at->is_array()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
      if (error != std::errc{} || end != part.data() + part.size() || index >= at->size()) return nullptr;
      at = &(*at)[index];
    } else {
      return nullptr;
    }
  }
  return at;
}

bool matches(const std::vector<Matcher>& matchers, const Value& attrs) {
  return std::all_of(matchers.begin(), matchers.end(),
                     [&](const Matcher& matcher) { return matches_one(matcher, at_path(attrs, matcher.path)); });
}

base::Expected<CompiledPattern> CompiledPattern::compile(const Pattern& pattern) {
  CompiledPattern compiled;
  compiled.pattern_ = pattern;
  if (!pattern.where_lua.empty()) {
    auto lua = LuaExpression::compile(pattern.where_lua);
    if (!lua) return lua.error();
    compiled.lua_ = std::move(*lua);
  }
  return compiled;
}

base::Expected<bool> CompiledPattern::matches(const protocols::Event& event) {
  if (event.kind != pattern_.event) return false;
  const auto* kind = event_kind(event.kind);
  for (const auto& matcher : pattern_.matchers) {
    if (is_lane(matcher.path, kind)) {
      const Value lane = event.lane;
      if (!matches_one(matcher, &lane)) return false;
    } else if (!matches_one(matcher, at_path(event.attrs, matcher.path))) {
      return false;
    }
  }
  if (!lua_) return true;
  auto globals = event.attrs.is_object() ? event.attrs : Value::object();
  globals["lane"] = event.lane;
  if (kind != nullptr && kind->lane == "service") globals["service"] = event.lane;
  const auto result = lua_->evaluate(globals);
  if (!result) return result.error();
  return is_true(*result);
}

std::optional<std::string> CompiledPattern::key(const protocols::Event& event) const {
  if (pattern_.key.empty()) return "";
  if (is_lane(pattern_.key, event_kind(event.kind))) return event.lane;
  const auto* value = at_path(event.attrs, pattern_.key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  return as_text(*value);
}

bool is_true(const Value& result) { return !result.is_null() && !(result.is_boolean() && !result.get<bool>()); }

base::Expected<std::string> expand(const std::string& text, const Value& variables) {
  if (text.find("${") == std::string::npos) return text;
  const auto parts = split_template(text);
  if (!parts) return parts.error();
  std::string out;
  for (const auto& part : *parts) {
    if (!part.reference) {
      out += part.text;
      continue;
    }
    const auto dot = part.text.find('.');
    const auto* value = at_path(variables, {part.text});
    if (value == nullptr && dot != std::string::npos) {
      std::vector<std::string> path;
      for (std::size_t from = 0; from <= part.text.size();) {
        const auto to = std::min(part.text.find('.', from), part.text.size());
        path.push_back(part.text.substr(from, to - from));
        from = to + 1;
      }
      value = at_path(variables, path);
    }
    if (value == nullptr) {
      std::vector<std::string> known;
      if (variables.is_object())
        for (const auto& [name, unused] : variables.items()) known.push_back(name);
      const auto near = base::nearest(part.text, known);
      return base::Error{base::ErrorCode::bad_input,
                         "${" + part.text + "} is not known here" +
                             (near            ? "; did you mean ${" + *near + "}?"
                              : known.empty() ? ""
                                              : "; known: " + base::join_names(known)),
                         {}};
    }
    out += as_text(*value);
  }
  return out;
}

base::Expected<std::string> expand_json(const std::string& json, const Value& variables) {
  const auto parts = split_template(json);
  if (!parts) return parts.error();
  std::string out;
  bool in_string = false;
  for (const auto& part : *parts) {
    if (!part.reference) {
      for (std::size_t i = 0; i < part.text.size(); ++i) {
        if (in_string && part.text[i] == '\\')
          ++i;  // the escaped character ends nothing
        else if (part.text[i] == '"')
          in_string = !in_string;
      }
      out += part.text;
      continue;
    }
    const auto filled = expand("${" + part.text + "}", variables);
    if (!filled) return filled.error();
    const auto* value = at_path(variables, {part.text});
    if (!in_string) {
      out += value != nullptr ? value->dump(-1, ' ', false, Value::error_handler_t::replace) : *filled;
      continue;
    }
    const auto quoted = Value(*filled).dump(-1, ' ', false, Value::error_handler_t::replace);
    out += quoted.substr(1, quoted.size() - 2);
  }
  return out;
}

std::vector<Matcher> expand(std::vector<Matcher> matchers, const Value& variables) {
  const auto fill = [&](std::string& text) {
    if (auto filled = expand(text, variables)) text = std::move(*filled);
  };
  for (auto& matcher : matchers) {
    if (matcher.value.is_string()) {
      const auto written = matcher.value.get<std::string>();
      auto& text = matcher.value.get_ref<std::string&>();
      fill(text);
      // A number that was saved is met as a number in one answer and as text in another.
      const auto* whole = written.starts_with("${") && written.ends_with('}')
                              ? at_path(variables, {written.substr(2, written.size() - 3)})
                              : nullptr;
      if (matcher.test == Matcher::Test::equals && whole != nullptr && !whole->is_string()) {
        matcher.test = Matcher::Test::one_of;
        matcher.value = Value::array({*whole, text});
      }
    }
    if (matcher.value.is_array())
      for (auto& one : matcher.value)
        if (one.is_string()) fill(one.get_ref<std::string&>());
    if (matcher.test == Matcher::Test::regex) fill(matcher.regex);
    matcher.nested = expand(std::move(matcher.nested), variables);
  }
  return matchers;
}

}  // namespace leafcutter::scenarios
