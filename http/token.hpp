// The token that an HTTP address outside of loopback needs. It is read from a file or the environment, never from the
// command line, which every process of the host can read.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::http {

/// From `file` (its first line) or, when that is empty, from the environment's `variable`; empty when neither is there.
/// An error: the file cannot be read, or the token is too short or is none that a header can carry.
base::Expected<std::string> read_token(const std::string& file, const char* variable);

/// Whether the header says `Bearer TOKEN`; takes as long for a wrong one as for the right one.
bool is_bearer_of(std::string_view authorization, std::string_view token);

}  // namespace leafcutter::http
