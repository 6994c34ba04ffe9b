// Whole pieces of an open file, at a place: what pread and pwrite do in parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace leafcutter::base {

/// Fills `size` bytes from `offset` on; false when the file ends before that. `what`: "a spilled trace", for messages.
Expected<bool> read_at(int fd, char* out, std::size_t size, std::uint64_t offset, const std::string& what);

/// All of `bytes`.
Status write_at(int fd, std::string_view bytes, std::uint64_t offset, const std::string& what);

}  // namespace leafcutter::base
