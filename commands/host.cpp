// leafcutter host: what this node's profile lets it do to its host, by hand and without a coordinator.
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.hpp"
#include "commands/folders.hpp"
#include "commands/host_commands.hpp"
#include "commands/interrupts.hpp"
#include "commands/output.hpp"
#include "node/host/actions/action.hpp"
#include "node/host/actions/keeper.hpp"

namespace leafcutter::commands {
namespace {

namespace host = node::host;
using protocols::Outcome;
using Json = nlohmann::json;

struct HostOptions {
  std::string action, profile, duration, state, session, format = "text";
  std::vector<std::string> arguments;
  bool detach = false;
};

/// It must survive a reboot: what is undone after one is written there.
std::string state_folder(const HostOptions& options) {
  if (!options.state.empty()) return options.state;
  if (::geteuid() == 0) return "/var/lib/leafcutter/host";
  if (const char* base = std::getenv("XDG_STATE_HOME"); base != nullptr && *base != '\0')
    return std::string(base) + "/leafcutter/host";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr && *home != '\0' ? home : ".") + "/.local/state/leafcutter/host";
}

std::string user_name() {
  const auto* user = ::getpwuid(::getuid());
  return user != nullptr ? user->pw_name : std::to_string(::getuid());
}

std::string as_text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::optional<host::Profile> profile_of(const HostOptions& options) {
  auto loaded = host::load_profile_file(options.profile);
  for (const auto& error : loaded.errors) print_error(error);
  return loaded.profile;
}

/// "workers=2" for every action but `command`, whose arguments are the vector as it is.
base::Expected<host::Request> request_of(const HostOptions& options) {
  host::Request request;
  request.action = options.action;
  if (!options.duration.empty()) {
    const auto duration = base::parse_duration(options.duration);
    if (!duration) return base::Error{base::ErrorCode::bad_input, duration.error().message, {"--for", 0, 0}};
    request.duration = *duration;
  }
  if (options.action == "command") {
    request.argv = options.arguments;
    return request;
  }
  for (const auto& argument : options.arguments) {
    const auto at = argument.find('=');
    if (at == std::string::npos || at == 0)
      return base::Error{
          base::ErrorCode::bad_input,
          "\"" + argument + "\" is no parameter; " + options.action + " takes NAME=VALUE, such as workers=2",
          {}};
    if (!request.parameters.emplace(argument.substr(0, at), argument.substr(at + 1)).second)
      return base::Error{base::ErrorCode::bad_input, "parameter \"" + argument.substr(0, at) + "\" is given twice", {}};
  }
  return request;
}

/// Denied: nothing ran. Failure: it ran, and that is a finding. The rest says nothing.
int exit_code_of_outcome(Outcome outcome) {
  switch (outcome) {
    case Outcome::none:
    case Outcome::success: return 0;
    case Outcome::denied: return 2;
    case Outcome::failure: return 1;
    case Outcome::timed_out:
    case Outcome::lost: return 3;
  }
  return 3;
}

std::string said_of(const host::ActionResult& result) {
  const std::string outcome = result.outcome == Outcome::none ? "in-force" : protocols::outcome_name(result.outcome);
  return outcome + (result.detail.empty() ? "" : ": " + result.detail) + "\n";
}

int run_action(const HostOptions& options) {
  const auto profile = profile_of(options);
  if (!profile) return 2;
  const auto request = request_of(options);
  if (!request) return fail(request.error());
  Interrupts interrupts;
  host::ActionOptions action;
  action.program = own_program();
  action.owner = "user " + user_name();
  action.session = options.session;
  action.stop = interrupts.fd();
  action.detach = options.detach;
  auto actions = host::HostActions::open(state_folder(options), *profile, action);
  if (!actions) return fail(actions.error());
  const auto result = actions->run(*request);
  bool printed = false;
  if (options.format == "json") {
    Json out = {{"action", options.action},
                {"id", result.id},
                {"outcome", result.outcome == Outcome::none ? "in-force" : protocols::outcome_name(result.outcome)},
                {"detail", result.detail},
                {"resource", result.resource}};
    if (options.action == "command") out["output"] = result.output;
    if (options.action == "probe") out["seen"] = result.seen;
    printed = print(as_text(out));
  } else {
    printed = print(result.output + said_of(result));
  }
  return printed ? exit_code_of_outcome(result.outcome) : 3;
}

int list_actions(const HostOptions& options) {
  const auto profile = profile_of(options);
  if (!profile) return 2;
  Json out = {{"profile", profile->name}, {"digest", profile->digest}, {"features", profile->features},
              {"tiers", profile->tiers},  {"pools", profile->pools},   {"actions", Json::object()}};
  auto& actions = out["actions"];
  const auto span = [](std::chrono::nanoseconds time) { return base::format_duration(time); };
  for (const auto& [name, target] : profile->signal)
    actions["signal"][name] = {{"pid-file", target.pid_file}, {"signals", target.signals}};
  if (profile->cpu) actions["cpu"] = {{"for", span(profile->cpu->longest)}, {"workers", profile->cpu->most}};
  if (profile->memory)
    actions["memory"] = {{"for", span(profile->memory->longest)}, {"megabytes", profile->memory->most}};
  if (profile->disk)
    actions["disk"] = {
        {"for", span(profile->disk->longest)}, {"megabytes", profile->disk->most}, {"folders", profile->disk->folders}};
  if (profile->network)
    actions["network"] = {{"for", span(profile->network->longest)}, {"interfaces", profile->network->interfaces}};
  for (const auto& [name, probe] : profile->probes)
    actions["probe"][name] = probe.host + ":" + std::to_string(probe.port);
  for (const auto& [name, configuration] : profile->configurations)
    for (const auto& [variant, unused] : configuration.variants) actions["configure"][name].push_back(variant);
  for (const auto& [name, unused] : profile->services) actions["restart"].push_back(name);
  for (const auto& entry : profile->commands) {
    auto& vector = actions["command"][entry.name];
    vector.push_back(entry.program);
    for (const auto& argument : entry.arguments)
      vector.push_back(argument.kind == host::Argument::Kind::exact ? argument.text : "<" + argument.expected() + ">");
  }
  if (options.format == "json") return print(as_text(out)) ? 0 : 3;
  std::string text = "profile " + profile->name + "\n";
  for (const auto& [action, what] : actions.items()) text += fmt::format("{:<10} {}\n", action, what.dump());
  return print(text) ? 0 : 3;
}

int recover_all(const HostOptions& options) {
  const auto state = host::State::open(state_folder(options));
  if (!state) return fail(state.error());
  const auto done = host::recover(*state, own_program(), true);
  const bool clean = done.left.empty();
  bool printed = false;
  if (options.format == "json") {
    printed = print(as_text(
        {{"undone", done.undone}, {"held", done.held}, {"left", done.left}, {"clean", clean && done.held.empty()}}));
  } else {
    std::string text;
    for (const auto& id : done.undone) text += "undone " + id + "\n";
    for (const auto& id : done.held) text += "held   " + id + " (its actor is at it)\n";
    for (const auto& id : done.left) text += "LEFT   " + id + "\n";
    printed = print(text.empty() ? "nothing was left\n" : text);
  }
  return printed && clean ? 0 : 3;
}

int show_status(const HostOptions& options) {
  const auto state = host::State::open(state_folder(options));
  if (!state) return fail(state.error());
  const auto listing = state->list();
  Json out = {{"keeper", static_cast<bool>(host::keeper_of(*state))},
              {"intents", Json::array()},
              {"unreadable", listing.unreadable}};
  std::string text = out["keeper"].get<bool>() ? "a keeper watches\n" : "no keeper is needed\n";
  if (!listing.intents.empty() && !out["keeper"].get<bool>()) text = "NO KEEPER; run: leafcutter host recover\n";
  for (const auto& intent : listing.intents) {
    const auto left =
        std::chrono::milliseconds(std::max<std::int64_t>(intent.deadline - host::boot_time(), 0) / 1'000'000);
    const bool overdue = intent.overdue();
    out["intents"].push_back({{"id", intent.id},
                              {"action", intent.action},
                              {"resource", intent.resource},
                              {"owner", intent.owner},
                              {"overdue", overdue},
                              {"milliseconds-left", overdue ? 0 : left.count()}});
    text += fmt::format("{} {} ({}), {}\n", intent.id, intent.resource, intent.owner,
                        overdue ? "overdue" : "undone in " + base::format_duration(left));
  }
  for (const auto& path : listing.unreadable) text += "UNREADABLE " + path + "\n";
  return print(options.format == "json" ? as_text(out) : text) ? 0 : 3;
}

void add_format(CLI::App* command, const std::shared_ptr<HostOptions>& options) {
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
}
void add_state(CLI::App* command, const std::shared_ptr<HostOptions>& options) {
  command->add_option(
      "--state", options->state,
      "where intents and the audit log are (default: /var/lib/leafcutter/host, or in the user's state folder)");
}
void add_profile(CLI::App* command, const std::shared_ptr<HostOptions>& options) {
  command->add_option("--profile", options->profile, "what this node may do")->required();
}

}  // namespace

void add_host(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("host", "act on this host, as far as its profile allows");
  command->require_subcommand(1);
  auto options = std::make_shared<HostOptions>();
  auto* actions = command->add_subcommand("actions", "list what the profile allows");
  add_profile(actions, options);
  add_format(actions, options);
  actions->callback([options, &context] { context.exit_code = list_actions(*options); });
  auto* run = command->add_subcommand("run", "carry out one action, undo it, and see it gone");
  run->add_option("ACTION", options->action, base::join_names(host::action_names()))->required();
  run->add_option("ARGUMENTS", options->arguments, "NAME=VALUE; of `command`, the program and its arguments");
  add_profile(run, options);
  run->add_option("--for", options->duration, "how long, such as 30s");
  run->add_option("--session", options->session, "in which a recovery must have worked (default: since this boot)");
  run->add_flag("--detach", options->detach, "return once it is in force; its keeper undoes it");
  add_state(run, options);
  add_format(run, options);
  run->footer(
      "Exit codes: 0 success, 1 failure (it ran), 2 denied (nothing ran), 3 timed out, or lost.\n"
      "Arguments that begin with a dash come after \"--\": leafcutter host run --profile FILE command -- /bin/ls -l");
  run->callback([options, &context] { context.exit_code = run_action(*options); });
  auto* recover = command->add_subcommand("recover", "undo whatever an action has left");
  add_state(recover, options);
  add_format(recover, options);
  recover->callback([options, &context] { context.exit_code = recover_all(*options); });
  auto* status = command->add_subcommand("status", "what is in force, and until when");
  add_state(status, options);
  add_format(status, options);
  status->callback([options, &context] { context.exit_code = show_status(*options); });
}

}  // namespace leafcutter::commands
