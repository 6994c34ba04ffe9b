// leafcutter replay: runs a leaf again by its address (from the scenario, the seed and the epoch headers; no database),
// or a finding's minimal plan by its signature.
#include <fmt/format.h>

#include <memory>

#include "base/text.hpp"
#include "commands/commands.hpp"
#include "commands/engine.hpp"
#include "commands/interrupts.hpp"
#include "commands/leaf_runner.hpp"
#include "commands/output.hpp"
#include "coordinator/minimize/minimize.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

/// Executions that the machine failed and not the plan: so many of them are run once more before one counts.
constexpr unsigned repeated_at_most = 3;

struct ReplayOptions {
  std::string what, out, trace;
  unsigned times = 1;
};

/// What is to be run again.
struct Subject {
  scenarios::Scenario scenario;
  scenarios::Plan plan;
  std::string address;
};

base::Error bad(const std::string& message) { return {base::ErrorCode::bad_input, message, {}}; }

base::Expected<coordinator::Value> read_json(const std::string& path) {
  const auto text = base::read_file(path);
  if (!text) return text.error();
  auto value = coordinator::Value::parse(*text, nullptr, false);
  if (value.is_discarded()) return bad(path + " is not JSON");
  return value;
}

base::Expected<scenarios::Scenario> load_as_recorded(const std::string& file, const std::string& variant,
                                                     const std::string& text, std::uint64_t seed) {
  scenarios::LoadOptions options;
  options.variant = variant;
  auto loaded = scenarios::load_text(text, file, options);
  if (!loaded.scenario) return loaded.errors.front();
  loaded.scenario->explore.seed = seed;
  return std::move(*loaded.scenario);
}

base::Expected<Subject> by_address(const scenarios::Address& address, const std::string& out) {
  const auto folder = out + "/campaigns/" + address.campaign;
  const auto campaign = read_json(folder + "/campaign.json");
  if (!campaign)
    return bad("no campaign " + address.campaign + " in " + out + " (" + campaign.error().message +
               "); --out names the folder it was run with");
  const auto value = read_json(folder + "/epoch-" + std::to_string(address.epoch) + ".json");
  if (!value)
    return bad("campaign " + address.campaign + " has no epoch " + std::to_string(address.epoch) + " (" +
               value.error().message + ")");
  const auto header = coordinator::epoch_header_from(*value);
  if (!header) return header.error();
  if (address.index >= header->leaves)
    return bad(fmt::format("epoch {} of campaign {} has the leaves 0 to {}; there is no {}", address.epoch,
                           address.campaign, header->leaves - 1, address.index));
  for (const auto* key : {"scenario_file", "scenario_text", "variant"})
    if (!campaign->contains(key) || !(*campaign)[key].is_string())
      return bad(folder + "/campaign.json has no \"" + key + "\"");
  auto scenario = load_as_recorded((*campaign)["scenario_file"], (*campaign)["variant"], (*campaign)["scenario_text"],
                                   header->seed);
  if (!scenario) return scenario.error();
  if (scenarios::identity(*scenario) != header->scenario)
    print_warning(bad("the scenario's programs have changed since this campaign ran; the leaf may go another way"));
  return Subject{std::move(*scenario), coordinator::plan_of(*header, address.index), address.text()};
}

base::Expected<Subject> by_signature(const std::string& signature, const std::string& out) {
  auto ledger = coordinator::Ledger::open(out);
  if (!ledger) return ledger.error();
  const auto campaigns = (*ledger)->campaigns();
  if (!campaigns) return campaigns.error();
  for (const auto& row : *campaigns) {
    const auto findings = (*ledger)->findings(row.name);
    if (!findings) return findings.error();
    for (const auto& finding : *findings) {
      if (finding.signature != signature) continue;
      auto scenario = load_as_recorded(row.scenario_file, row.variant, row.scenario_text, row.seed);
      if (!scenario) return scenario.error();
      return Subject{std::move(*scenario), finding.plan, finding.leaf.text()};
    }
  }
  return bad("\"" + signature +
             "\" is neither a leaf address (CAMPAIGN/EPOCH/INDEX) nor the signature of a finding in " + out);
}

std::string outcome_text(const Subject& subject, const LeafRunner::Run& run) {
  const auto& judgement = run.judgement;
  auto text =
      std::string(scenarios::name(judgement.verdict)) + " (" + std::string(scenarios::name(judgement.reason)) + ")";
  for (const auto& violation : judgement.violations)
    text += "  " + coordinator::signature(violation.property, subject.plan) + "  " + violation.property + ": " +
            violation.message;
  if (judgement.violations.empty() && !judgement.detail.empty()) text += "  " + judgement.detail;
  return text;
}

base::Status write_trace(const std::string& path, const std::vector<protocols::Event>& events) {
  std::string lines;
  for (const auto& event : events)
    lines += coordinator::Value{{"lane", event.lane},        {"seq", event.seq},   {"clock", event.clock},
                                {"at_ns", event.at.count()}, {"kind", event.kind}, {"attrs", event.attrs}}
                 .dump() +
             "\n";
  return base::write_file_atomically(path, lines);
}

int replay(const ReplayOptions& options, Context& context) {
  const auto out = options.out.empty() ? context.config.out : options.out;
  const auto address = scenarios::parse_address(options.what);
  if (!address && options.what.find('/') != std::string::npos) return fail(address.error());
  const auto subject = address ? by_address(*address, out) : by_signature(options.what, out);
  if (!subject) return fail(subject.error());
  if (const auto capable = require_capabilities(); !capable) return fail(capable.error());
  const auto folders = make_folders(out, "replay", Keep::nothing);
  if (!folders) return fail(folders.error());

  print("leaf " + subject->address + "\n");
  if (subject->plan.faults.empty()) print("  no faults\n");
  for (const auto& fault : subject->plan.faults) print("  " + fault.text() + "\n");
  Interrupts interrupts;
  const auto runner = LeafRunner::start(*folders, subject->scenario);
  if (!runner) return fail(runner.error());
  unsigned failing = 0, undecided = 0, repeated = 0;
  for (unsigned i = 1; i <= options.times; ++i) {
    if (interrupts.wait(std::chrono::milliseconds(0))) return scenarios::exit_codes::interrupted;
    const auto run = (*runner)->run(subject->address, subject->plan);
    if (!run) return fail(run.error());
    const bool again = run->judgement.verdict == scenarios::Verdict::infra && repeated < repeated_at_most;
    if (again) {
      ++repeated;
      print(fmt::format("{:>3}/{}  {:>5} ms  {}; once more\n", i--, options.times, run->wall.count(),
                        outcome_text(*subject, *run)));
      continue;
    }
    failing += run->judgement.verdict == scenarios::Verdict::fail;
    undecided += run->judgement.verdict == scenarios::Verdict::infra ||
                 run->judgement.verdict == scenarios::Verdict::inconclusive;
    print(fmt::format("{:>3}/{}  {:>5} ms  {}\n", i, options.times, run->wall.count(), outcome_text(*subject, *run)));
    if (!options.trace.empty())
      if (auto written = write_trace(options.trace, run->events); !written) return fail(written.error());
  }
  print(fmt::format("{} of {} failed\n", failing, options.times));
  if (failing > 0) return scenarios::exit_codes::finding;
  return undecided > 0 ? scenarios::exit_codes::inconclusive : scenarios::exit_codes::held;
}

}  // namespace

void add_replay(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("replay", "run a leaf again by its address, or a finding by its signature");
  auto options = std::make_shared<ReplayOptions>();
  command->add_option("ADDRESS", options->what, "CAMPAIGN/EPOCH/INDEX, or a finding's signature")->required();
  command->add_option("--out", options->out, "the folder the campaign was run with (default: .leafcutter)")
      ->type_name("DIR");
  command->add_option("--times", options->times, "how often")->check(CLI::Range(1, 100000))->capture_default_str();
  command->add_option("--trace", options->trace, "write the last run's events to FILE, one JSON object a line")
      ->type_name("FILE");
  command->callback([options, &context] { context.exit_code = replay(*options, context); });
}

}  // namespace leafcutter::commands
