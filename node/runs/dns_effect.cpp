#include "node/runs/dns_effect.hpp"

#include "node/dns_faults/dns_fault.hpp"
#include "node/runs/effects.hpp"

namespace leafcutter::node::runs {
namespace {

/// An A record with a random address for questions of that type, and an empty answer for all others.
constexpr const char* random_a = "random-a";

proxy::Ordinals occurrences_in(const Value& of) {
  proxy::Ordinals ordinals;
  ordinals.first = of.value("first", ordinals.first);
  ordinals.last = of.value("last", ordinals.last);
  ordinals.every = of.value("every", ordinals.every);
  return ordinals;
}

dns_faults::DnsFault dns_fault_of(const Value& of, int schema_version) {
  dns_faults::DnsFault fault;
  fault.name = of.value("name", fault.name);
  fault.types = of.value("types", fault.types);
  fault.addresses = of.value("addresses", fault.addresses);
  fault.ttl = of.value("ttl", fault.ttl);
  fault.zone = of.value("zone", fault.zone);
  fault.on_reply = of.value("on_reply", fault.on_reply);
  fault.probability = of.value("probability", fault.probability);
  if (of.contains("occurrences")) fault.occurrences = occurrences_in(of["occurrences"]);
  if (of.contains("delay_ms")) fault.delay = proxy::FixedTime{milliseconds_of(of["delay_ms"].get<double>())};
  if (of.contains("distribution")) fault.delay = distribution_from(of["distribution"]);
  if (of.contains("cap_ms")) fault.cap = milliseconds_of(of["cap_ms"].get<double>());
  // In the first version a delay of nothing may be left out.
  if (schema_version == 1 && of.at("case") == "delay" && !fault.delay) fault.delay = proxy::FixedTime{};
  return fault;
}

}  // namespace

std::vector<std::string> dns_case_words(int schema_version) {
  std::vector<std::string> words = {"delay",     "timeout",   "truncated",    "refused",
                                    "serv-fail", "nx-domain", "empty-answer", random_a};
  if (schema_version > 1)
    for (const auto later : {dns_faults::DnsCase::wrong_answers, dns_faults::DnsCase::random_address,
                             dns_faults::DnsCase::ttl, dns_faults::DnsCase::wrong_id})
      words.emplace_back(dns_faults::name_of(later));
  return words;
}

base::Expected<std::vector<proxy::Fault>> dns_faults_from(const Value& parameters, int schema_version,
                                                          proxy::Transport transport, const std::string& id) {
  const auto word = parameters.at("case").get<std::string>();
  auto fault = dns_fault_of(parameters, schema_version);
  std::vector<std::pair<dns_faults::DnsFault, std::string>> wanted;
  if (word == random_a) {
    auto rest = fault;
    fault.dns_case = dns_faults::DnsCase::random_address;
    fault.types = {"A"};
    rest.dns_case = dns_faults::DnsCase::empty_answer;
    wanted = {{fault, id}, {rest, id + " (other types)"}};
  } else {
    const auto dns_case = dns_faults::dns_case_of(word);
    if (!dns_case) return dns_case.error();
    fault.dns_case = *dns_case;
    wanted = {{fault, id}};
  }
  std::vector<proxy::Fault> made;
  for (const auto& [one, name] : wanted) {
    auto fault_made = dns_faults::dns_fault(one, transport, name);
    if (!fault_made) return fault_made.error();
    made.push_back(std::move(*fault_made));
  }
  return made;
}

}  // namespace leafcutter::node::runs
