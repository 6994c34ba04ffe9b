// Text for a terminal: columns are counted in code points, never cut within one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "protocols/event.hpp"

namespace leafcutter::coordinator {

std::size_t columns(std::string_view text);

/// At most `width` columns; a cut ends in "…".
std::string fit(std::string_view text, std::size_t width);

/// Exactly `width` columns, filled with spaces on the right.
std::string pad(std::string_view text, std::size_t width);

/// Broken at spaces into at most `lines` lines of at most `width` columns, the last one cut where there is more.
std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t lines);

/// "+12.3ms", "+3.214s".
std::string moment(std::chrono::nanoseconds at);

/// A value as people write it: {id: order-1, total: 3}; at most `limit` columns.
std::string compact(const protocols::Value& value, std::size_t limit);

}  // namespace leafcutter::coordinator
