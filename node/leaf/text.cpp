#include "node/leaf/text.hpp"

#include <algorithm>

namespace leafcutter::node {
namespace {

/// Length of the well-formed UTF-8 sequence at the front (Unicode 15, table 3-7); 0 when there is none.
std::size_t sequence(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto lead = at(0);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned char low = 0x80, high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  }
  if (length == 0 || bytes.size() < length || at(1) < low || at(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (at(i) < 0x80 || at(i) > 0xbf) return 0;
  return length;
}

}  // namespace

std::string clean_text(std::string_view bytes, std::size_t limit) {
  std::string out;
  out.reserve(std::min(bytes.size(), limit));
  while (!bytes.empty()) {
    const auto length = sequence(bytes);
    const std::string_view piece = length > 0 ? bytes.substr(0, length) : std::string_view("\xef\xbf\xbd");
    if (out.size() + piece.size() > limit) break;
    out += piece;
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string last_line(std::string_view text) {
  const auto end = text.find_last_not_of("\n\r \t");
  if (end == std::string_view::npos) return "";
  text = text.substr(0, end + 1);
  const auto begin = text.find_last_of('\n');
  return clean_text(begin == std::string_view::npos ? text : text.substr(begin + 1), 300);
}

std::string describe(const Ending& ending) {
  if (!ending.error.empty()) return ending.error;
  if (ending.signal != 0) return "killed by signal " + std::to_string(ending.signal);
  return "exit status " + std::to_string(ending.status);
}

}  // namespace leafcutter::node
