// A fault of name resolution on a link to a resolver, as a value: what happens to which queries; and the same as a
// fault of the network engine, for UDP and TCP links. With protocols/dns_reply.hpp this is all an embedder needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "node/proxy/fault.hpp"

namespace leafcutter::node::dns_faults {

enum class DnsCase {
  delay,           ///< the query reaches the resolver later
  timeout,         ///< it does not
  truncated,       ///< UDP: TC and no records, upon which a client asks again over TCP
  refused,         ///< REFUSED
  serv_fail,       ///< SERVFAIL
  nx_domain,       ///< NXDOMAIN, with the SOA record by which the answer is cached
  empty_answer,    ///< NOERROR and no records, with a SOA record
  wrong_answers,   ///< the addresses of a list
  random_address,  ///< an address that belongs to nobody (A: 198.18.0.0/15, AAAA: 2001:db8::/32)
  ttl,             ///< the resolver's answer with another TTL in every record
  wrong_id,        ///< the resolver's answer under another ID, which the client must not take for its own
};
inline constexpr DnsCase every_dns_case[] = {DnsCase::delay,        DnsCase::timeout,       DnsCase::truncated,
                                             DnsCase::refused,      DnsCase::serv_fail,     DnsCase::nx_domain,
                                             DnsCase::empty_answer, DnsCase::wrong_answers, DnsCase::random_address,
                                             DnsCase::ttl,          DnsCase::wrong_id};

/// "delay", "serv-fail", "nx-domain", ...
std::string_view name_of(DnsCase dns_case);
/// Errors: bad_input, with the nearest name.
base::Expected<DnsCase> dns_case_of(std::string_view name);

struct DnsFault {
  DnsCase dns_case = DnsCase::delay;

  // --- which queries. A message that is no query with one question (opcode QUERY) is never struck.
  std::string name = "*";               ///< "redis.internal", "*.internal" (all below it), "*"
  std::vector<std::string> types = {};  ///< "A", "AAAA", "TYPE65"; none: all
  /// Of the queries of the link with that name and type, those with these numbers, from 1, over all its clients. A
  /// client that asks again asks another time.
  proxy::Ordinals occurrences = {};
  double probability = 1;  ///< of each of those; 0: nothing is touched

  // --- and how
  std::optional<proxy::Distribution> delay = {};  ///< before whatever the case does; `delay` needs it
  std::optional<proxy::Duration> cap = {};        ///< a longer draw becomes this
  std::vector<std::string> addresses = {};        ///< wrong_answers: IPv4 for A, IPv6 for AAAA
  std::uint32_t ttl = 30;  ///< seconds: of wrong addresses, of SOA records and their MINIMUM; what `ttl` writes
  std::string zone = {};   ///< owner of the SOA record; empty: the parent of the name asked for
  /// truncated, wrong_answers and random_address: the resolver is asked, and its answer is changed (its other records
  /// and its TTLs stay), instead of an answer being made in its place. ttl and wrong_id always do that.
  bool on_reply = false;
};

/// What is wrong with it on that transport: "name: ...", with what would do. Errors: bad_input.
base::Status checked(const DnsFault& fault, proxy::Transport transport);

/// The fault for the set of a link of that transport. `peers` and `connections` of its selector may be narrowed; flow,
/// chunks, bytes and probability stay as they are. Occurrences are counted by this object: each call's fault counts for
/// itself. On TCP, nothing that cuts bytes into parts (bandwidth, slice) stands behind it in the set, so that its
/// answers come between messages. Errors: as checked().
///
/// Events: `struck` for each query (`ttl`, `wrong_id`, `on_reply`: each answer) that it struck, with
/// "serv-fail: redis.internal A, query 3"; `let_through` for each message that could not be read or changed.
base::Expected<proxy::Fault> dns_fault(const DnsFault& fault, proxy::Transport transport, std::string id = {});

}  // namespace leafcutter::node::dns_faults
