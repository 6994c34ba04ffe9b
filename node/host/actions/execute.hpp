// Executes one argument vector: no shell, no environment but the one given, a deadline, and an end that says what was
// seen, never what was printed.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace leafcutter::node::host {

struct CommandLine {
  std::vector<std::string> argv;  ///< argv[0]: an absolute path
  std::string sha256;             ///< of the program; empty: not looked at
  std::vector<std::pair<std::string, std::string>> environment;
  std::string folder = "/";
  std::chrono::nanoseconds within = std::chrono::seconds(30);
};

nlohmann::json to_json(const CommandLine& line);
CommandLine command_line_from(const nlohmann::json& json);

struct CommandEnd {
  enum class How {
    not_executed,  ///< nothing ran; `error` says why
    exited,        ///< `status`
    killed,        ///< by signal `status`
    timed_out,     ///< it was killed at its deadline, or when `stop` became readable
    lost           ///< it is not known how it ended
  } how = How::lost;
  int status = 0;
  std::string error;
  std::string output;  ///< standard output and error, the first 64 KiB

  bool good() const { return how == How::exited && status == 0; }
  /// "exit status 3", "killed by signal 9", ...
  std::string text() const;
};

struct ExecuteOptions {
  int stop = -1;               ///< readable or closed at the other end: it is ended
  bool fresh_network = false;  ///< in a network namespace of its own, for trying things
  bool own_session = true;     ///< a session of its own; else the caller's
  std::string input = {};      ///< what it reads from standard input
};

/// It is killed when its caller dies; what it has started is killed with it at the deadline, as far as it has stayed in
/// its process group.
CommandEnd execute(const CommandLine& line, const ExecuteOptions& options = {});

}  // namespace leafcutter::node::host
