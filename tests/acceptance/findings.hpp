// What a run of a ready scenario found, as its JSON document says it.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace acceptance {

/// The folder of a ready scenario in the build folder.
std::string library(const std::string& name);

/// What must be true of every finding of a ready scenario: confirmed, explained, addressed, and minimal: so many
/// faults.
void expect_well_formed(const Json& finding, std::size_t faults = 1);

/// The faults of a finding's minimal plan, each as "kind lane operation resource", in the plan's order.
std::vector<std::string> faults_of(const Json& finding);

}  // namespace acceptance
