// leafcutter coordinator and leafcutter node: the two halves of `run` as processes of their own, over loopback.
#include <fmt/format.h>
#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <cstdio>
#include <memory>

#include "base/text.hpp"
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

struct CoordinatorCommand {
  ScenarioArgument scenario;
  std::string listen, events, out, format = "text";
};

struct NodeCommand {
  std::string join, events, name, out;
  unsigned slots = 0;
};

/// Both addresses of a coordinator, loopback or refused.
struct Endpoints {
  actors::HostPort control;
  std::string events;
};

base::Expected<Endpoints> endpoints(const std::string& control, const std::string& events) {
  Endpoints out;
  auto address = actors::parse_host_port(control);
  if (!address) return address.error();
  if (auto loopback = actors::require_loopback(*address); !loopback) return loopback.error();
  out.control = *address;
  const auto stream = actors::parse_host_port(events);
  if (!stream) return stream.error();
  if (auto loopback = actors::require_loopback(*stream); !loopback) return loopback.error();
  out.events = "tcp://" + events;
  return out;
}

base::Expected<std::string> coordinate(const scenarios::Scenario& scenario, const Folders& folders, const Endpoints& at,
                                       const config::Config& config, Interrupts& interrupts, bool& interrupted) {
  actors::SystemConfig system_config(true);
  caf::actor_system system{system_config};
  coordinator::CoordinatorOptions options;
  options.folder = folders.out;
  options.events_endpoint = at.events;
  options.lease_time = std::chrono::duration_cast<caf::timespan>(config.lease_time);
  auto coordinator = coordinator::spawn_coordinator(system, options);
  if (!coordinator) return coordinator.error();
  auto published = coordinator::publish_coordinator(system, *coordinator, at.control.host, at.control.port);
  if (!published) {
    caf::anon_send_exit(*coordinator, caf::exit_reason::user_shutdown);
    return published.error();
  }
  std::fprintf(stderr, "coordinator: nodes join %s:%u\n", at.control.host.c_str(),
               static_cast<unsigned>(at.control.port));
  auto campaign = follow_campaign(system, *coordinator, campaign_request(scenario), interrupts, interrupted);
  caf::anon_send_exit(*coordinator, caf::exit_reason::user_shutdown);
  return campaign;
}

int run_coordinator(const CoordinatorCommand& options, Context& context) {
  const auto at = endpoints(options.listen.empty() ? context.config.listen : options.listen,
                            options.events.empty() ? context.config.events : options.events);
  if (!at) return fail(at.error());
  const auto scenario = options.scenario.load(context);
  if (!scenario) return context.exit_code;
  Interrupts interrupts;
  const auto folders = make_folders(options.out.empty() ? context.config.out : options.out, "coordinator");
  if (!folders) return fail(folders.error());
  bool interrupted = false;
  const auto campaign = coordinate(*scenario, *folders, *at, context.config, interrupts, interrupted);
  if (!campaign) return fail(campaign.error());
  return report_campaign(folders->out, *campaign, *scenario, interrupted, options.format);
}

int run_node(const NodeCommand& options, Context& context) {
  const auto at = endpoints(options.join, options.events.empty() ? context.config.events : options.events);
  if (!at) return fail(at.error());
  const auto capabilities = require_capabilities();
  if (!capabilities) return fail(capabilities.error());
  Interrupts interrupts;
  const auto name = options.name.empty() ? "node-" + std::to_string(::getpid()) : options.name;
  const auto folders = make_folders(options.out.empty() ? context.config.out : options.out, name);
  if (!folders) return fail(folders.error());
  auto parts = start_node_parts(*folders, name, at->events);
  if (!parts) return fail(parts.error());

  actors::SystemConfig system_config(true);
  caf::actor_system system{system_config};
  auto node_options = commands::node_options(name, options.slots, context.config, *capabilities);
  node_options.on_news = [name](const std::string& news) {
    std::fprintf(stderr, "node %s: %s\n", name.c_str(), news.c_str());
  };
  auto node =
      node::connect_node(system, node_options, parts->launcher, parts->courier, at->control.host, at->control.port);
  std::fprintf(stderr, "node %s: %u slots, for %s\n", name.c_str(), node_options.slots, options.join.c_str());
  while (!interrupts.wait(std::chrono::seconds(1))) {
  }
  std::fprintf(stderr, "node %s: draining\n", name.c_str());
  caf::scoped_actor self{system};
  self->send(node, actors::drain_atom_v);
  self->wait_for(node);
  const auto left = parts->courier->flush(std::chrono::seconds(5));
  if (left > 0)
    std::fprintf(stderr, "node %s: the events of %zu executions are still spooled in %s\n", name.c_str(), left,
                 folders->spool.c_str());
  return 0;
}

}  // namespace

void add_coordinator(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("coordinator", "explore a scenario on the nodes that join");
  auto options = std::make_shared<CoordinatorCommand>();
  options->scenario.add_to(*command);
  command->add_option("--listen", options->listen, "where nodes join (default: 127.0.0.1:4730)")
      ->type_name("HOST:PORT");
  command->add_option("--events", options->events, "where nodes stream events to (default: 127.0.0.1:4731)")
      ->type_name("HOST:PORT");
  command->add_option("--out", options->out, "folder for ledger, traces and reports (default: .leafcutter)")
      ->type_name("DIR");
  command->add_option("--format", options->format)->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  command->callback([options, &context] { context.exit_code = run_coordinator(*options, context); });
}

void add_node(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("node", "run leaves for a coordinator until interrupted");
  auto options = std::make_shared<NodeCommand>();
  command->add_option("--join", options->join, "the coordinator")->required()->type_name("HOST:PORT");
  command->add_option("--events", options->events, "the coordinator's event stream (default: 127.0.0.1:4731)")
      ->type_name("HOST:PORT");
  command->add_option("--name", options->name, "this node's name (default: node-PID)")->type_name("NAME");
  command->add_option("--slots", options->slots, "leaves at a time (default: four times the cores)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--out", options->out, "folder for spool and sockets (default: .leafcutter)")->type_name("DIR");
  command->callback([options, &context] { context.exit_code = run_node(*options, context); });
}

}  // namespace leafcutter::commands
