// Answers that a faulty resolver gives: made from a query alone (REFUSED, SERVFAIL, NXDOMAIN, empty, truncated, wrong
// addresses) or by changing the answer of the real one (truncated, other TTLs, wrong ID). Values and bytes in, values
// and bytes out: which query is struck, when, and every random byte are the caller's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "protocols/dns.hpp"

namespace leafcutter::protocols {

// --- From a query. Each answer has the query's ID, opcode, RD and CD, its questions byte for byte (so also the case of
// letters, which resolvers check), RA, and EDNS when the query had it: version 0, the query's DO and datagram size, and
// a complete COOKIE (RFC 7873), without which some clients discard an answer. Other options concern the answer that is
// not there. Errors of all: protocol (a response; broken EDNS).

/// No records. `rcode` one of dns_rcode: refused and server_failure are faults by themselves.
base::Expected<DnsMessage> dns_failure(const DnsMessage& query, std::uint8_t rcode);

/// TC and no records: the client should ask again over TCP.
base::Expected<DnsMessage> dns_truncation(const DnsMessage& query);

/// How long a negative answer may be cached (RFC 2308): the TTL of the SOA record and its MINIMUM field.
struct DnsNegative {
  std::uint32_t ttl = 30;       ///< seconds
  std::optional<DnsName> zone;  ///< owner of the SOA record, at or above the name asked for; empty: the name's parent
};

/// NXDOMAIN (dns_rcode::name_error) or an empty answer (dns_rcode::no_error), with a SOA record as the authority.
/// Errors also: protocol (not exactly one question), bad_input (a zone the name does not lie in).
base::Expected<DnsMessage> dns_negative(const DnsMessage& query, std::uint8_t rcode, const DnsNegative& negative);

/// 4 bytes of IPv4 or 16 of IPv6, in network order.
struct DnsAddress {
  std::string bytes;
  friend bool operator==(const DnsAddress&, const DnsAddress&) = default;
};

/// Errors: bad_input.
base::Expected<DnsAddress> parse_dns_address(std::string_view text);
std::string to_text(const DnsAddress& address);

/// Those of `addresses` that the question asks for, in their order: IPv4 for A, IPv6 for AAAA, all for ANY, with `ttl`
/// in seconds; the empty answer as dns_negative gives it when none is.
base::Expected<DnsMessage> dns_addresses(const DnsMessage& query, const std::vector<DnsAddress>& addresses,
                                         std::uint32_t ttl, const DnsNegative& negative);

/// An A or AAAA record made of `random`; the empty answer for another type. The address never belongs to anybody: it
/// lies in 198.18.0.0/15 (benchmarks, RFC 2544) or 2001:db8::/32 (documentation, RFC 3849).
base::Expected<DnsMessage> dns_random_address(const DnsMessage& query, const std::array<std::uint8_t, 16>& random,
                                              std::uint32_t ttl, const DnsNegative& negative);

// --- From an answer.

/// TC, and no records but the OPT record, which stays as it is.
DnsMessage dns_truncate(DnsMessage answer);

/// Puts `addresses` (IPv4 into A records, IPv6 into AAAA, in turn) in place of those in the answer section; how many
/// records were changed. Errors: unavailable (signed as a whole, see dns_set_ttls); nothing is changed then.
base::Expected<std::size_t> dns_replace_addresses(DnsMessage& answer, const std::vector<DnsAddress>& addresses);

/// Two addresses of `random`, one of each family, that never belong to anybody.
std::vector<DnsAddress> dns_nobodys_addresses(const std::array<std::uint8_t, 16>& random);

/// The largest datagram that the sender of `query` takes: 512 bytes, or what its EDNS says.
std::size_t dns_udp_limit(const DnsMessage& query);

/// The answer's bytes; dns_truncate's when they are more than `limit`. Errors: as encode_dns.
base::Expected<std::string> encode_dns_datagram(const DnsMessage& answer, std::size_t limit);

/// Writes `ttl` (seconds) into every record of the message where it stands, and nothing else; how many were written.
/// Left alone: OPT, whose field is not a TTL. A negative answer may be cached for the lower of this and the MINIMUM in
/// its SOA record, which is data. Errors: as parse_dns; unavailable (the message is signed by TSIG or SIG(0) as a
/// whole, so its receiver would see a forgery instead). On an error nothing is changed.
base::Expected<std::size_t> dns_set_ttls(std::string& message, std::uint32_t ttl);

/// An ID that is not `id`: `random` changes which.
std::uint16_t dns_other_id(std::uint16_t id, std::uint16_t random);

/// Writes the ID where it stands. Errors: protocol (shorter than a header).
base::Status dns_set_id(std::string& message, std::uint16_t id);

}  // namespace leafcutter::protocols
