#include "scenarios/matcher_text.hpp"

#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "scenarios/regex.hpp"

namespace leafcutter::scenarios {
namespace {

int status_class_in(const std::string& text) {
  return text.size() == 3 && text[0] >= '1' && text[0] <= '5' && text.ends_with("xx") ? text[0] - '0' : 0;
}

}  // namespace

Value plain_value(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  const auto* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto read = std::from_chars(text.data(), end, integer); read.ec == std::errc{} && read.ptr == end)
    return integer;
  std::uint64_t large = 0;
  if (const auto read = std::from_chars(text.data(), end, large); read.ec == std::errc{} && read.ptr == end)
    return large;
  const bool numeric = !text.empty() && text.find_first_not_of("0123456789.eE+-") == std::string::npos &&
                       text.find_first_of("0123456789") != std::string::npos;
  double real = 0;
  if (const auto read = std::from_chars(text.data(), end, real);
      numeric && read.ec == std::errc{} && read.ptr == end && std::isfinite(real))
    return real;
  return text;
}

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc{} || read != end) return std::nullopt;
  return number;
}

base::Expected<Matcher> scalar_matcher(const std::string& text, bool plain) {
  Matcher matcher;
  if (plain && status_class_in(text) != 0) {
    matcher.test = Matcher::Test::status_class;
    matcher.status_class = status_class_in(text);
    return matcher;
  }
  if (plain && text.size() > 2 && text.front() == '/' && text.back() == '/')
    return regex_matcher(text.substr(1, text.size() - 2));
  if (const auto dots = text.find(".."); plain && dots != std::string::npos) {
    const auto low = number_in(text.substr(0, dots));
    const auto high = number_in(text.substr(dots + 2));
    if (low && high) return range_matcher(low, high);
  }
  matcher.value = plain ? plain_value(text) : Value(text);
  return matcher;
}

base::Expected<Matcher> regex_matcher(const std::string& regex) {
  if (const auto checked = check_regex(regex); !checked) return checked.error();
  Matcher matcher;
  matcher.test = Matcher::Test::regex;
  matcher.regex = regex;
  return matcher;
}

base::Expected<Matcher> range_matcher(std::optional<double> at_least, std::optional<double> at_most) {
  if (at_least && at_most && *at_least > *at_most)
    return base::Error{base::ErrorCode::bad_input, "nothing lies in this range: it begins above its end", {}};
  Matcher matcher;
  matcher.test = Matcher::Test::range;
  matcher.at_least = at_least;
  matcher.at_most = at_most;
  return matcher;
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= path.size();) {
    const auto to = std::min(path.find('.', from), path.size());
    parts.push_back(path.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

std::string joined_path(const std::vector<std::string>& path) {
  std::string text;
  for (const auto& part : path) text += (text.empty() ? "" : ".") + part;
  return text;
}

std::optional<std::string> near_name(const std::string& word, const std::vector<std::string>& known) {
  return word.size() <= 100 ? base::nearest(word, known) : std::nullopt;
}

std::optional<std::string> nearest_path(const std::vector<std::string>& path, const std::vector<std::string>& names) {
  if (const auto near = near_name(joined_path(path), names)) return near;
  if (path.size() < 2) return std::nullopt;
  auto changed = path;
  const auto near = near_name(path.front(), names);
  if (!near) return std::nullopt;
  changed.front() = *near;
  return joined_path(changed);
}

}  // namespace leafcutter::scenarios
