// The names of runs and of the executions that carry them out. A run is one thing that a campaign wants to know; each
// attempt at it is an execution of its own. See Order in order.hpp for the forms.
#pragma once

#include <optional>
#include <string>

namespace leafcutter::coordinator {

struct RunName {
  std::string run;  ///< "a/1/2#" for the explored leaf itself, else "a/1/2#c1"
  unsigned attempt = 0;
  bool operator==(const RunName&) const = default;
};

std::string execution_of(const RunName& name);

/// nullopt when `execution` is no such name.
std::optional<RunName> parse_execution(const std::string& execution);

}  // namespace leafcutter::coordinator
