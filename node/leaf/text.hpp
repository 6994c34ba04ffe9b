// Text that comes out of other people's programs, made fit for events.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "node/leaf/process.hpp"

namespace leafcutter::node {

/// At most `limit` bytes of valid UTF-8; what is not becomes U+FFFD.
std::string clean_text(std::string_view bytes, std::size_t limit);

/// The last line that is not blank, at most 300 bytes of it.
std::string last_line(std::string_view text);

/// "exit status 3", "killed by signal 9", or why it never ran.
std::string describe(const Ending& ending);

}  // namespace leafcutter::node
