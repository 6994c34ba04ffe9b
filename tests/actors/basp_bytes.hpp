// Bytes of CAF's protocol as a peer of ill will writes them.
#pragma once

#include <cstdint>
#include <string>

namespace leafcutter::tests {

inline std::string big_endian_bytes(std::uint64_t number, int bytes) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xff);
  return out;
}

struct BaspHeader {
  std::uint8_t operation = 0, flags = 0;
  std::uint32_t payload = 0;
  std::uint64_t data = 0, source = 0, destination = 0;
  std::string bytes() const {
    return big_endian_bytes(operation, 1) + std::string(2, '\0') + big_endian_bytes(flags, 1) +
           big_endian_bytes(payload, 4) + big_endian_bytes(data, 8) + big_endian_bytes(source, 8) +
           big_endian_bytes(destination, 8);
  }
};

/// No way back through others, and a message of these types; then its values.
inline std::string basp_message(const std::string& types, const std::string& values = {}) {
  return std::string(3, '\0') + static_cast<char>(types.size()) + types + values;
}

}  // namespace leafcutter::tests
