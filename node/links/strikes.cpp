#include "node/links/strikes.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "node/links/engine_faults.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

std::optional<LinkStrikes::End> end_of(std::string_view kind) {
  if (kind == refuse_kind) return LinkStrikes::End::refuse;
  if (kind == "reset") return LinkStrikes::End::reset;
  if (kind == "blackhole") return LinkStrikes::End::blackhole;
  if (kind == "lose-response") return LinkStrikes::End::lose_response;
  return std::nullopt;
}

std::chrono::nanoseconds length_of(const scenarios::Fault& fault) {
  const auto found = fault.params.find("for");
  if (found == fault.params.end() || !found->is_string()) return {};
  const auto length = base::parse_duration(found->get<std::string>());
  return length ? *length : std::chrono::nanoseconds{};
}

}  // namespace

std::chrono::nanoseconds LinkStrikes::delay() const {
  std::chrono::nanoseconds sum{0};
  for (const auto& one : delays) sum += one.length;
  return sum;
}

bool LinkStrikes::before_dialling() const {
  return std::any_of(engine.begin(), engine.end(),
                     [](const SiteBook::Strike& strike) { return strikes_before_dialling(strike.fault); });
}

LinkStrikes link_strikes(const SiteBook::Visit& visit) {
  LinkStrikes strikes;
  for (const auto& strike : visit.strikes) {
    const auto* kind = scenarios::fault_kind(strike.fault.kind);
    if (kind != nullptr && kind->between) {
      strikes.partitions.push_back(strike);
    } else if (is_engine_fault(strike.fault)) {
      strikes.engine.push_back(strike);
    } else if (strike.fault.kind == "latency") {
      const auto length = length_of(strike.fault);
      if (length.count() > 0) strikes.delays.push_back({strike.index, length});
    } else if (const auto end = end_of(strike.fault.kind); end && !strikes.final) {
      strikes.final = {strike.index, *end};
    }
  }
  return strikes;
}

}  // namespace leafcutter::node
