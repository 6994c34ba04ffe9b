// DNS messages (RFC 1035 §4) <-> typed values, with EDNS (RFC 6891). Reads bytes from anybody: every offset is checked,
// and what is not understood (types, classes, EDNS options, bytes behind the last record) is kept as it came. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "protocols/dns_name.hpp"
#include "protocols/dns_type.hpp"

namespace leafcutter::protocols {

inline constexpr std::size_t dns_message_limit = 65535;  ///< bytes
inline constexpr std::size_t dns_header_bytes = 12;

struct DnsQuestion {
  DnsName name;
  std::uint16_t type = dns_type::a;
  std::uint16_t class_number = dns_class::in;
  friend bool operator==(const DnsQuestion&, const DnsQuestion&) = default;
};

struct DnsRecord {
  DnsName name;
  std::uint16_t type = dns_type::a;
  std::uint16_t class_number = dns_class::in;
  std::uint32_t ttl = 0;  ///< seconds; of an OPT record: extended rcode, version and flags instead
  std::string data;       ///< RDATA; the names in it are whole, never pointers
  friend bool operator==(const DnsRecord&, const DnsRecord&) = default;
};

struct DnsMessage {
  std::uint16_t id = 0;
  bool response = false;             ///< QR
  std::uint8_t opcode = 0;           ///< 4 bits
  bool authoritative = false;        ///< AA
  bool truncated = false;            ///< TC
  bool recursion_desired = false;    ///< RD
  bool recursion_available = false;  ///< RA
  bool reserved = false;             ///< Z
  bool authentic_data = false;       ///< AD
  bool checking_disabled = false;    ///< CD
  std::uint8_t rcode = 0;            ///< the lower 4 bits; EDNS has the upper 8
  std::vector<DnsQuestion> questions;
  std::vector<DnsRecord> answers;
  std::vector<DnsRecord> authorities;
  std::vector<DnsRecord> additional;  ///< with the OPT record, where it stood
  std::string trailing;               ///< bytes behind the last record

  friend bool operator==(const DnsMessage&, const DnsMessage&) = default;
};

/// Errors: protocol, with what is wrong and at which byte: a section that ends early, a name that is too long or whose
/// pointers do not lead strictly backwards, RDATA of a type with names in it that does not hold them.
base::Expected<DnsMessage> parse_dns(std::string_view bytes);

/// Names are compressed (where RFC 3597 §4 allows it), only against suffixes of the same case, so that the case of
/// every name survives. parse_dns of the result is `message` again. Errors: bad_input (what no message can hold).
base::Expected<std::string> encode_dns(const DnsMessage& message);

/// Where a record's TTL stands in the bytes of a message.
struct DnsTtlField {
  std::size_t offset = 0;
  std::uint16_t type = 0;          ///< of the record
  std::uint16_t covered_type = 0;  ///< of a SIG record (RFC 2931: 0 signs the message)
};

/// The TTL field of every record, in order; the OPT record's is not one but is listed with its type. Errors: as
/// parse_dns.
base::Expected<std::vector<DnsTtlField>> dns_ttl_fields(std::string_view bytes);

struct DnsEdnsOption {
  std::uint16_t code = 0;
  std::string data;
  friend bool operator==(const DnsEdnsOption&, const DnsEdnsOption&) = default;
};

/// The OPT record, taken apart.
struct DnsEdns {
  std::uint16_t udp_payload = 1232;  ///< the largest datagram its sender can take, bytes
  std::uint8_t extended_rcode = 0;   ///< upper 8 of 12 bits
  std::uint8_t version = 0;
  bool dnssec_ok = false;   ///< DO
  std::uint16_t flags = 0;  ///< the other 15 bits
  std::vector<DnsEdnsOption> options;
  friend bool operator==(const DnsEdns&, const DnsEdns&) = default;
};

/// Empty when the message has no EDNS. Errors: protocol (two OPT records, one that belongs to a name, torn options).
base::Expected<std::optional<DnsEdns>> edns_of(const DnsMessage& message);

/// Errors: bad_input (an option or all of them over 65,535 bytes).
base::Expected<DnsRecord> to_record(const DnsEdns& edns);

}  // namespace leafcutter::protocols
