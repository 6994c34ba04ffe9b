// The keys of Run documents, by schema_version: 1 is the document of `fault`, unchanged; 2 has everything that the
// engine can do besides. Made out of the table of effects.
#pragma once

#include <string>

#include "protocols/event.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::node::runs {

inline constexpr int newest_schema_version = 2;

/// `schema_version`: 1 or 2.
const scenarios::Vocabulary& run_vocabulary(int schema_version);

/// JSON Schema (draft 2020-12) of Run documents of either version.
protocols::Value run_json_schema();

/// The reference page (Markdown): every key, and every kind of fault.
std::string run_reference_page();

}  // namespace leafcutter::node::runs
