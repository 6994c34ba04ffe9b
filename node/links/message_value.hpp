// Bytes of a message as attributes of an event: JSON where it is JSON, bounded valid UTF-8 otherwise.
#pragma once

#include <string>
#include <string_view>

#include "protocols/event.hpp"
#include "protocols/http.hpp"

namespace leafcutter::node {

/// At most `limit` bytes of `bytes`; what is not UTF-8 in them appears as `\xNN`, since events travel as text.
std::string printable(std::string_view bytes, std::size_t limit);

/// Adds `json` (the parsed body, when it is JSON, whole, and nested no deeper than 64) or `body` (its first 4 KiB as
/// text); neither for an empty body.
void add_body(protocols::Value& attrs, const protocols::HttpMessage& message);

}  // namespace leafcutter::node
