// The keys of host profiles. The loader's checks, the JSON Schema and the reference page are made out of this table.
#pragma once

#include <string>
#include <vector>

#include "protocols/event.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::node::host {

const scenarios::Vocabulary& profile_vocabulary();

/// JSON Schema (draft 2020-12).
protocols::Value profile_json_schema();
/// The reference page (Markdown).
std::string profile_reference_page();

/// What a scenario may use of a node, and the signals that a profile can allow.
const std::vector<std::string>& feature_names();
const std::vector<std::string>& tier_names();
const std::vector<std::string>& signal_names();

}  // namespace leafcutter::node::host
