// RE2 as patterns of a scenario use it: quiet, bounded in memory, compiled once a thread.
#pragma once

#include <re2/re2.h>

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::scenarios {

/// Errors: bad_input with RE2's own message.
base::Status check_regex(const std::string& regex);

/// Does `regex` match anywhere in `text`? A regex that does not compile matches nothing (the loader has refused it
/// before).
bool regex_search(const std::string& regex, std::string_view text);

}  // namespace leafcutter::scenarios
