#include "protocols/dns_reply.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

namespace leafcutter::protocols {
namespace {

constexpr std::uint16_t dns_cookie_option = 10;
/// A client's part is 8 bytes; with the server's it is 16 to 40. A client's part alone must not be sent back.
constexpr std::size_t shortest_whole_dns_cookie = 16, longest_dns_cookie = 40;

base::Error unfit_dns(const std::string& why) {
  return {base::ErrorCode::protocol, "nothing can be made of this DNS message: " + why, {}};
}

void put_dns_u32(std::string& out, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(value >> shift & 0xff);
}

base::Expected<DnsMessage> dns_reply_to(const DnsMessage& query) {
  if (query.response) return unfit_dns("it is an answer itself");
  const auto edns = edns_of(query);
  if (!edns) return edns.error();
  DnsMessage reply;
  reply.id = query.id;
  reply.response = true;
  reply.opcode = query.opcode;
  reply.recursion_desired = query.recursion_desired;
  reply.recursion_available = true;
  reply.checking_disabled = query.checking_disabled;
  reply.questions = query.questions;
  if (*edns) {
    DnsEdns own;
    own.udp_payload = (*edns)->udp_payload;
    own.dnssec_ok = (*edns)->dnssec_ok;
    for (const auto& option : (*edns)->options) {
      const auto size = option.data.size();
      if (option.code == dns_cookie_option && size >= shortest_whole_dns_cookie && size <= longest_dns_cookie)
        own.options.push_back(option);
    }
    auto record = to_record(own);
    if (!record) return record.error();
    reply.additional.push_back(std::move(*record));
  }
  return reply;
}

base::Expected<DnsMessage> dns_reply_to_question(const DnsMessage& query) {
  if (query.questions.size() != 1)
    return unfit_dns("it has " + std::to_string(query.questions.size()) + " questions instead of one");
  return dns_reply_to(query);
}

/// The zone's SOA record; its contact and timers are made up, only what negative caching reads is not.
base::Expected<DnsRecord> negative_dns_soa(const DnsName& asked, const DnsNegative& negative) {
  const auto zone = negative.zone.value_or(asked.parent());
  if (!at_or_below(asked, zone))
    return base::Error{base::ErrorCode::bad_input,
                       "the zone `" + zone.text() + "` does not hold `" + asked.text() +
                           "`, and a client may not believe a negative answer from it; name a zone above it, or none",
                       {}};
  DnsRecord soa{zone, dns_type::soa, dns_class::in, negative.ttl, {}};
  soa.data = zone.wire();
  soa.data += std::string_view("\6nobody\7invalid\0", 16);
  for (const std::uint32_t value : {1u, 3600u, 600u, 86400u, negative.ttl}) put_dns_u32(soa.data, value);
  return soa;
}

bool dns_asks_for(const DnsQuestion& question, std::uint16_t type) {
  if (question.class_number != dns_class::in && question.class_number != dns_class::any) return false;
  return question.type == type || question.type == dns_type::any;
}

bool signs_dns_message(const DnsTtlField& field) {
  return field.type == dns_type::tsig || (field.type == dns_type::sig && field.covered_type == 0);
}

std::uint16_t first_dns_u16(std::string_view data) {
  if (data.size() < 2) return 0xffff;
  return static_cast<std::uint16_t>(static_cast<unsigned char>(data[0]) << 8 | static_cast<unsigned char>(data[1]));
}

base::Error signed_dns(const std::string& what) {
  return {base::ErrorCode::unavailable,
          what +
              " of a DNS message that is signed as a whole (TSIG, SIG(0)) cannot be changed: its receiver would refuse "
              "it; a failure or a delay can strike it",
          {}};
}

}  // namespace

base::Expected<DnsMessage> dns_failure(const DnsMessage& query, std::uint8_t rcode) {
  auto reply = dns_reply_to(query);
  if (reply) reply->rcode = rcode;
  return reply;
}

base::Expected<DnsMessage> dns_truncation(const DnsMessage& query) {
  auto reply = dns_reply_to(query);
  if (reply) reply->truncated = true;
  return reply;
}

base::Expected<DnsMessage> dns_negative(const DnsMessage& query, std::uint8_t rcode, const DnsNegative& negative) {
  auto reply = dns_reply_to_question(query);
  if (!reply) return reply;
  auto soa = negative_dns_soa(query.questions.front().name, negative);
  if (!soa) return soa.error();
  // A record belongs to the class that was asked for, or it is no part of the answer.
  if (query.questions.front().class_number != dns_class::any) soa->class_number = query.questions.front().class_number;
  reply->rcode = rcode;
  reply->authorities.push_back(std::move(*soa));
  return reply;
}

base::Expected<DnsAddress> parse_dns_address(std::string_view text) {
  const std::string terminated(text);
  for (const int family : {AF_INET, AF_INET6}) {
    std::array<char, 16> bytes = {};
    // inet_pton stops at a NUL byte; what is behind one was not read.
    if (terminated.find('\0') == std::string::npos && inet_pton(family, terminated.c_str(), bytes.data()) == 1)
      return DnsAddress{std::string(bytes.data(), family == AF_INET ? 4 : 16)};
  }
  return base::Error{base::ErrorCode::bad_input,
                     "`" + terminated + "` is not an IP address; write one such as 192.0.2.1 or 2001:db8::1",
                     {}};
}

std::string to_text(const DnsAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const int family = address.bytes.size() == 4 ? AF_INET : AF_INET6;
  std::string bytes = address.bytes;
  bytes.resize(16);
  return inet_ntop(family, bytes.data(), text.data(), text.size()) != nullptr ? text.data() : "";
}

base::Expected<DnsMessage> dns_addresses(const DnsMessage& query, const std::vector<DnsAddress>& addresses,
                                         std::uint32_t ttl, const DnsNegative& negative) {
  auto reply = dns_reply_to_question(query);
  if (!reply) return reply;
  const auto& question = query.questions.front();
  for (const auto& address : addresses) {
    const auto type = address.bytes.size() == 4 ? dns_type::a : dns_type::aaaa;
    if (dns_asks_for(question, type))
      reply->answers.push_back({question.name, type, dns_class::in, ttl, address.bytes});
  }
  if (reply->answers.empty()) return dns_negative(query, dns_rcode::no_error, negative);
  return reply;
}

base::Expected<DnsMessage> dns_random_address(const DnsMessage& query, const std::array<std::uint8_t, 16>& random,
                                              std::uint32_t ttl, const DnsNegative& negative) {
  return dns_addresses(query, dns_nobodys_addresses(random), ttl, negative);
}

std::vector<DnsAddress> dns_nobodys_addresses(const std::array<std::uint8_t, 16>& random) {
  DnsAddress v4, v6;
  for (const auto byte : random) v6.bytes += static_cast<char>(byte);
  v4.bytes = v6.bytes.substr(0, 4);
  v4.bytes[0] = static_cast<char>(198);
  v4.bytes[1] = static_cast<char>(18 | (random[1] & 1));
  v6.bytes.replace(0, 4, "\x20\x01\x0d\xb8");
  return {v4, v6};
}

base::Expected<std::size_t> dns_replace_addresses(DnsMessage& answer, const std::vector<DnsAddress>& addresses) {
  for (const auto& record : answer.additional)
    if (signs_dns_message({0, record.type, first_dns_u16(record.data)})) return signed_dns("the addresses");
  std::size_t changed = 0, next_v4 = 0, next_v6 = 0;
  for (auto& record : answer.answers) {
    const bool v4 = record.type == dns_type::a && record.data.size() == 4;
    if (record.class_number != dns_class::in || !(v4 || (record.type == dns_type::aaaa && record.data.size() == 16)))
      continue;
    const auto fitting = std::count_if(addresses.begin(), addresses.end(), [&](const DnsAddress& address) {
      return address.bytes.size() == record.data.size();
    });
    if (fitting == 0) continue;
    auto& next = v4 ? next_v4 : next_v6;
    auto skip = next++ % static_cast<std::size_t>(fitting);
    const auto chosen = std::find_if(addresses.begin(), addresses.end(), [&](const DnsAddress& address) {
      return address.bytes.size() == record.data.size() && skip-- == 0;
    });
    record.data = chosen->bytes;
    ++changed;
  }
  return changed;
}

DnsMessage dns_truncate(DnsMessage answer) {
  answer.truncated = true;
  answer.answers.clear();
  answer.authorities.clear();
  answer.trailing.clear();
  std::erase_if(answer.additional, [](const DnsRecord& record) { return record.type != dns_type::opt; });
  return answer;
}

std::size_t dns_udp_limit(const DnsMessage& query) {
  constexpr std::size_t without_edns = 512;
  const auto edns = edns_of(query);
  if (!edns || !*edns) return without_edns;
  return std::max<std::size_t>(without_edns, (*edns)->udp_payload);
}

base::Expected<std::string> encode_dns_datagram(const DnsMessage& answer, std::size_t limit) {
  auto bytes = encode_dns(answer);
  if (!bytes || bytes->size() <= limit) return bytes;
  return encode_dns(dns_truncate(answer));
}

base::Expected<std::size_t> dns_set_ttls(std::string& message, std::uint32_t ttl) {
  const auto fields = dns_ttl_fields(message);
  if (!fields) return fields.error();
  if (std::any_of(fields->begin(), fields->end(), signs_dns_message)) return signed_dns("the TTLs");
  auto expected = parse_dns(message);
  if (!expected) return expected.error();
  for (auto* section : {&expected->answers, &expected->authorities, &expected->additional}) {
    for (auto& record : *section)
      if (record.type != dns_type::opt) record.ttl = ttl;
  }
  std::string bytes;
  put_dns_u32(bytes, ttl);
  std::string changed = message;
  std::size_t written = 0;
  for (const auto& field : *fields) {
    if (field.type == dns_type::opt) continue;
    changed.replace(field.offset, bytes.size(), bytes);
    ++written;
  }
  // A pointer may lead to any earlier byte, so a crafted name can take its labels from a TTL.
  const auto again = parse_dns(changed);
  if (!again || *again != *expected) return unfit_dns("a name in it points into a TTL");
  message = std::move(changed);
  return written;
}

std::uint16_t dns_other_id(std::uint16_t id, std::uint16_t random) {
  return static_cast<std::uint16_t>(id ^ (random == 0 ? 1 : random));
}

base::Status dns_set_id(std::string& message, std::uint16_t id) {
  if (message.size() < dns_header_bytes)
    return base::Error{base::ErrorCode::protocol,
                       "a DNS message of " + std::to_string(message.size()) + " bytes; its header alone has 12",
                       {}};
  message[0] = static_cast<char>(id >> 8);
  message[1] = static_cast<char>(id & 0xff);
  return base::ok();
}

}  // namespace leafcutter::protocols
