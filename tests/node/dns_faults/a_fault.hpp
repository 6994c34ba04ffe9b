// A fault of name resolution in one line, for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "node/dns_faults/dns_fault.hpp"

namespace leafcutter::node::dns_faults {

inline DnsFault fault_of(DnsCase dns_case, const std::string& name = "*", std::vector<std::string> types = {}) {
  DnsFault fault;
  fault.dns_case = dns_case;
  fault.name = name;
  fault.types = std::move(types);
  return fault;
}

}  // namespace leafcutter::node::dns_faults
