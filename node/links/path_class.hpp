// What of a request's target names its site: requests for different orders are the same place for a fault to strike.
#pragma once

#include <string>
#include <string_view>

namespace leafcutter::node {

struct RequestTarget {
  std::string path;   ///< without scheme, authority and query
  std::string query;  ///< without the question mark
};

/// Splits a request target in any of its forms (RFC 9112, section 3.2).
RequestTarget split_target(std::string_view target);

/// `/orders/order-17` -> `/orders/order-#`: each run of digits becomes `#`, and so does a whole segment that is a UUID
/// or a hexadecimal number of eight digits or more, since the letters of such names change as their digits do. At most
/// 200 bytes.
std::string path_class(std::string_view path);

}  // namespace leafcutter::node
