// The simpler versions of a fault: another kind of the same mechanism at the same site, or shorter durations.
#pragma once

#include <optional>
#include <vector>

#include "scenarios/plan.hpp"

namespace leafcutter::coordinator {

/// Kinds of less complexity that the same mechanism can carry out at the same site with the parameters the fault has;
/// the simplest first. None that kills the service when the fault does not: a crash is another failure, not a milder
/// one, and whoever asked for a full disk would be told of something else.
std::vector<scenarios::Fault> simpler_kinds(const scenarios::Fault& fault);

/// A rule that may strike several times, at the first of them alone; nullopt for what strikes once or lasts.
std::optional<scenarios::Fault> narrowed(const scenarios::Fault& fault);

/// Every duration halved, in whole milliseconds; nullopt when there is none, or one would fall below a millisecond.
std::optional<scenarios::Fault> half_as_long(const scenarios::Fault& fault);

}  // namespace leafcutter::coordinator
