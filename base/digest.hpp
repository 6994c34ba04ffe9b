// SHA-256 of bytes, as lower-case hex.
#pragma once

#include <string>
#include <string_view>

namespace leafcutter::base {

/// 64 hex digits.
std::string sha256(std::string_view bytes);

}  // namespace leafcutter::base
