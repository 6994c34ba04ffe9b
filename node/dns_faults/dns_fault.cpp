#include "node/dns_faults/dns_fault.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.hpp"
#include "node/dns_faults/dns_conversation.hpp"

namespace leafcutter::node::dns_faults {
namespace {

constexpr std::string_view dns_case_names[] = {"delay",          "timeout",   "truncated",    "refused",
                                               "serv-fail",      "nx-domain", "empty-answer", "wrong-answers",
                                               "random-address", "ttl",       "wrong-id"};
static_assert(std::size(dns_case_names) == std::size(every_dns_case));

/// RFC 2181 §8: a TTL with the highest bit set counts as 0.
constexpr std::uint32_t longest_dns_ttl = 0x7fffffff;

base::Error bad_dns_fault(const std::string& field, const std::string& why) {
  return {base::ErrorCode::bad_input, field + ": " + why, {}};
}

base::Error within(const std::string& field, const base::Error& error) { return bad_dns_fault(field, error.message); }

bool changes_in_place(DnsCase dns_case) {
  return dns_case == DnsCase::truncated || dns_case == DnsCase::wrong_answers || dns_case == DnsCase::random_address;
}

base::Status check_selection(const DnsFault& fault) {
  if (std::isnan(fault.probability) || fault.probability < 0 || fault.probability > 1)
    return bad_dns_fault("probability", std::to_string(fault.probability) + " is none; 0 to 1 would do, such as 0.25");
  const auto& ordinals = fault.occurrences;
  if (ordinals.first < 1 || ordinals.first > ordinals.last || ordinals.every < 1)
    return bad_dns_fault("occurrences", "numbers count from 1, first is at most last, every is at least 1");
  return base::ok();
}

base::Status check_manner(const DnsFault& fault, proxy::Transport transport) {
  if (fault.delay) {
    // The engine's own latency has the same times, and the same limits to them.
    const proxy::FaultSet times{{}, {{{}, {}, proxy::Latency{*fault.delay, {}, fault.cap}}}};
    if (const auto good = proxy::checked(times, transport); !good) return within("delay", good.error());
  } else if (fault.dns_case == DnsCase::delay) {
    return bad_dns_fault("delay", "none is given, and the case is delay; a fixed time or a distribution would do");
  } else if (fault.cap) {
    return bad_dns_fault("cap", "there is no delay to cap; give a delay too, or leave the cap out");
  }
  if (fault.ttl > longest_dns_ttl)
    return bad_dns_fault("ttl", std::to_string(fault.ttl) + " seconds; at most 2147483647 is a TTL (RFC 2181)");
  if (fault.dns_case == DnsCase::truncated && transport == proxy::Transport::tcp)
    return bad_dns_fault("case",
                         "truncated sends a client from UDP to TCP, and this link is TCP; put it on the UDP link");
  if (fault.on_reply && !changes_in_place(fault.dns_case) && fault.dns_case != DnsCase::ttl &&
      fault.dns_case != DnsCase::wrong_id)
    return bad_dns_fault("on_reply", std::string(name_of(fault.dns_case)) +
                                         " is an answer of its own; truncated, wrong-answers and random-address can "
                                         "change the resolver's");
  return base::ok();
}

base::Expected<std::vector<protocols::DnsAddress>> compile_addresses(const DnsFault& fault) {
  std::vector<protocols::DnsAddress> addresses;
  for (std::size_t i = 0; i < fault.addresses.size(); ++i) {
    auto address = protocols::parse_dns_address(fault.addresses[i]);
    if (!address) return within("addresses[" + std::to_string(i) + "]", address.error());
    addresses.push_back(std::move(*address));
  }
  if (fault.dns_case == DnsCase::wrong_answers && addresses.empty())
    return bad_dns_fault("addresses",
                         "none is given, and the case is wrong-answers; list IP addresses, or take random-address");
  if (fault.dns_case != DnsCase::wrong_answers && !addresses.empty())
    return bad_dns_fault("addresses", "only wrong-answers gives them, and the case is " +
                                          std::string(name_of(fault.dns_case)) + "; leave them out");
  return addresses;
}

base::Expected<protocols::DnsNegative> compile_negative(const DnsFault& fault) {
  protocols::DnsNegative negative{fault.ttl, {}};
  if (fault.zone.empty()) return negative;
  auto zone = protocols::DnsName::from_text(fault.zone);
  if (!zone) return within("zone", zone.error());
  const auto below = fault.name.starts_with("*.") ? fault.name.substr(2) : fault.name;
  const auto asked = protocols::DnsName::from_text(below);
  if (fault.name != "*" && asked && !at_or_below(*asked, *zone))
    return bad_dns_fault("zone", "`" + fault.zone + "` does not hold `" + fault.name +
                                     "`, and a client may not believe it; name a zone above it, or leave it out");
  negative.zone = std::move(*zone);
  return negative;
}

}  // namespace

std::string_view name_of(DnsCase dns_case) { return dns_case_names[static_cast<std::size_t>(dns_case)]; }

base::Expected<DnsCase> dns_case_of(std::string_view name) {
  const auto found = std::find(std::begin(dns_case_names), std::end(dns_case_names), name);
  if (found != std::end(dns_case_names)) return every_dns_case[found - std::begin(dns_case_names)];
  const std::vector<std::string> names(std::begin(dns_case_names), std::end(dns_case_names));
  const auto near = base::nearest(name, names);
  return base::Error{base::ErrorCode::bad_input,
                     "`" + std::string(name) + "` is no case of a DNS fault; " +
                         (near ? "did you mean `" + *near + "`?" : "there are " + base::join_names(names)),
                     {}};
}

base::Expected<DnsRule> compile(const DnsFault& fault, proxy::Transport transport) {
  const auto name = protocols::DnsPattern::parse(fault.name);
  if (!name) return within("name", name.error());
  auto match = protocols::DnsMatch::parse(fault.name, fault.types);
  if (!match) return within("types", match.error());
  if (auto status = check_selection(fault); !status) return status.error();
  if (auto status = check_manner(fault, transport); !status) return status.error();
  auto addresses = compile_addresses(fault);
  if (!addresses) return addresses.error();
  auto negative = compile_negative(fault);
  if (!negative) return negative.error();
  return DnsRule{fault, transport, std::move(*match), std::move(*addresses), std::move(*negative)};
}

base::Status checked(const DnsFault& fault, proxy::Transport transport) {
  const auto rule = compile(fault, transport);
  if (!rule) return rule.error();
  return base::ok();
}

}  // namespace leafcutter::node::dns_faults
