// From a scenario's fault choices and the sites that were seen to the faults that can be planned.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/model.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::coordinator {

/// Can `choice` strike at `site`? Lane and operation are equal and the resource matches the choice's glob. Without a
/// glob a file must lie in the data folder; with one, "data:" may be left out.
bool fits(const scenarios::FaultChoice& choice, const scenarios::Site& site);

/// Every choice at occurrences first..last of the site, in the order of the choices, then of the occurrences.
std::vector<scenarios::Fault> faults_at(const std::vector<scenarios::FaultChoice>& choices, const scenarios::Site& site,
                                        std::uint32_t first, std::uint32_t last);

/// A total order on faults that depends on their contents alone.
struct FaultLess {
  bool operator()(const scenarios::Fault& a, const scenarios::Fault& b) const;
};

}  // namespace leafcutter::coordinator
