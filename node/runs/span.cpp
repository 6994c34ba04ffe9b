#include "node/runs/span.hpp"

#include <charconv>
#include <cmath>
#include <vector>

namespace leafcutter::node::runs {
namespace {

struct SpanUnit {
  std::vector<std::string_view> names;
  double nanoseconds;
};

const std::vector<SpanUnit>& span_units() {
  static const std::vector<SpanUnit> units = {
      {{"nanos", "nsec", "ns"}, 1},
      {{"usec", "us"}, 1e3},
      {{"millis", "msec", "ms"}, 1e6},
      {{"seconds", "second", "secs", "sec", "s"}, 1e9},
      {{"minutes", "minute", "mins", "min", "m"}, 60e9},
      {{"hours", "hour", "hrs", "hr", "h"}, 3600e9},
      {{"days", "day", "d"}, 86'400e9},
      {{"weeks", "week", "w"}, 7 * 86'400e9},
      {{"months", "month", "M"}, 2'630'016e9},
      {{"years", "year", "y"}, 31'557'600e9},
  };
  return units;
}

constexpr double century = 100 * 31'557'600e9;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_numeral(char c) { return (c >= '0' && c <= '9') || c == '.'; }

std::string_view cut_while(std::string_view& text, bool (*wanted)(char)) {
  std::size_t size = 0;
  while (size < text.size() && wanted(text[size])) ++size;
  const auto head = text.substr(0, size);
  text.remove_prefix(size);
  return head;
}

double unit_named(std::string_view name) {
  for (const auto& unit : span_units())
    for (const auto known : unit.names)
      if (name == known) return unit.nanoseconds;
  return 0;
}

std::string made_span_pattern() {
  std::string unit;
  for (const auto& one : span_units())
    for (const auto name : one.names) unit += (unit.empty() ? "" : "|") + std::string(name);
  unit = "[ \\t\\n\\r]*(" + unit + ")";
  const std::string any = "([0-9]+([.][0-9]+)?" + unit + "[ \\t\\n\\r]*)*";
  const std::string some = "([0-9]*[1-9][0-9]*([.][0-9]+)?|[0-9]+[.][0-9]*[1-9][0-9]*)" + unit;
  return "^[ \\t\\n\\r]*" + any + some + "[ \\t\\n\\r]*" + any + "$";
}

}  // namespace

const std::string& span_pattern() {
  static const auto pattern = made_span_pattern();
  return pattern;
}

base::Expected<std::chrono::nanoseconds> parse_span(std::string_view text) {
  const auto bad = [&](const std::string& why) {
    return base::Error{base::ErrorCode::bad_input, "\"" + std::string(text) + "\" " + why};
  };
  double total = 0;
  auto rest = text;
  cut_while(rest, is_blank);
  while (!rest.empty()) {
    const auto digits = cut_while(rest, is_numeral);
    cut_while(rest, is_blank);
    const auto unit = unit_named(cut_while(rest, [](char c) { return !is_numeral(c) && !is_blank(c); }));
    cut_while(rest, is_blank);
    double count = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || unit == 0)
      return bad("is not " + std::string(span_noun));
    total += count * unit;
  }
  if (total > century) return bad("is longer than a century");
  if (total < 1) return bad("is shorter than a nanosecond");
  return std::chrono::nanoseconds(std::llround(total));
}

}  // namespace leafcutter::node::runs
