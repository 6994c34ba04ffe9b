// The rules of `leafcutter exec`: read from the command line and from files, with every mistake marked at its place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::commands {

struct RuleSources {
  std::vector<std::string> rules;  ///< of --fault
  std::vector<std::string> files;  ///< of --rules: one rule a line; empty lines and lines that begin with # are none
  std::uint64_t seed = 1;
  bool with_image = false;  ///< what was synced is known: --data
};

struct ReadRules {
  scenarios::Plan plan;
  std::vector<base::Error> errors;  ///< every mistake, each with its rule and marks below it
};

ReadRules read_rules(const RuleSources& sources);

/// "write, fsync" and "write fsync" and repeated: names of families. Errors: bad_input.
base::Expected<std::vector<std::string>> read_families(const std::vector<std::string>& given);

}  // namespace leafcutter::commands
