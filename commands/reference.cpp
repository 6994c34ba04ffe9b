// leafcutter faults, leafcutter schema: what the program knows of its own languages.
#include <memory>

#include "commands/commands.hpp"
#include "commands/output.hpp"
#include "node/host/profile_vocabulary.hpp"
#include "node/runs/vocabulary.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::commands {

void add_reference(CLI::App& app, Context& context) {
  auto* faults = app.add_subcommand("faults", "list the kinds of faults and syscall families (Markdown)");
  faults->callback([&context] { context.exit_code = print(scenarios::faults_page()) ? 0 : 3; });
  auto* schema = app.add_subcommand("schema", "print the JSON Schema of a kind of document, for editors");
  auto document = std::make_shared<std::string>("scenario");
  schema->add_option("DOCUMENT", *document, "scenario, run (of leafcutter proxy), or profile (of a host)")
      ->check(CLI::IsMember({"scenario", "run", "profile"}))
      ->capture_default_str();
  schema->callback([document, &context] {
    const auto value = *document == "run"       ? node::runs::run_json_schema()
                       : *document == "profile" ? node::host::profile_json_schema()
                                                : scenarios::json_schema();
    context.exit_code = print(value.dump(2) + "\n") ? 0 : 3;
  });
}

}  // namespace leafcutter::commands
