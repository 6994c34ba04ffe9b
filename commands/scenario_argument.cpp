#include "commands/scenario_argument.hpp"

#include <cstdio>

#include "commands/output.hpp"
#include "commands/whole_number.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {

void ScenarioArgument::add_to(CLI::App& command) {
  command.add_option("SCENARIO", path, "a scenario file, or the folder that holds it")->required();
  command.add_option("--variant", variant, "apply the variant NAME that the scenario's services declare")
      ->type_name("NAME");
  command.add_option("--seed", seed, "explore with this seed instead of the scenario's")
      ->check(whole_number())
      ->type_name("N");
}

std::optional<scenarios::Scenario> ScenarioArgument::load(Context& context) const {
  scenarios::LoadOptions options;
  options.variant = variant;
  auto result = scenarios::load_file(path, options);
  for (const auto& warning : result.warnings) print_warning(warning);
  for (const auto& error : result.errors) print_error(error);
  if (!result.scenario || !result.errors.empty()) {
    if (result.errors.size() > 1) std::fprintf(stderr, "%zu mistakes; nothing was run\n", result.errors.size());
    context.exit_code = scenarios::exit_codes::bad_input;
    return std::nullopt;
  }
  if (seed) result.scenario->explore.seed = *seed;
  return std::move(result.scenario);
}

}  // namespace leafcutter::commands
