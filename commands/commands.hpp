// The command line: every command is registered here and lives in a file of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace leafcutter::commands {

/// What every command works with. `config` is complete by the time a command's callback runs.
struct Context {
  config::Config config;
  int exit_code = 0;
  std::vector<std::string> program;  ///< of `exec`: what follows "--"
  bool pipe_was_ignored = false;     ///< SIGPIPE, before we began to ignore it
};

void add_run(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_exec(CLI::App& app, Context& context);
void add_proxy(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_coordinator(CLI::App& app, Context& context);
void add_node(CLI::App& app, Context& context);
void add_reference(CLI::App& app, Context& context);  ///< faults, schema

/// Parses the command line, runs the command and returns the program's exit code.
int run_program(int argc, char** argv);

}  // namespace leafcutter::commands
