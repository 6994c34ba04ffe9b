// Where the checkout is that a test reads its data from: it may be shown elsewhere to whoever runs the test.
#pragma once

#include <string>

namespace leafcutter::tests {

/// LEAFCUTTER_CHECKOUT, or where this was built.
std::string checkout();

}  // namespace leafcutter::tests
