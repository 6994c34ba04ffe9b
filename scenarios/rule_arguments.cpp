#include "scenarios/rule_arguments.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "scenarios/rule_terms.hpp"

namespace leafcutter::scenarios::rules {
namespace {

/// The kind with something for each parameter that it must be given.
std::string usage(const FaultKind& kind) {
  auto out = kind.name;
  for (const auto& parameter : kind.parameters) {
    if (!parameter.required || parameter.type == FaultParameter::Type::names) continue;
    out += out == kind.name ? ":" : ",";
    switch (parameter.type) {
      case FaultParameter::Type::duration: out += "2s"; break;
      case FaultParameter::Type::error_name: out += "EIO"; break;
      case FaultParameter::Type::decimal: out += "0.1"; break;
      default: out += std::to_string(std::max<std::uint64_t>(parameter.least, 100));
    }
  }
  return out;
}

}  // namespace

Value argument_value(const FaultParameter& parameter, const std::string& text) {
  if (parameter.type == FaultParameter::Type::count) {
    const auto number = size_in(text);
    return number ? Value(*number) : Value(text);
  }
  if (parameter.type == FaultParameter::Type::duration) {
    const auto duration = base::parse_duration(text);
    return duration ? base::format_duration(*duration) : text;
  }
  if (parameter.type != FaultParameter::Type::error_name) return text;
  const auto digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && error_number(text) != 0 ? error_name(error_number(text)) : text;
}

std::vector<Piece> pieces_of(const Word& word, std::size_t from, char separator) {
  std::vector<Piece> pieces;
  for (;;) {
    const auto to = std::min(word.value.find(separator, from), word.value.size());
    pieces.push_back({word.value.substr(from, to - from), word.places[from]});
    if (to == word.value.size()) return pieces;
    from = to + 1;
  }
}

bool take_given(const FaultKind& kind, const Word& word, std::size_t next, Value& params, Mistake& mistake) {
  const auto wrong = [&](std::size_t at, std::size_t bytes, const std::string& message) {
    mistake = {message, at, bytes};
    return false;
  };
  std::vector<Piece> arguments;
  if (const auto colon = word.value.find(':'); colon != std::string::npos) arguments = pieces_of(word, colon + 1, ',');
  for (const auto& argument : arguments) {
    if (next == kind.parameters.size() || kind.parameters[next].type == FaultParameter::Type::event)
      return wrong(argument.at, argument.text.size(),
                   "\"" + kind.name + "\" takes " +
                       (next == 0   ? "no argument"
                        : next == 1 ? "one argument"
                                    : std::to_string(next) + " arguments") +
                       "; found \"" + argument.text + "\" beyond");
    const auto& parameter = kind.parameters[next++];
    if (argument.text.empty() && !parameter.required && &argument != &arguments.back()) continue;
    auto& value = params[parameter.name] = argument_value(parameter, argument.text);
    if (const auto checked = check_param(kind, parameter, value); !checked)
      return wrong(argument.at, argument.text.size(),
                   checked.error().message +
                       (parameter.type == FaultParameter::Type::count ? ", found \"" + argument.text + "\"" : ""));
  }
  return true;
}

bool has_required(const FaultKind& kind, const Word& word, const Value& params, Mistake& mistake) {
  for (const auto& parameter : kind.parameters) {
    if (!parameter.required || parameter.type == FaultParameter::Type::names || params.contains(parameter.name))
      continue;
    mistake = {"\"" + kind.name + "\" needs an argument, " + parameter.about + ": write " + usage(kind),
               word.value_at(), word.value_bytes()};
    return false;
  }
  return true;
}

bool take_arguments(const FaultKind& kind, const Word& word, std::size_t next, Value& params, Mistake& mistake) {
  return take_given(kind, word, next, params, mistake) && has_required(kind, word, params, mistake);
}

}  // namespace leafcutter::scenarios::rules
