// The rows of the table of fault kinds that strike a service's lookups of names. What each does to a message is
// node/dns_faults'; a kind's name is "dns-" and the case's there.
#include "scenarios/dns_lanes.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::scenarios {
namespace {

using Type = FaultParameter::Type;

FaultKind dns_row(std::string name, std::string about, std::string evidence, int complexity) {
  FaultKind row;
  row.name = std::move(name);
  row.mechanism = Mechanism::dns;
  row.about = std::move(about);
  row.operations = {query_operation};
  row.evidence = "name, type, transport, " + std::move(evidence);
  row.undo = "when the last of the struck lookups was answered, or was left without an answer";
  row.capability = "network-namespace";
  row.complexity = complexity;
  return row;
}

}  // namespace

std::vector<FaultKind> dns_fault_kinds() {
  std::vector<FaultKind> rows = {
      dns_row("dns-nx-domain", "The name does not exist (NXDOMAIN), says the resolver.", "response code", 1),
      dns_row("dns-serv-fail", "The resolver fails (SERVFAIL).", "response code", 1),
      dns_row("dns-refused", "The resolver refuses to answer (REFUSED).", "response code", 1),
      dns_row("dns-empty-answer", "The name exists, says the resolver, and has no such record.", "response code", 1),
      dns_row("dns-timeout", "The resolver does not answer, also when the same query is sent again.", "no answer", 2),
      dns_row("dns-delay", "The resolver answers later.", "the delay", 2),
      dns_row("dns-random-address", "The answer is an address that belongs to nobody.", "the address", 2),
      dns_row("dns-truncated", "The answer over UDP is cut off (TC), so that the caller should ask again over TCP.",
              "response code", 2),
      dns_row("dns-wrong-id", "The answer has another ID than the query, and must not be taken for its own.",
              "response code", 3),
      dns_row("dns-ttl", "The answer's records may be kept for another time.", "the TTL", 3),
  };
  for (auto& row : rows) {
    if (row.name == "dns-delay")
      row.parameters.push_back({"for", Type::duration, true, "how much later, from the query's arrival"});
    if (row.name == "dns-ttl")
      row.parameters.push_back({"seconds", Type::count, true, "the TTL of every record", 0, 0x7fffffff});
    row.parameters.push_back({"times", Type::count, false,
                              "how many lookups of that name and type in a row; 1 when not given. The same query sent "
                              "again is the same lookup",
                              1, 1000});
  }
  return rows;
}

}  // namespace leafcutter::scenarios
