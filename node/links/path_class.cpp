#include "node/links/path_class.hpp"

#include <algorithm>

namespace leafcutter::node {
namespace {

constexpr std::size_t longest_class = 200;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool hexadecimal(char c) { return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// Eight hexadecimal digits or more with a decimal one among them, groups of them joined by hyphens included.
bool identifier(std::string_view segment) {
  std::size_t digits = 0;
  for (const char c : segment) {
    if (hexadecimal(c))
      ++digits;
    else if (c != '-')
      return false;
  }
  return digits >= 8 && std::any_of(segment.begin(), segment.end(), digit);
}

void append_segment(std::string& out, std::string_view segment) {
  if (identifier(segment)) {
    out += '#';
    return;
  }
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (!digit(segment[i]))
      out += segment[i];
    else if (i == 0 || !digit(segment[i - 1]))
      out += '#';
  }
}

}  // namespace

RequestTarget split_target(std::string_view target) {
  if (const auto scheme = target.find("://"); scheme != std::string_view::npos && scheme < target.find_first_of("/?")) {
    const auto path = target.find_first_of("/?", scheme + 3);
    target = path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  }
  if (const auto fragment = target.find('#'); fragment != std::string_view::npos) target = target.substr(0, fragment);
  const auto question = target.find('?');
  RequestTarget split;
  split.path = std::string(target.substr(0, question));
  if (split.path.empty()) split.path = "/";
  if (question != std::string_view::npos) split.query = std::string(target.substr(question + 1));
  return split;
}

std::string path_class(std::string_view path) {
  std::string out;
  std::size_t at = 0;
  while (at <= path.size() && out.size() < longest_class) {
    const auto slash = std::min(path.find('/', at), path.size());
    append_segment(out, path.substr(at, slash - at));
    if (slash < path.size()) out += '/';
    at = slash + 1;
  }
  if (out.size() > longest_class) out.resize(longest_class);
  return out;
}

}  // namespace leafcutter::node
