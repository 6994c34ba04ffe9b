// The commands about this host: what its profile lets a node do, and the log of what was done.
#pragma once

#include "commands/commands.hpp"

namespace leafcutter::commands {

void add_host(CLI::App& app, Context& context);
void add_audit(CLI::App& app, Context& context);

}  // namespace leafcutter::commands
