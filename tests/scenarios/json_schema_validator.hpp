// As much of JSON Schema (draft 2020-12) as our own schema uses; a keyword it does not know is an error, so that
// nothing in the schema goes unchecked.
#pragma once

#include <string>
#include <vector>

#include "protocols/event.hpp"

namespace leafcutter::scenarios::testing {

/// What is wrong with `value`: "/services/shop: unknown property \"prots\"". Empty: valid.
std::vector<std::string> validate(const protocols::Value& schema, const protocols::Value& value);

}  // namespace leafcutter::scenarios::testing
