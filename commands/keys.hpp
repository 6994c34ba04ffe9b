// leafcutter keys: who belongs to a fleet.
#pragma once

#include "commands/commands.hpp"

namespace leafcutter::commands {

void add_keys(CLI::App& app, Context& context);

}  // namespace leafcutter::commands
