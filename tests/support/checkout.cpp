#include "tests/support/checkout.hpp"

#include <cstdlib>

namespace leafcutter::tests {

std::string checkout() {
  const char* elsewhere = std::getenv("LEAFCUTTER_CHECKOUT");
  return elsewhere != nullptr ? elsewhere : LEAFCUTTER_SOURCE_DIR;
}

}  // namespace leafcutter::tests
