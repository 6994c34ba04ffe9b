// The SCENARIO argument of a command, with what may be changed of it on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "commands/commands.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::commands {

struct ScenarioArgument {
  std::string path;
  std::string variant;
  std::optional<std::uint64_t> seed;

  void add_to(CLI::App& command);

  /// Loads and checks it; every mistake is printed. nullopt: the context's exit code says why (2).
  std::optional<scenarios::Scenario> load(Context& context) const;
};

}  // namespace leafcutter::commands
