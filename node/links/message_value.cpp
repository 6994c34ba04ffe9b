#include "node/links/message_value.hpp"

#include <array>
#include <optional>

namespace leafcutter::node {
namespace {

using protocols::Value;

constexpr std::size_t text_limit = 4 * 1024;
constexpr int deepest = 64;

/// Length of the well-formed UTF-8 sequence at the front; 0: none.
std::size_t sequence(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto follows = [&](std::size_t i, unsigned low, unsigned high) {
    return i < bytes.size() && at(i) >= low && at(i) <= high;
  };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

std::optional<Value> as_json(const protocols::HttpMessage& message) {
  if (message.body_truncated) return std::nullopt;
  const auto first = message.body.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return std::nullopt;
  const bool structured = message.body[first] == '{' || message.body[first] == '[';
  if (!structured && message.header("content-type").find("json") == std::string_view::npos) return std::nullopt;
  // Whoever walks the value later (to encode or compare it) recurses; the depth is bounded here, at the border.
  bool too_deep = false;
  const auto parsed = Value::parse(
      message.body,
      [&too_deep](int depth, Value::parse_event_t, Value&) {
        too_deep = too_deep || depth > deepest;
        return depth <= deepest;
      },
      false);
  if (parsed.is_discarded() || too_deep) return std::nullopt;
  return parsed;
}

}  // namespace

std::string printable(std::string_view bytes, std::size_t limit) {
  static constexpr std::array<char, 16> hex = {'0', '1', '2', '3', '4', '5', '6', '7',
                                               '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::string text;
  while (!bytes.empty()) {
    const auto length = sequence(bytes);
    const auto wide = length == 0 ? 4 : length;
    if (text.size() + wide > limit) break;
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(bytes[0]);
      text += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
      bytes.remove_prefix(1);
    } else {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return text;
}

void add_body(Value& attrs, const protocols::HttpMessage& message) {
  if (message.body.empty()) return;
  if (auto json = as_json(message))
    attrs["json"] = std::move(*json);
  else
    attrs["body"] = printable(message.body, text_limit);
}

}  // namespace leafcutter::node
