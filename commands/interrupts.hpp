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
  /// Which came first: SIGINT or SIGTERM; 0: none.
  int number() const { return number_; }
  /// Readable when wait() would not have to.
  int fd() const { return fd_.get(); }

 private:
  base::UniqueFd fd_;
  bool seen_ = false;
  int number_ = 0;
};

}  // namespace leafcutter::commands
