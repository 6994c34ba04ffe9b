#include "base/error.hpp"

#include <cstring>

namespace leafcutter::base {

std::string Error::text() const {
  if (where.file.empty()) return message;
  auto out = where.file;
  if (where.line > 0) out += ":" + std::to_string(where.line);
  if (where.line > 0 && where.column > 0) out += ":" + std::to_string(where.column);
  return out + ": " + message;
}

Error system_error(const std::string& what, int error) {
  return {ErrorCode::io, what + ": " + std::strerror(error), {}};
}

}  // namespace leafcutter::base
