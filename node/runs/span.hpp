// Spans of time as Run documents write them: "250ms", "1m 30s", "2 hours", "1.5s".
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::node::runs {

inline constexpr const char* span_noun = "a duration such as 250ms, 30s or 1m 30s, longer than none";

/// What such a span looks like, as an anchored RE2/ECMA pattern; spans of no length do not match.
const std::string& span_pattern();

/// `text` matches the pattern. Errors: longer than a century, or shorter than a nanosecond.
base::Expected<std::chrono::nanoseconds> parse_span(std::string_view text);

}  // namespace leafcutter::node::runs
