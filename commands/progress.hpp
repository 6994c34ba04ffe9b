// How a campaign stands, for whoever watches: one line that is rewritten on a terminal, plain lines on a pipe.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "actors/messages.hpp"

namespace leafcutter::commands {

/// "singles  37/64 leaves  12.4/s  2 failing  1 finding  ETA 2s"
std::string progress_text(const actors::Progress& progress);

class ProgressLine {
 public:
  /// `terminal`: rewrite one line on standard error; otherwise a line at each new phase and every five seconds.
  explicit ProgressLine(bool terminal) : terminal_(terminal) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const actors::Progress& progress);
  /// Leaves the terminal clean for what follows.
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
  std::string phase_, note_, last_;
  std::optional<std::chrono::steady_clock::time_point> printed_;
};

}  // namespace leafcutter::commands
