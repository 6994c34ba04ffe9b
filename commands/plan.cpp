// leafcutter plan: the space a scenario asks to explore, as a tree with counts; with --probe, one fault-free leaf is
// run to count the sites and to estimate the cost.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "base/text.hpp"
#include "commands/commands.hpp"
#include "commands/engine.hpp"
#include "commands/leaf_runner.hpp"
#include "commands/output.hpp"
#include "commands/scenario_argument.hpp"
#include "coordinator/search/epochs.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/rule.hpp"
#include "scenarios/verdict.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::commands {
namespace {

struct PlanOptions {
  ScenarioArgument scenario;
  std::string out, format = "text";
  bool probe = false;
  std::uint64_t max_leaves = 0;
  unsigned slots = 0;
};

using coordinator::Value;

/// What a probe learned.
struct Probe {
  coordinator::EpochHeader singles;
  std::chrono::milliseconds leaf{0};
};

base::Expected<Probe> probe(const scenarios::Scenario& scenario, const std::string& out) {
  if (const auto capable = require_capabilities(); !capable) return capable.error();
  const auto folders = make_folders(out, "probe", Keep::nothing);
  if (!folders) return folders.error();
  const auto runner = LeafRunner::start(*folders, scenario);
  if (!runner) return runner.error();
  const auto baseline = coordinator::baseline_epoch(scenario, scenarios::identity(scenario));
  const auto run = (*runner)->run(baseline.campaign + "/0/0", coordinator::plan_of(baseline, 0));
  if (!run) return run.error();
  if (run->judgement.verdict != scenarios::Verdict::pass)
    return base::Error{base::ErrorCode::unavailable, "the fault-free leaf did not pass: " + run->judgement.detail, {}};
  coordinator::LeafOutcome outcome;
  outcome.sites = coordinator::sites_of(run->events);
  const std::vector outcomes(baseline.leaves, outcome);
  return Probe{coordinator::singles_epoch(scenario, baseline, outcomes, ~std::uint64_t{0}), run->wall};
}

Value describe(const scenarios::Scenario& scenario, const std::optional<Probe>& probed, unsigned slots) {
  Value lanes = Value::object();
  for (const auto& choice : scenario.explore.faults) {
    auto& entry = lanes[choice.lane];
    const auto name = choice.kind + (choice.params.empty() ? "" : choice.params.dump()) + " on " + choice.operation;
    entry[name] = nullptr;
  }
  for (const auto& rule : scenario.explore.rules) lanes[rule.site.lane]["rule " + scenarios::rule_text(rule)] = nullptr;
  Value out = {
      {"scenario", scenario.name},
      {"choices", lanes},
      {"at_once", scenario.explore.at_once},
      {"occurrences", scenario.explore.occurrences},
      {"budget", {{"leaves", scenario.explore.max_leaves}, {"time", base::format_duration(scenario.explore.max_time)}}},
      {"baselines", coordinator::baseline_leaves}};
  for (const auto& way : scenario.ways_out) out["egress"].push_back(scenarios::way_out_text(way));
  if (!probed) return out;
  Value sites = Value::array();
  for (const auto& site : probed->singles.sites) sites.push_back({{"site", site.site.text()}, {"count", site.count}});
  const auto singles = probed->singles.candidates.size();
  const std::uint64_t pairs = scenario.explore.at_once >= 2 ? singles * (singles > 0 ? singles - 1 : 0) : 0;
  const auto space = coordinator::baseline_leaves + singles + pairs;
  const auto leaves = std::min<std::uint64_t>(space, scenario.explore.max_leaves);
  out["sites"] = sites;
  out["singles"] = singles;
  out["ordered_pairs_at_most"] = pairs;
  out["leaves_at_most"] = leaves;
  out["leaf_ms"] = probed->leaf.count();
  out["estimated_ms"] = leaves * static_cast<std::uint64_t>(probed->leaf.count()) / std::max(1u, slots);
  return out;
}

std::string as_text(const Value& plan) {
  auto text = fmt::format("{}: at most {} leaves, {}\n", plan["scenario"].get<std::string>(),
                          plan["budget"]["leaves"].get<std::uint64_t>(), plan["budget"]["time"].get<std::string>());
  text += fmt::format("├─ {} fault-free baselines, which find the sites\n", plan["baselines"].get<std::uint64_t>());
  text +=
      fmt::format("├─ choices, each at every site it fits, occurrences 1 to {}\n", plan["occurrences"].get<unsigned>());
  for (const auto& [lane, choices] : plan["choices"].items()) {
    text += "│  ├─ " + lane + "\n";
    for (const auto& [choice, unused] : choices.items()) text += "│  │  ├─ " + choice + "\n";
  }
  if (plan.contains("egress")) {
    text += "├─ leaves depend on what is outside of them\n";
    for (const auto& way : plan["egress"]) text += "│  ├─ " + way.get<std::string>() + "\n";
  }
  if (!plan.contains("sites"))
    return text +
           "└─ how many leaves that makes depends on the sites: add --probe to run one fault-free leaf and count\n";
  text += fmt::format("├─ {} sites\n", plan["sites"].size());
  for (const auto& site : plan["sites"])
    text += fmt::format("│  ├─ {}  x{}\n", site["site"].get<std::string>(), site["count"].get<unsigned>());
  text += fmt::format(
      "├─ {} single faults\n├─ at most {} ordered pairs (fewer: unreachable, symmetric and already failing ones are "
      "not run)\n",
      plan["singles"].get<std::uint64_t>(), plan["ordered_pairs_at_most"].get<std::uint64_t>());
  return text + fmt::format("└─ at most {} leaves of about {} ms: about {:.1f} s\n",
                            plan["leaves_at_most"].get<std::uint64_t>(), plan["leaf_ms"].get<std::uint64_t>(),
                            static_cast<double>(plan["estimated_ms"].get<std::uint64_t>()) / 1000);
}

int show_plan(const PlanOptions& options, Context& context) {
  const auto scenario = options.scenario.load(context);
  if (!scenario) return context.exit_code;
  std::optional<Probe> probed;
  if (options.probe) {
    auto result = probe(*scenario, options.out.empty() ? context.config.out : options.out);
    if (!result) return fail(result.error());
    probed = std::move(*result);
  }
  const auto plan =
      describe(*scenario, probed, config::effective_slots(options.slots != 0 ? options.slots : context.config.slots));
  if (!print(options.format == "json" ? plan.dump(2) + "\n" : as_text(plan)))
    return scenarios::exit_codes::inconclusive;
  const auto leaves = plan.value("leaves_at_most", scenario->explore.max_leaves);
  if (options.max_leaves != 0 && leaves > options.max_leaves) {
    print_error({base::ErrorCode::bad_input,
                 fmt::format("{} leaves are more than --max-leaves {}", leaves, options.max_leaves),
                 {}});
    return scenarios::exit_codes::bad_input;
  }
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("plan", "show the space that a scenario explores, and what it would cost");
  auto options = std::make_shared<PlanOptions>();
  options->scenario.add_to(*command);
  command->add_flag("--probe", options->probe, "run one fault-free leaf to count the sites and measure a leaf");
  command->add_option("--max-leaves", options->max_leaves, "exit 2 when it would take more")->type_name("N");
  command->add_option("--slots", options->slots, "leaves at a time, for the estimate")->check(CLI::Range(1, 1024));
  command->add_option("--out", options->out, "folder for the probe's sockets (default: .leafcutter)")->type_name("DIR");
  command->add_option("--format", options->format)->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  command->callback([options, &context] { context.exit_code = show_plan(*options, context); });
}

}  // namespace leafcutter::commands
