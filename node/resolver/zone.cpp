#include "node/resolver/zone.hpp"

#include <algorithm>
namespace leafcutter::node::resolver {
namespace {

using namespace protocols;

/// Nothing of a leaf is worth keeping: the next lookup is to be seen, too.
constexpr DnsNegative at_once{0, {}};
constexpr std::uint8_t opcode_query = 0;
constexpr std::uint8_t bad_version = 1;  ///< BADVERS is 16: the upper bits of the response code

/// "4.3.2.1.in-addr.arpa" of four bytes; of sixteen, their hexadecimal digits below "ip6.arpa" (RFC 3596).
DnsName reverse_name(const std::string& bytes) {
  std::string text;
  if (bytes.size() == 16) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte) {
      const unsigned both = static_cast<unsigned char>(*byte);
      for (const auto half : {both & 0xfu, both >> 4u}) {
        text += digits[half];
        text += '.';
      }
    }
    return *DnsName::from_text(text + "ip6.arpa");
  }
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte)
    text += std::to_string(static_cast<unsigned char>(*byte)) + ".";
  return *DnsName::from_text(text + "in-addr.arpa");
}

DnsMessage failure(const DnsMessage& query, std::uint8_t rcode) {
  auto reply = dns_failure(query, rcode);
  if (reply) return *reply;
  // EDNS that cannot be read.
  auto plain = query;
  plain.additional.clear();
  return *dns_failure(plain, dns_rcode::format_error);
}

/// The name as every spelling of it compares.
std::string folded(const DnsName& name) {
  auto wire = name.wire();
  for (auto& byte : wire)
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  return wire;
}

}  // namespace

Zone::Zone(const std::map<std::string, std::vector<std::string>>& addresses) {
  const auto add = [&](const std::string& text, const std::string& address) {
    const auto name = DnsName::from_text(text);
    const auto bytes = parse_dns_address(address);
    if (!name || !bytes) return;
    addresses_[folded(*name)].push_back(*bytes);
    names_.emplace(folded(reverse_name(bytes->bytes)), *name);
  };
  for (const auto& [name, all] : addresses)
    for (const auto& address : all) add(name, address);
  for (const auto* address : {"127.0.0.1", "::1"}) add("localhost", address);
}

std::optional<DnsMessage> Zone::answer(const DnsMessage& query) const {
  if (query.response) return std::nullopt;
  const auto edns = edns_of(query);
  if (!edns || query.questions.size() != 1) return failure(query, dns_rcode::format_error);
  if (*edns && (*edns)->version > 0) {
    auto reply = failure(query, dns_rcode::no_error);
    DnsEdns own;
    own.extended_rcode = bad_version;
    reply.additional = {*to_record(own)};
    return reply;
  }
  if (query.opcode != opcode_query) return failure(query, dns_rcode::not_implemented);
  const auto asked = query.questions.front().class_number;
  if (asked != dns_class::in && asked != dns_class::any) return failure(query, dns_rcode::refused);
  auto reply = known(query);
  reply.authoritative = true;
  return reply;
}

DnsMessage Zone::known(const DnsMessage& query) const {
  const auto& question = query.questions.front();
  const auto name = folded(question.name);
  base::Expected<DnsMessage> reply = dns_negative(query, dns_rcode::name_error, at_once);
  if (const auto found = addresses_.find(name); found != addresses_.end()) {
    reply = dns_addresses(query, found->second, 0, at_once);
  } else if (const auto reverse = names_.find(name); reverse != names_.end()) {
    const bool wanted = question.type == dns_type::ptr || question.type == dns_type::any;
    reply = wanted ? dns_failure(query, dns_rcode::no_error) : dns_negative(query, dns_rcode::no_error, at_once);
    if (reply && wanted)
      reply->answers.push_back({question.name, dns_type::ptr, dns_class::in, 0, reverse->second.wire()});
  }
  return reply ? *reply : failure(query, dns_rcode::server_failure);
}

std::optional<std::string> format_error(std::string_view bytes) {
  constexpr unsigned char response = 0x80, kept = 0x79;  // opcode and RD
  if (bytes.size() < dns_header_bytes || (static_cast<unsigned char>(bytes[2]) & response) != 0) return std::nullopt;
  std::string reply(dns_header_bytes, '\0');
  reply[0] = bytes[0];
  reply[1] = bytes[1];
  reply[2] = static_cast<char>((static_cast<unsigned char>(bytes[2]) & kept) | response);
  reply[3] = static_cast<char>(response | dns_rcode::format_error);  // RA
  return reply;
}

}  // namespace leafcutter::node::resolver
