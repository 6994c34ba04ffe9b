// Small things with text that every room needs: the nearest known name, durations as a user writes them, files.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace leafcutter::base {

/// The candidate within an edit distance (Damerau-Levenshtein, adjacent transpositions) of a third of its length, the
/// nearest first in the given order.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "300ms", "5s", "2m", "1h", "250us", "10ns": a non-negative whole number and a unit.
Expected<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// The shortest exact form that parse_duration reads back.
std::string format_duration(std::chrono::nanoseconds duration);

/// "a, b and c".
std::string join_names(const std::vector<std::string>& names);

Expected<std::string> read_file(const std::string& path);

/// Writes beside `path`, syncs and renames over it: a reader sees the old bytes or the new, never a part.
Status write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace leafcutter::base
