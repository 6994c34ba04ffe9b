// The program's own configuration: what is not part of a scenario. Defaults, then a file, then the command line.
#pragma once

#include <chrono>
#include <string>

#include "base/error.hpp"

namespace leafcutter::config {

struct Config {
  unsigned slots = 0;                     ///< leaves at a time; 0: four times the cores, since most leaves wait
  std::string out = ".leafcutter";        ///< ledger, traces, reports
  std::string listen = "127.0.0.1:4730";  ///< coordinator: control (CAF)
  std::string events = "127.0.0.1:4731";  ///< coordinator: event stream (ZeroMQ)
  std::chrono::nanoseconds lease_time = std::chrono::seconds(20);
};

/// Reads a YAML file over the defaults; unknown keys and wrong types are bad_input with their place. A `path` that does
/// not exist is an error only when `required`.
base::Expected<Config> load(const std::string& path, bool required);

/// $XDG_CONFIG_HOME/leafcutter/config.yaml or ~/.config/leafcutter/config.yaml; empty when neither variable is set.
std::string default_path();

/// `slots`, or four times this machine's cores.
unsigned effective_slots(unsigned slots);

}  // namespace leafcutter::config
