#include "protocols/dns_name.hpp"

#include <algorithm>
#include <utility>

namespace leafcutter::protocols {
namespace {

base::Error bad_dns_name(std::string_view text, const std::string& why) {
  return {base::ErrorCode::bad_input, "`" + std::string(text) + "` is not a domain name: " + why, {}};
}

/// Lengths are at most 63 and 'A' is 65, so whole wire forms can be folded byte by byte.
char folded_dns(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_dns_bytes(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return folded_dns(x) == folded_dns(y); });
}

bool is_dns_digit(char c) { return c >= '0' && c <= '9'; }

/// The byte that `text` means at `at`, escapes resolved; moves `at` past it.
base::Expected<char> dns_text_byte(std::string_view text, std::size_t& at) {
  const char c = text[at++];
  if (c == '\\') {
    if (at == text.size()) return bad_dns_name(text, "it ends in a backslash");
    if (!is_dns_digit(text[at])) return text[at++];
    if (text.size() - at < 3 || !is_dns_digit(text[at + 1]) || !is_dns_digit(text[at + 2]))
      return bad_dns_name(text, "`\\` and a digit stand for a byte in three decimal digits, such as \\032");
    const int value = (text[at] - '0') * 100 + (text[at + 1] - '0') * 10 + (text[at + 2] - '0');
    if (value > 255) return bad_dns_name(text, "a byte is at most \\255");
    at += 3;
    return static_cast<char>(value);
  }
  if (static_cast<unsigned char>(c) >= 0x80)
    return bad_dns_name(text, "names are ASCII on the wire; write the encoded form, which begins with `xn--`");
  if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
    return bad_dns_name(text, "it holds a space or a control character; such a byte is written \\032");
  return c;
}

}  // namespace

base::Expected<DnsName> DnsName::from_text(std::string_view text) {
  if (text.empty()) return bad_dns_name(text, "it is empty; the root is written `.`");
  if (text == ".") return DnsName();
  std::string wire, label;
  const auto end_label = [&]() -> base::Status {
    if (label.empty()) return bad_dns_name(text, "a part between two dots is empty");
    if (label.size() > dns_label_limit)
      return bad_dns_name(text, "the part `" + label.substr(0, 16) + "...` has " + std::to_string(label.size()) +
                                    " bytes; at most 63 are possible");
    wire += static_cast<char>(label.size());
    wire += label;
    label.clear();
    return base::ok();
  };
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '.') {
      ++at;
      if (auto ended = end_label(); !ended) return ended.error();
      continue;
    }
    const auto byte = dns_text_byte(text, at);
    if (!byte) return byte.error();
    label += *byte;
  }
  if (!label.empty()) {
    if (auto ended = end_label(); !ended) return ended.error();
  }
  wire += '\0';
  if (wire.size() > dns_name_limit)
    return bad_dns_name(text.substr(0, 40),
                        "it takes " + std::to_string(wire.size()) + " bytes on the wire; at most 255 are possible");
  return DnsName(std::move(wire));
}

base::Expected<DnsName> DnsName::from_wire(std::string_view wire) {
  const auto refused = [](const char* why) {
    return base::Error{base::ErrorCode::protocol, std::string("not a name on the wire: ") + why, {}};
  };
  if (wire.size() > dns_name_limit) return refused("longer than 255 bytes");
  std::size_t at = 0;
  while (at < wire.size() && wire[at] != '\0') {
    const auto length = static_cast<unsigned char>(wire[at]);
    if (length > dns_label_limit) return refused("a label is longer than 63 bytes, or a pointer");
    at += 1u + length;
  }
  if (at + 1 != wire.size()) return refused("it does not end with the root");
  return DnsName(std::string(wire));
}

std::string DnsName::text() const {
  if (is_root()) return ".";
  std::string out;
  for (std::size_t at = 0; wire_[at] != '\0';) {
    const std::size_t length = static_cast<unsigned char>(wire_[at++]);
    if (!out.empty()) out += '.';
    for (const auto end = at + length; at < end; ++at) {
      const auto c = static_cast<unsigned char>(wire_[at]);
      if (c <= ' ' || c >= 0x7f) {
        out += '\\';
        for (const int digit : {c / 100, c / 10 % 10, c % 10}) out += static_cast<char>('0' + digit);
      } else {
        if (c == '.' || c == '\\') out += '\\';
        out += static_cast<char>(c);
      }
    }
  }
  return out;
}

DnsName DnsName::parent() const {
  return is_root() ? DnsName() : DnsName(wire_.substr(1 + static_cast<std::size_t>(wire_[0])));
}

bool same_name(const DnsName& a, const DnsName& b) { return same_dns_bytes(a.wire(), b.wire()); }

bool at_or_below(const DnsName& name, const DnsName& zone) {
  // Only a suffix that begins at a label counts: "notexample" does not lie below "example".
  std::string_view rest = name.wire();
  while (rest.size() > zone.wire().size()) rest.remove_prefix(1 + static_cast<std::size_t>(rest[0]));
  return same_dns_bytes(rest, zone.wire());
}

}  // namespace leafcutter::protocols
