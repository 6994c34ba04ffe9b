// A table of keys as JSON Schema, draft 2020-12, for editors.
#pragma once

#include <string>

#include "protocols/event.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::scenarios {

inline constexpr const char* schema_dialect = "https://json-schema.org/draft/2020-12/schema";

/// The schema of the document; it refers to the other shapes as "#/$defs/<prefix><shape>".
protocols::Value document_schema(const Vocabulary& vocabulary, const std::string& prefix);
/// The other shapes, by those names.
protocols::Value definitions_schema(const Vocabulary& vocabulary, const std::string& prefix);

}  // namespace leafcutter::scenarios
