// "${name}" in the strings of a scenario, taken apart.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace leafcutter::scenarios {

struct TemplatePart {
  bool reference = false;
  std::string text;  ///< the literal text, or the name between the braces
};

/// "$${" is a literal "${". Errors: bad_input (a brace that is never closed, an empty name).
base::Expected<std::vector<TemplatePart>> split_template(const std::string& text);

}  // namespace leafcutter::scenarios
