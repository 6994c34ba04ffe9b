// A TCP connection to a host, in bounded time.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::actors {

/// To the first of the host's addresses that answers, of four at most, with three seconds for each; non-blocking.
/// Errors: io, timeout.
base::Expected<base::UniqueFd> dial(const std::string& host, std::uint16_t port);

}  // namespace leafcutter::actors
