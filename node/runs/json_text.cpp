#include "node/runs/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace leafcutter::node::runs {
namespace {

/// The value of four hex digits after "\u" at `at`; -1: there is no such escape.
int unit_at(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int unit = 0;
  const auto* digits = text.data() + at + 2;
  const auto [end, error] = std::from_chars(digits, digits + 4, unit, 16);
  return error == std::errc{} && end == digits + 4 ? unit : -1;
}

std::string utf8_of(std::uint32_t code) {
  const auto tail = [](std::uint32_t bits) { return static_cast<char>(0x80 | (bits & 0x3F)); };
  return {static_cast<char>(0xF0 | (code >> 18)), tail(code >> 12), tail(code >> 6), tail(code)};
}

/// "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error while ..." -> from "syntax" on.
std::string readable(const std::string& what) {
  const auto colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

}  // namespace

std::optional<JsonFlaw> json_flaw(std::string_view text) {
  try {
    const auto document = nlohmann::json::parse(text);
    return std::nullopt;
  } catch (const nlohmann::json::parse_error& error) {
    const auto before = text.substr(0, std::min(error.byte > 0 ? error.byte - 1 : 0, text.size()));
    JsonFlaw flaw;
    flaw.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    const auto newline = before.rfind('\n');
    flaw.column = static_cast<int>(newline == std::string_view::npos ? before.size() : before.size() - newline - 1) + 1;
    flaw.message = readable(error.what());
    return flaw;
  } catch (const nlohmann::json::exception& error) {
    return JsonFlaw{1, 1, readable(error.what())};
  }
}

std::string json_as_yaml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!inside) {
      inside = text[i] == '"';
      out += text[i];
      continue;
    }
    const int high = unit_at(text, i), low = unit_at(text, i + 6);
    if (high >= 0xD800 && high < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
      out += utf8_of(0x10000 + (static_cast<std::uint32_t>(high - 0xD800) << 10) +
                     static_cast<std::uint32_t>(low - 0xDC00));
      i += 11;
    } else if (text[i] == '\\' && i + 1 < text.size()) {
      out += text.substr(i, 2);
      ++i;
    } else {
      inside = text[i] != '"';
      out += text[i];
    }
  }
  return out;
}

}  // namespace leafcutter::node::runs
