// Domain names (RFC 1035 §3.1) as values: their form on the wire without compression, their text, and how they
// compare.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace leafcutter::protocols {

inline constexpr std::size_t dns_name_limit = 255;  ///< bytes on the wire, lengths and the root included
inline constexpr std::size_t dns_label_limit = 63;  ///< bytes

/// Always valid: labels of 1 to 63 bytes (any bytes), 255 bytes in all. The case of letters is kept; operator== sees
/// it, same_name() does not.
class DnsName {
 public:
  DnsName() : wire_(1, '\0') {}  ///< the root

  /// "shop.internal", with or without a final dot; "." is the root. `\.` and `\DDD` (decimal) stand for a byte inside a
  /// label. Errors: bad_input.
  static base::Expected<DnsName> from_text(std::string_view text);

  /// `wire` is one whole name without pointers, its root included. Errors: protocol.
  static base::Expected<DnsName> from_wire(std::string_view wire);

  const std::string& wire() const { return wire_; }

  /// What from_text reads back to the same name; no final dot, except for the root.
  std::string text() const;

  bool is_root() const { return wire_.size() == 1; }
  DnsName parent() const;  ///< without the first label; the root's parent is the root

  friend bool operator==(const DnsName&, const DnsName&) = default;

 private:
  explicit DnsName(std::string wire) : wire_(std::move(wire)) {}
  std::string wire_;
};

/// Without regard to the case of ASCII letters (RFC 4343): resolvers vary it at random ("0x20") against forged answers.
bool same_name(const DnsName& a, const DnsName& b);

/// Whether `name` is `zone` or lies below it.
bool at_or_below(const DnsName& name, const DnsName& zone);

}  // namespace leafcutter::protocols
