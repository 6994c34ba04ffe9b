// Attributes of events as typed values. Events come from outside: an attribute that is missing or of another type reads
// as its absence, never as an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocols/event.hpp"

namespace leafcutter::coordinator {

/// The attribute, or nullptr.
const protocols::Value* attribute(const protocols::Value& attrs, std::string_view name);

std::string text_of(const protocols::Value& attrs, std::string_view name);  ///< "" when it is not text
std::optional<std::int64_t> number_of(const protocols::Value& attrs, std::string_view name);
std::optional<bool> flag_of(const protocols::Value& attrs, std::string_view name);

/// Every byte that is not part of well-formed UTF-8 replaced by U+FFFD: services write what they like, reports must
/// stay valid.
std::string valid_text(std::string_view text);

/// One valid line, at most `limit` bytes, never cut within a UTF-8 sequence; control characters become spaces, a cut
/// ends in "…".
std::string one_line_text(std::string_view text, std::size_t limit);

}  // namespace leafcutter::coordinator
