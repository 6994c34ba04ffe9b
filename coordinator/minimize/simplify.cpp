#include "coordinator/minimize/simplify.hpp"

#include <algorithm>
#include <chrono>

#include "base/text.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Fault;
using scenarios::FaultKind;
using scenarios::FaultParameter;

bool strikes(const FaultKind& kind, const std::string& operation) {
  return std::find(kind.operations.begin(), kind.operations.end(), operation) != kind.operations.end();
}

// Those of `params` that `kind` takes, when they are all it needs.
std::optional<scenarios::Value> carried_over(const scenarios::Value& params, const FaultKind& kind) {
  auto taken = scenarios::Value::object();
  for (const auto& parameter : kind.parameters) {
    const auto found = params.find(parameter.name);
    if (found != params.end())
      taken[parameter.name] = *found;
    else if (parameter.required)
      return std::nullopt;
  }
  if (!scenarios::check_params(kind, taken).ok()) return std::nullopt;
  return taken;
}

/// A rule of a link's connections is told to keep to them where its kind, as it is, would be read as a rule of requests
/// on a port that speaks HTTP: what is written of it must be the same rule when it is read again. False: it cannot be.
bool keep_to_connections(const FaultKind& kind, Fault& fault) {
  const bool of_connections = fault.aim && fault.site.operation == "connect" && fault.aim->after_bytes == 0;
  if (!of_connections || !strikes(kind, "request") || scenarios::strikes_stream(kind, fault.params)) return true;
  for (const auto& parameter : kind.parameters) {
    if (!parameter.of_stream ||
        std::find(parameter.words.begin(), parameter.words.end(), "both") == parameter.words.end())
      continue;
    fault.params[parameter.name] = "both";
    return true;
  }
  return false;
}

}  // namespace

std::vector<Fault> simpler_kinds(const Fault& fault) {
  const auto* now = scenarios::fault_kind(fault.kind);
  if (now == nullptr) return {};
  std::vector<const FaultKind*> kinds;
  for (const auto& kind : scenarios::fault_kinds())
    if (kind.mechanism == now->mechanism && kind.complexity < now->complexity && (now->kills || !kind.kills) &&
        strikes(kind, fault.site.operation) && (!fault.aim || fault.aim->after_bytes == 0 || kind.from_byte))
      kinds.push_back(&kind);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto* a, const auto* b) { return a->complexity < b->complexity; });
  std::vector<Fault> simpler;
  for (const auto* kind : kinds) {
    auto params = carried_over(fault.params, *kind);
    if (!params) continue;
    Fault one{kind->name, fault.site, fault.occurrence, *std::move(params), fault.aim};
    if (keep_to_connections(*kind, one)) simpler.push_back(std::move(one));
  }
  return simpler;
}

std::optional<Fault> narrowed(const Fault& fault) {
  if (!fault.aim || !fault.aim->occurrences.repeat()) return std::nullopt;
  using Which = scenarios::Occurrences::Which;
  const auto kind = scenarios::fault_kind(fault.kind);
  if (kind != nullptr && kind->lasting) return std::nullopt;
  auto once = fault;
  const auto& now = fault.aim->occurrences;
  once.aim->occurrences = {Which::nth, now.which == Which::first ? 1 : now.n};
  once.aim->uncounted = false;  // the kernel does not count
  return once;
}

std::optional<Fault> half_as_long(const Fault& fault) {
  const auto* kind = scenarios::fault_kind(fault.kind);
  if (kind == nullptr) return std::nullopt;
  auto half = fault;
  bool halved = false;
  for (const auto& parameter : kind->parameters) {
    const auto found = fault.params.find(parameter.name);
    if (parameter.type != FaultParameter::Type::duration || found == fault.params.end() || !found->is_string())
      continue;
    const auto duration = base::parse_duration(found->get<std::string>());
    if (!duration.ok()) continue;
    const auto shorter = std::chrono::duration_cast<std::chrono::milliseconds>(*duration) / 2;
    if (shorter.count() < 1) return std::nullopt;
    half.params[parameter.name] = base::format_duration(shorter);
    halved = true;
  }
  return halved ? std::optional(half) : std::nullopt;
}

}  // namespace leafcutter::coordinator
