#include "commands/commands.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <string_view>

#include "commands/host_commands.hpp"
#include "commands/keys.hpp"
#include "commands/output.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

constexpr const char* about =
    "Leafcutter runs unmodified services many times, each run with its own small set of faults, and finds the "
    "failures\n"
    "they do not survive: the smallest plan that still fails, confirmed, explained and replayable by its address.";

constexpr const char* epilogue =
    "Exit codes: 0 all properties held, 1 at least one finding, 2 bad input (nothing was run), 3 inconclusive or\n"
    "infrastructure only, 130 interrupted (state kept; the same command resumes).\n"
    "Start with:  leafcutter doctor;  leafcutter run SCENARIO";

/// `exec ... -- PROGRAM ARGUMENTS`: the parser would take the arguments for our own. Cuts them off; `argc` is what is
/// left.
std::vector<std::string> cut_program(int& argc, char** argv) {
  int command = 1;
  while (command < argc && argv[command][0] == '-') command += std::string_view(argv[command]) == "--config" ? 2 : 1;
  if (command >= argc || std::string_view(argv[command]) != "exec") return {};
  for (int i = command; i < argc; ++i)
    if (std::string_view(argv[i]) == "--") {
      std::vector<std::string> program(argv + i + 1, argv + argc);
      argc = i;
      return program;
    }
  return {};
}

}  // namespace

int run_program(int argc, char** argv) {
  Context context;
  context.pipe_was_ignored = std::signal(SIGPIPE, SIG_IGN) == SIG_IGN;
  context.program = cut_program(argc, argv);
  std::string config_file;
  CLI::App app{about, "leafcutter"};
  app.footer(epilogue);
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("leafcutter ") + LEAFCUTTER_VERSION);
  app.add_option("--config", config_file, "settings file (default: ~/.config/leafcutter/config.yaml, if there is one)");
  app.fallthrough();

  // Settings come before the command's own callback, and the command line's own options win over them: each command
  // reads context.config only where the user gave nothing.
  app.parse_complete_callback([&] {
    auto loaded = config::load(config_file.empty() ? config::default_path() : config_file, !config_file.empty());
    if (!loaded) {
      print_error(loaded.error());
      throw CLI::RuntimeError(scenarios::exit_codes::bad_input);
    }
    context.config = *loaded;
  });

  add_run(app, context);
  add_plan(app, context);
  add_replay(app, context);
  add_exec(app, context);
  add_proxy(app, context);
  add_report(app, context);
  add_doctor(app, context);
  add_coordinator(app, context);
  add_node(app, context);
  add_host(app, context);
  add_audit(app, context);
  add_keys(app, context);
  add_reference(app, context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    const auto code = app.exit(error);
    return code == 0 ? 0 : scenarios::exit_codes::bad_input;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "leafcutter: %s (a defect of Leafcutter)\n", error.what());
    return scenarios::exit_codes::inconclusive;
  }
  return context.exit_code;
}

}  // namespace leafcutter::commands
