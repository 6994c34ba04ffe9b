// Two results of one leaf that differ: whatever the scenario, what it runs depends on something that nobody controls,
// and no verdict about it can be trusted. Values and functions.
#pragma once

#include <optional>

#include "coordinator/finding.hpp"
#include "coordinator/ledger/ledger.hpp"

namespace leafcutter::coordinator {

/// The property of such a finding; a reason's name, which no scenario's property is.
inline constexpr const char* nondeterminism = "nondeterminism";

/// Of two results of the same execution, in the order in which they came. Nothing unless both were decided, PASS or
/// FAIL, and verdict or reason differ: a leaf that ran out of time on a busy host says nothing about the services.
std::optional<Finding> disagreement(const Result& first, const Result& second);

}  // namespace leafcutter::coordinator
