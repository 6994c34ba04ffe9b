// Where the checkout is that a test reads its data from: it may be shown elsewhere to whoever runs the test.
#pragma once

#include <cstdlib>
#include <string>

namespace leafcutter::tests {

inline std::string checkout() {
  const char* elsewhere = std::getenv("LEAFCUTTER_CHECKOUT");
  return elsewhere != nullptr ? elsewhere : LEAFCUTTER_SOURCE_DIR;
}

}  // namespace leafcutter::tests
