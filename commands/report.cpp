// leafcutter report: what the ledger remembers of a campaign, in any of the forms.
#include <fmt/format.h>

#include <memory>

#include "commands/commands.hpp"
#include "commands/engine.hpp"
#include "commands/output.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

struct ReportOptions {
  std::string campaign, out, format = "text";
};

/// The named campaign, or the one that was started last.
base::Expected<coordinator::CampaignRow> choose(coordinator::Ledger& ledger, const std::string& name,
                                                const std::string& out) {
  const auto rows = ledger.campaigns();
  if (!rows) return rows.error();
  const coordinator::CampaignRow* chosen = nullptr;
  std::vector<std::string> names;
  for (const auto& row : *rows) {
    names.push_back(row.name);
    if (name.empty() ? chosen == nullptr || row.started_unix >= chosen->started_unix : row.name == name) chosen = &row;
  }
  if (chosen != nullptr) return *chosen;
  if (names.empty()) return base::Error{base::ErrorCode::bad_input, "no campaign has been run with --out " + out, {}};
  return base::Error{
      base::ErrorCode::bad_input,
      "no campaign \"" + name + "\" in " + out + "; there is " + fmt::format("{}", fmt::join(names, ", ")),
      {}};
}

base::Expected<std::string> render(const ReportOptions& options, const std::string& out) {
  if (::access((out + "/ledger.db").c_str(), F_OK) != 0)
    return base::Error{base::ErrorCode::bad_input,
                       "no campaign has been run with --out " + out + " (there is no " + out + "/ledger.db)",
                       {}};
  auto ledger = coordinator::Ledger::open(out);
  if (!ledger) return ledger.error();
  const auto row = choose(**ledger, options.campaign, out);
  if (!row) return row.error();
  scenarios::LoadOptions load_options;
  load_options.variant = row->variant;
  load_options.check_programs = false;  // a report needs no program to be there any more
  auto loaded = scenarios::load_text(row->scenario_text, row->scenario_file, load_options);
  if (!loaded.scenario) return loaded.errors.front();
  loaded.scenario->explore.seed = row->seed;
  const auto report = coordinator::gather(**ledger, row->name, *loaded.scenario);
  if (!report) return report.error();
  if (options.format == "json") return coordinator::json_report(*report).dump(2) + "\n";
  if (options.format == "junit") return coordinator::junit_report(*report);
  if (options.format == "html")
    return coordinator::html_report(*report,
                                    [&](const std::string& execution) { return load_trace(**ledger, execution); });
  return coordinator::terminal_report(*report, is_terminal(STDOUT_FILENO));
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("report", "print what was found, from the ledger");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("CAMPAIGN", options->campaign, "a campaign's name (default: the latest)");
  command->add_option("--out", options->out, "the folder the campaign was run with (default: .leafcutter)")
      ->type_name("DIR");
  command->add_option("--format", options->format)
      ->check(CLI::IsMember({"text", "json", "junit", "html"}))
      ->capture_default_str();
  command->callback([options, &context] {
    const auto text = render(*options, options->out.empty() ? context.config.out : options->out);
    if (!text) print_error(text.error());
    context.exit_code = !text ? exit_code_of(text.error()) : print(*text) ? 0 : scenarios::exit_codes::inconclusive;
  });
}

}  // namespace leafcutter::commands
