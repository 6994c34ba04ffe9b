#include "coordinator/judge/layout.hpp"

#include <algorithm>
#include <cstdio>

#include "coordinator/judge/attributes.hpp"

namespace leafcutter::coordinator {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

void append(std::string& out, const protocols::Value& value, std::size_t limit) {
  if (out.size() > 4 * limit) return;
  if (value.is_object()) {
    out += '{';
    bool first = true;
    for (const auto& [name, field] : value.items()) {
      out += (first ? "" : ", ") + name + ": ";
      append(out, field, limit);
      first = false;
      if (out.size() > 4 * limit) return;
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size() && out.size() <= 4 * limit; ++i) {
      if (i > 0) out += ", ";
      append(out, value[i], limit);
    }
    out += ']';
  } else if (value.is_string()) {
    out += value.get_ref<const std::string&>();
  } else {
    out += value.dump(-1, ' ', false, protocols::Value::error_handler_t::replace);
  }
}

}  // namespace

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string fit(std::string_view text, std::size_t width) {
  if (columns(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t bytes = 0, seen = 0;
  for (; bytes < text.size(); ++bytes)
    if (!continues(text[bytes]) && ++seen == width) break;
  while (bytes > 0 && text[bytes - 1] == ' ') --bytes;
  return std::string(text.substr(0, bytes)) + "…";
}

std::string pad(std::string_view text, std::size_t width) {
  auto out = fit(text, width);
  out.append(width - columns(out), ' ');
  return out;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t lines) {
  std::vector<std::string> out;
  while (!text.empty() && out.size() < lines) {
    if (columns(text) <= width || out.size() + 1 == lines) {
      out.push_back(fit(text, width));
      break;
    }
    std::size_t end = 0, best = 0, seen = 0;
    for (; end < text.size(); ++end) {
      if (!continues(text[end]) && ++seen > width + 1) break;
      if (text[end] == ' ') best = end;
    }
    if (best == 0) best = fit(text, width).size() - std::string_view("…").size();  // one long word
    out.emplace_back(text.substr(0, best));
    text.remove_prefix(best);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  return out;
}

std::string moment(std::chrono::nanoseconds at) {
  char buffer[32];
  const auto us = at.count() / 1000;
  // Whole numbers all the way: the same event is the same text on every host.
  if (us < 1'000'000)
    std::snprintf(buffer, sizeof buffer, "+%lld.%lldms", static_cast<long long>(us / 1000),
                  static_cast<long long>(us % 1000 / 100));
  else
    std::snprintf(buffer, sizeof buffer, "+%lld.%03llds", static_cast<long long>(us / 1'000'000),
                  static_cast<long long>(us / 1000 % 1000));
  return buffer;
}

std::string compact(const protocols::Value& value, std::size_t limit) {
  std::string out;
  append(out, value, limit);
  return fit(one_line_text(out, 4 * limit + 8), limit);
}

}  // namespace leafcutter::coordinator
