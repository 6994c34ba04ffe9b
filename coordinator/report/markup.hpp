// Text inside XML and HTML.
#pragma once

#include <string>
#include <string_view>

#include "protocols/event.hpp"

namespace leafcutter::coordinator {

/// For content and attribute values of XML 1.0 and HTML: valid UTF-8, no control characters but tab and newline.
std::string escape(std::string_view text);

/// JSON that cannot end the script element it stands in.
std::string script_json(const protocols::Value& value);

}  // namespace leafcutter::coordinator
