#include "scenarios/rule_arguments.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "scenarios/rule_terms.hpp"

namespace leafcutter::scenarios::rules {
namespace {

std::string usage(const FaultKind& kind) {
  const auto& first = kind.parameters.front();
  switch (first.type) {
    case FaultParameter::Type::duration: return kind.name + ":2s";
    case FaultParameter::Type::error_name: return kind.name + ":EIO";
    default: return kind.name + ":" + std::to_string(std::max<std::uint64_t>(first.least, 100));
  }
}

/// As it will be checked and kept: one text for one meaning.
Value argument_value(const FaultParameter& parameter, const std::string& text) {
  if (parameter.type == FaultParameter::Type::count) {
    const auto number = size_in(text);
    return number ? Value(*number) : Value(text);
  }
  if (parameter.type == FaultParameter::Type::duration) {
    const auto duration = base::parse_duration(text);
    return duration ? base::format_duration(*duration) : text;
  }
  const auto digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && error_number(text) != 0 ? error_name(error_number(text)) : text;
}

}  // namespace

std::vector<Piece> pieces_of(const Word& word, std::size_t from, char separator) {
  std::vector<Piece> pieces;
  for (;;) {
    const auto to = std::min(word.value.find(separator, from), word.value.size());
    pieces.push_back({word.value.substr(from, to - from), word.places[from]});
    if (to == word.value.size()) return pieces;
    from = to + 1;
  }
}

bool take_arguments(const FaultKind& kind, const Word& word, std::size_t next, Value& params, Mistake& mistake) {
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
    auto& value = params[parameter.name] = argument_value(parameter, argument.text);
    if (const auto checked = check_param(kind, parameter, value); !checked)
      return wrong(argument.at, argument.text.size(),
                   checked.error().message +
                       (parameter.type == FaultParameter::Type::count ? ", found \"" + argument.text + "\"" : ""));
  }
  for (; next < kind.parameters.size(); ++next)
    if (kind.parameters[next].required)
      return wrong(
          word.value_at(), word.value_bytes(),
          "\"" + kind.name + "\" needs an argument, " + kind.parameters[next].about + ": write " + usage(kind));
  return true;
}

}  // namespace leafcutter::scenarios::rules
