// Which questions a DNS fault strikes, as a user says it: by name, exact or everything below one, and by type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "protocols/dns.hpp"

namespace leafcutter::protocols {

/// Which names: one ("redis.internal"), all below one at any depth ("*.internal", which is not "internal" itself), or
/// all ("*").
class DnsPattern {
 public:
  /// Errors: bad_input.
  static base::Expected<DnsPattern> parse(std::string_view text);

  bool matches(const DnsName& name) const;
  std::string text() const;

 private:
  enum class Reach { one, below, all };
  DnsPattern(Reach reach, DnsName name) : reach_(reach), name_(std::move(name)) {}
  Reach reach_;
  DnsName name_;
};

/// Names and types together.
class DnsMatch {
 public:
  /// `name` as DnsPattern::parse reads it; `types` as dns_type_number does, none for all. A type is compared with the
  /// one asked for, so ANY means questions of type ANY alone. Errors: bad_input.
  static base::Expected<DnsMatch> parse(std::string_view name, const std::vector<std::string>& types);

  bool matches(const DnsQuestion& question) const;

 private:
  DnsMatch(DnsPattern name, std::vector<std::uint16_t> types) : name_(std::move(name)), types_(std::move(types)) {}
  DnsPattern name_;
  std::vector<std::uint16_t> types_;
};

}  // namespace leafcutter::protocols
