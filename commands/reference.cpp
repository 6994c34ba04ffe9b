// leafcutter faults, leafcutter schema: what the program knows of its own language.
#include "commands/commands.hpp"
#include "commands/output.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::commands {

void add_reference(CLI::App& app, Context& context) {
  auto* faults = app.add_subcommand("faults", "list the kinds of faults and syscall families (Markdown)");
  faults->callback([&context] { context.exit_code = print(scenarios::faults_page()) ? 0 : 3; });
  auto* schema = app.add_subcommand("schema", "print the JSON Schema of scenarios, for editors");
  schema->callback([&context] { context.exit_code = print(scenarios::json_schema().dump(2) + "\n") ? 0 : 3; });
}

}  // namespace leafcutter::commands
