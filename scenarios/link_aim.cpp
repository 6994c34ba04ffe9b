#include "scenarios/link_aim.hpp"

#include <algorithm>
#include <string>

#include "base/random.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::scenarios {
namespace {

constexpr std::uint32_t always_drawn = 1'000'000;

/// The parameter that says which way; null: the kind strikes connections as a whole.
const FaultParameter* flow_of(const FaultKind& kind) {
  const auto found = std::find_if(kind.parameters.begin(), kind.parameters.end(),
                                  [](const FaultParameter& parameter) { return parameter.name == "flow"; });
  return found == kind.parameters.end() ? nullptr : &*found;
}

/// What a fault draws does not depend on which connections its rule selects: a narrower rule draws the same.
base::Stream stream_for(const Fault& fault, std::uint64_t connection, const std::string& of) {
  const auto key = base::split_mix(fault.aim->seed ^ base::split_mix(base::fnv1a(fault.site.lane)));
  return {key, fault.kind + fault.params.dump(-1, ' ', false, Value::error_handler_t::replace) + "|" + of, connection};
}

bool is_drawn(const Fault& fault, std::uint64_t connection, const std::string& of) {
  const auto chance = fault.aim->per_million;
  if (chance == 0 || chance >= always_drawn) return chance > 0;
  return stream_for(fault, connection, of).below(always_drawn) < chance;
}

}  // namespace

Ways ways_of(const Fault& fault) {
  const auto* kind = fault_kind(fault.kind);
  const auto* flow = kind == nullptr ? nullptr : flow_of(*kind);
  if (flow == nullptr || kind->between) return {};
  const bool both_exist = std::find(flow->words.begin(), flow->words.end(), "both") != flow->words.end();
  const auto given = fault.params.value("flow", both_exist ? "both" : "to-caller");
  return {given != "to-caller", given != "to-service"};
}

Ways drawn_ways(const Fault& fault, std::uint64_t connection) {
  const auto ways = ways_of(fault);
  if (!fault.aim || fault.aim->per_million >= always_drawn) return ways;
  const auto* kind = fault_kind(fault.kind);
  if (kind == nullptr || flow_of(*kind) == nullptr) {
    const bool drawn = is_drawn(fault, connection, "connection");
    return {drawn, drawn};
  }
  return {ways.up && is_drawn(fault, connection, "up"), ways.down && is_drawn(fault, connection, "down")};
}

bool drawn_message(const Fault& fault, std::uint64_t connection, std::uint64_t message) {
  return !fault.aim || is_drawn(fault, connection, "message " + std::to_string(message));
}

bool never_strikes(const Fault& fault) { return fault.aim && fault.aim->per_million == 0; }

bool strikes_open_connections(const Fault& fault) {
  const auto* kind = fault_kind(fault.kind);
  return kind != nullptr && kind->mechanism == Mechanism::link && !kind->between && !kind->at_opening &&
         fault.site.operation == "connect" && fault.aim && !fault.aim->after.empty() && !never_strikes(fault);
}

bool strikes_repeatedly(const Fault& fault) {
  const auto* kind = fault_kind(fault.kind);
  if (kind == nullptr) return false;
  if (!fault.aim) return kind->lasting;
  // An event strikes a process once, the first that is seen; so it is with what comes between services.
  if (kind->mechanism == Mechanism::process || kind->between) return false;
  if (fault.aim->occurrences.repeat()) return true;
  const auto& message = fault.aim->message;
  return fault.site.operation == "request" && (!message || !message->at_least || message->at_least != message->at_most);
}

}  // namespace leafcutter::scenarios
