// leafcutter run: the main job, coordinator and one node in this process.
#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <memory>

#include "commands/commands.hpp"
#include "commands/engine.hpp"
#include "commands/interrupts.hpp"
#include "commands/output.hpp"
#include "commands/scenario_argument.hpp"
#include "coordinator/actors/coordinator.hpp"
#include "node/actors/node.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

struct RunOptions {
  ScenarioArgument scenario;
  std::string out, format = "text";
  unsigned slots = 0;
};

/// The actors' part. Everything in it has ended, and let go of the ledger, when it returns.
base::Expected<std::string> explore(const scenarios::Scenario& scenario, const Folders& folders,
                                    const config::Config& config, unsigned slots, Interrupts& interrupts,
                                    bool& interrupted) {
  const auto capabilities = require_capabilities();
  if (!capabilities) return capabilities.error();
  const auto events = "ipc://" + folders.run + "/intake";

  actors::SystemConfig system_config(false);
  caf::actor_system system{system_config};
  coordinator::CoordinatorOptions coordinator_options;
  coordinator_options.folder = folders.out;
  coordinator_options.events_endpoint = events;
  coordinator_options.lease_time = std::chrono::duration_cast<caf::timespan>(config.lease_time);
  auto coordinator = coordinator::spawn_coordinator(system, coordinator_options);
  if (!coordinator) return coordinator.error();
  auto parts = start_node_parts(folders, "local", events);
  if (!parts) {
    caf::anon_send_exit(*coordinator, caf::exit_reason::user_shutdown);
    return parts.error();
  }
  auto node = node::spawn_node(system, node_options("local", slots, config, *capabilities), parts->launcher,
                               parts->courier, *coordinator);

  auto campaign = follow_campaign(system, *coordinator, campaign_request(scenario), interrupts, interrupted);
  caf::anon_send_exit(node, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(*coordinator, caf::exit_reason::user_shutdown);
  return campaign;
}

int run(const RunOptions& options, Context& context) {
  const auto scenario = options.scenario.load(context);
  if (!scenario) return context.exit_code;
  Interrupts interrupts;
  const auto folders = make_folders(options.out.empty() ? context.config.out : options.out, "local");
  if (!folders) return fail(folders.error());
  bool interrupted = false;
  const auto campaign = explore(*scenario, *folders, context.config, options.slots, interrupts, interrupted);
  if (!campaign) return fail(campaign.error());
  return report_campaign(folders->out, *campaign, *scenario, interrupted, options.format);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("run", "explore a scenario on this machine and report what was found");
  auto options = std::make_shared<RunOptions>();
  options->scenario.add_to(*command);
  command->add_option("--slots", options->slots, "leaves at a time (default: four times the cores)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--out", options->out, "folder for ledger, traces and reports (default: .leafcutter)")
      ->type_name("DIR");
  command->add_option("--format", options->format, "what goes to standard output")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->callback([options, &context] { context.exit_code = run(*options, context); });
}

}  // namespace leafcutter::commands
