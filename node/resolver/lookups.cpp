#include "node/resolver/lookups.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "base/text.hpp"
#include "node/dns_faults/dns_conversation.hpp"
#include "protocols/dns_reply.hpp"
#include "scenarios/dns_lanes.hpp"

namespace leafcutter::node::resolver {
namespace {

using dns_faults::DnsCase;
using protocols::DnsMessage;

constexpr std::string_view kind_prefix = "dns-";
/// Lookups of a name and type that may still be sent again. Few, as IDs are 16 bits and drawn: one in so many thousand
/// would be taken for another.
constexpr std::size_t most_remembered = 4;
constexpr std::size_t most_names = 4096;

std::array<std::uint8_t, 16> drawn_bytes(const std::string& name) {
  base::Stream draws(base::split_mix(base::fnv1a(name)), "dns", 0);
  std::array<std::uint8_t, 16> bytes{};
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(draws.below(256));
  return bytes;
}

base::Expected<std::string> encoded(const DnsMessage& answer, const DnsMessage& query, proxy::Transport transport) {
  return transport == proxy::Transport::udp ? encode_dns_datagram(answer, dns_udp_limit(query)) : encode_dns(answer);
}

std::string addresses_text(const DnsMessage& answer) {
  std::vector<std::string> texts;
  for (const auto& record : answer.answers) texts.push_back(to_text(protocols::DnsAddress{record.data}));
  return base::join_names(texts);
}

}  // namespace

base::Expected<dns_faults::DnsFault> dns_fault_of(const scenarios::Fault& fault) {
  if (!fault.kind.starts_with(kind_prefix))
    return base::Error{base::ErrorCode::bad_input, "fault \"" + fault.kind + "\" strikes no lookups of names", {}};
  const auto dns_case = dns_faults::dns_case_of(fault.kind.substr(kind_prefix.size()));
  if (!dns_case) return dns_case.error();
  dns_faults::DnsFault made;
  made.dns_case = *dns_case;
  made.ttl = 0;
  if (const auto seconds = fault.params.find("seconds"); seconds != fault.params.end() && seconds->is_number_integer())
    made.ttl = seconds->get<std::uint32_t>();
  if (const auto length = fault.params.find("for"); length != fault.params.end() && length->is_string()) {
    const auto parsed = base::parse_duration(length->get<std::string>());
    if (!parsed) return parsed.error();
    made.delay = proxy::FixedTime{*parsed};
  }
  return made;
}

Lookups::Lookups(const Zone& zone, SiteBook& sites, Recorder& recorder, std::string service)
    : zone_(zone),
      sites_(sites),
      recorder_(recorder),
      service_(std::move(service)),
      lane_(scenarios::dns_lane(service_)) {}

Answer Lookups::ask(std::string_view message, proxy::Transport transport) {
  const auto query = protocols::parse_dns(message);
  if (!query) return {format_error(message)};
  const auto answer = zone_.answer(*query);
  if (!answer) return {};
  Answer out;
  auto bytes = encoded(*answer, *query, transport);
  if (bytes) out.bytes = std::move(*bytes);
  if (query->opcode != 0 || query->questions.size() != 1) return out;
  bool again = false;
  bool decided = false;  // one fault says what is answered; any number may say when
  for (const auto& struck : fate(*query, transport, again)) {
    const bool delays = struck.fault.kind == "dns-delay";
    auto evidence = Value::object();
    if ((decided && !delays) || !apply(struck, *query, transport, out, evidence)) continue;
    decided = decided || !delays;
    if (again) continue;
    fired(struck, *query, transport, std::move(evidence));
    if (struck.last) out.ends = struck.index;
  }
  return out;
}

const std::vector<Lookups::Struck>& Lookups::fate(const DnsMessage& query, proxy::Transport transport, bool& again) {
  const auto& question = query.questions.front();
  auto resource = question.name.text() + " " + protocols::dns_type_name(question.type);
  const auto type_begins = resource.rfind(' ');
  std::transform(resource.begin(), resource.begin() + static_cast<std::ptrdiff_t>(type_begins), resource.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  // Which names are asked for is the service's choice: what is remembered of all of them is bounded, too.
  if (seen_.size() >= most_names && seen_.count(resource) == 0) seen_.clear();
  auto& seen = seen_[resource];
  const auto known = std::find_if(seen.begin(), seen.end(),
                                  [&](const Seen& one) { return one.id == query.id && one.transport == transport; });
  again = known != seen.end();
  if (again) return known->struck;
  recorder_.deliver(lane_, recorder_.now(service_));
  seen.push_front({query.id, transport, visit(resource)});
  if (seen.size() > most_remembered) seen.pop_back();
  return seen.front().struck;
}

/// What strikes this visit: the faults of the plan that name it, and those that began before and go on.
std::vector<Lookups::Struck> Lookups::visit(const std::string& resource) {
  const auto visit = sites_.visit({lane_, scenarios::query_operation, resource});
  std::vector<Struck> struck;
  const auto named = [&](const scenarios::Fault& fault) {
    return fault.kind + " " + resource + " #" + std::to_string(visit.occurrence);
  };
  if (const auto going_on = rows_.find(resource); going_on != rows_.end()) {
    for (auto& row : going_on->second) {
      row.struck.last = --row.left == 0;
      row.struck.random = named(row.struck.fault);
      struck.push_back(row.struck);
    }
    std::erase_if(going_on->second, [](const Row& row) { return row.left == 0; });
  }
  for (const auto& strike : visit.strikes) {
    const auto times = strike.fault.params.value("times", std::uint64_t{1});
    struck.push_back({strike.index, strike.fault, named(strike.fault), times <= 1});
    if (times > 1) rows_[resource].push_back({struck.back(), times - 1});
  }
  return struck;
}

/// Whether it can strike this query; then `answer` and `evidence` say what it does.
bool Lookups::apply(const Struck& struck, const DnsMessage& query, proxy::Transport transport, Answer& answer,
                    Value& evidence) const {
  const auto fault = dns_fault_of(struck.fault);
  if (!fault) return false;
  const auto rule = dns_faults::compile(*fault, transport);
  if (!rule) return false;  // a truncation over TCP
  const auto random = drawn_bytes(struck.random);
  switch (fault->dns_case) {
    case DnsCase::delay: {
      const auto length = std::get<proxy::FixedTime>(*fault->delay).value;
      answer.delay += length;
      evidence["delay"] = base::format_duration(length);
      return true;
    }
    case DnsCase::timeout:
      answer.bytes.reset();
      evidence["answer"] = "none";
      return true;
    case DnsCase::ttl: {
      const auto written = answer.bytes ? protocols::dns_set_ttls(*answer.bytes, fault->ttl)
                                        : base::Expected<std::size_t>(std::size_t{0});
      if (!written || *written == 0) return false;
      evidence["ttl"] = fault->ttl;
      return true;
    }
    case DnsCase::wrong_id:
      evidence["answer"] = "under another ID";
      return answer.bytes &&
             protocols::dns_set_id(*answer.bytes,
                                   protocols::dns_other_id(query.id, static_cast<std::uint16_t>(random[0] + 1)));
    default: break;
  }
  const auto made = made_answer(*rule, query, random);
  if (!made) return false;
  if (fault->dns_case == DnsCase::random_address && made->answers.empty()) return false;  // none was asked for
  auto bytes = encoded(*made, query, transport);
  if (!bytes) return false;
  answer.bytes = std::move(*bytes);
  evidence["rcode"] = protocols::dns_rcode_name(made->rcode);
  if (made->truncated) evidence["truncated"] = true;
  if (fault->dns_case == DnsCase::random_address) evidence["address"] = addresses_text(*made);
  return true;
}

void Lookups::fired(const Struck& struck, const DnsMessage& query, proxy::Transport transport, Value evidence) {
  const auto& question = query.questions.front();
  evidence["name"] = question.name.text();
  evidence["type"] = protocols::dns_type_name(question.type);
  evidence["transport"] = transport == proxy::Transport::udp ? "udp" : "tcp";
  sites_.fired(struck.index, std::move(evidence));
  // Whatever the service does from now on happened after it.
  recorder_.deliver(service_, recorder_.now(lane_));
}

void Lookups::over(std::size_t fault) { sites_.undone(fault, "the lookup got its answer, or none"); }

}  // namespace leafcutter::node::resolver
