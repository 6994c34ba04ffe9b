// SIGINT and SIGTERM as something to wait for. To be constructed before any thread is started, so that none of them
// takes the signals.
#pragma once

#include <chrono>

#include "base/unique_fd.hpp"

namespace leafcutter::commands {

class Interrupts {
 public:
  Interrupts();

  /// Waits up to `within` for a signal; true when one came, now or earlier.
  bool wait(std::chrono::milliseconds within);
  bool seen() const { return seen_; }

 private:
  base::UniqueFd fd_;
  bool seen_ = false;
};

}  // namespace leafcutter::commands
