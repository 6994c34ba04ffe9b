// What is written down of an allowed request before it is carried out: how it will be applied, checked and undone, and
// what was there before. Looks at the host, changes nothing of it but the folder of its own state.
#pragma once

#include "node/host/actions/action.hpp"
#include "node/host/actions/execute.hpp"

namespace leafcutter::node::host {

struct Recipe {
  Json json;
  std::chrono::nanoseconds lasts{0};  ///< after that it is undone
  base::UniqueFd process;             ///< of a signal: the process, held since it was looked at
};

/// Errors: why nothing can be done; nothing has been.
base::Expected<Recipe> prepare_recipe(const Profile& profile, const Request& request, const Decision& decision,
                                      const State& state, const std::string& id);

CommandLine command_line_of(const CommandEntry& entry, std::vector<std::string> argv);

}  // namespace leafcutter::node::host
