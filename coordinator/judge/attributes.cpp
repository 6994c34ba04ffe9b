#include "coordinator/judge/attributes.hpp"

#include <algorithm>

namespace leafcutter::coordinator {

using protocols::Value;

const Value* attribute(const Value& attrs, std::string_view name) {
  if (!attrs.is_object()) return nullptr;
  const auto found = attrs.find(std::string(name));
  return found == attrs.end() ? nullptr : &*found;
}

std::string text_of(const Value& attrs, std::string_view name) {
  const auto* value = attribute(attrs, name);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<std::int64_t> number_of(const Value& attrs, std::string_view name) {
  const auto* value = attribute(attrs, name);
  if (!value || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

std::optional<bool> flag_of(const Value& attrs, std::string_view name) {
  const auto* value = attribute(attrs, name);
  if (!value || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

namespace {

/// Bytes of the well-formed UTF-8 sequence at the front of `text`, or 0.
std::size_t sequence(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  if (length < 3) return length;
  const auto second = static_cast<unsigned char>(text[1]);
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  const bool bad = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
                   (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90);
  return bad ? 0 : length;
}

}  // namespace

std::string valid_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto length = sequence(text);
    if (length == 0)
      out += "\xef\xbf\xbd";
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string one_line_text(std::string_view text, std::size_t limit) {
  std::string line;
  line.reserve(std::min(text.size(), limit) + 4);
  while (!text.empty()) {
    const auto length = sequence(text);
    const auto taken = length == 0 ? 1 : length;
    if (line.size() + taken > limit) break;
    if (length == 0)
      line += '?';
    else if (length == 1 && (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f))
      line += ' ';
    else
      line += text.substr(0, length);
    text.remove_prefix(taken);
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return text.empty() ? line : line + "…";
}

}  // namespace leafcutter::coordinator
