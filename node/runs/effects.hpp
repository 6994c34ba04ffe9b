// The kinds of network faults as documents name them: their parameters, and the engine's Effect that a kind with
// parameters stands for. The Run document's loader, its JSON Schema, the reference page and `leafcutter faults` read
// this one table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "node/proxy/fault.hpp"
#include "protocols/event.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::node::runs {

using protocols::Value;

struct EffectParameter {
  scenarios::Key key;
  int since = 2;  ///< the schema_version of Run documents that has it first
};

struct EffectKind {
  using Make = proxy::Effect (*)(const Value& parameters);
  std::string name;
  std::string about;
  std::vector<EffectParameter> parameters;
  /// Parameters have been checked against the table. Null: a fault of DNS, whose effect depends on more than its
  /// parameters (dns_effect.hpp).
  Make make = nullptr;
  int since = 2;
  proxy::Effect sample = {};  ///< says on which transports it exists
  /// Schema_version 1 has it on this transport alone.
  std::optional<proxy::Transport> only_in_first = {};
  /// The parameter `probability` is the selector's.
  bool has_probability = false;
  std::vector<std::string> some_of = {};  ///< at least one of these parameters
};

const std::vector<EffectKind>& effect_kinds();
/// Null: there is none of that name.
const EffectKind* effect_kind(std::string_view name);
bool kind_exists_on(proxy::Transport transport, const EffectKind& kind, int schema_version);

/// Shapes that parameters refer to (distributions, flips).
std::vector<scenarios::Shape> parameter_shapes(int schema_version);

/// Null when they are right; otherwise what is wrong with them, as effect_from says it.
std::optional<base::Error> bad_parameters(const EffectKind& kind, const Value& parameters);

/// The effect, or what is wrong: "jitter.min_delay_ms: expected a number from 0 on, found "x"". A `probability` that is
/// the selector's is checked and left alone.
base::Expected<proxy::Effect> effect_from(std::string_view kind, const Value& parameters);

/// A distribution, checked against the table.
proxy::Distribution distribution_from(const Value& of);

/// Contradictions between parameters that are right each for itself: "min_delay_ms: greater than max_delay_ms".
std::optional<std::string> contradiction(const Value& parameters);

/// Fractions are rounded to nanoseconds.
proxy::Duration milliseconds_of(double value);

}  // namespace leafcutter::node::runs
