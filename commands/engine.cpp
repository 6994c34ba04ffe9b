#include "commands/engine.hpp"

#include <caf/scoped_actor.hpp>
#include <chrono>
#include <cstdio>

#include "base/text.hpp"
#include "commands/interrupts.hpp"
#include "commands/output.hpp"
#include "commands/progress.hpp"
#include "coordinator/ledger/ledger.hpp"
#include "node/host/doctor.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

using namespace std::chrono_literals;

constexpr auto answer_within = 10s;  // a local actor that does not answer by then is stuck
constexpr auto look_every = 100ms;

base::Error no_answer(const std::string& what, const caf::error& error) {
  return {base::ErrorCode::internal, what + ": the coordinator does not answer (" + caf::to_string(error) + ")", {}};
}

}  // namespace

base::Expected<NodeParts> start_node_parts(const Folders& folders, const std::string& name,
                                           const std::string& events_endpoint) {
  auto launcher = node::Launcher::start(own_program(), folders.run);
  if (!launcher) return launcher.error();
  node::Courier::Options options;
  options.run_folder = folders.run;
  options.spool_folder = folders.spool;
  options.node = name;
  options.coordinator = events_endpoint;
  auto courier = node::Courier::start(options, nullptr);
  if (!courier) return courier.error();
  return NodeParts{std::move(*launcher), std::move(*courier)};
}

base::Expected<std::vector<std::string>> require_capabilities() {
  std::vector<std::string> seen;
  std::string missing;
  for (const auto& capability : node::examine_host()) {
    if (capability.seen)
      seen.push_back(capability.name);
    else
      missing += "\n  " + capability.name + ": " + capability.detail +
                 (capability.remedy.empty() ? "" : "; " + capability.remedy);
  }
  if (!missing.empty()) return base::Error{base::ErrorCode::unavailable, "this host cannot run leaves:" + missing, {}};
  return seen;
}

actors::CampaignRequest campaign_request(const scenarios::Scenario& scenario, const std::string& folder) {
  actors::CampaignRequest request;
  request.scenario = {scenarios::identity(scenario), scenario.file, scenario.text, scenario.variant};
  request.seed = scenario.explore.seed;
  request.folder = folder;
  return request;
}

base::Expected<std::string> follow_campaign(caf::actor_system& system, const actors::coordinator_actor& coordinator,
                                            const actors::CampaignRequest& request, Interrupts& interrupts,
                                            bool& interrupted) {
  caf::scoped_actor self{system};
  std::string campaign;
  caf::error failure;
  self->request(coordinator, answer_within, actors::submit_atom_v, request)
      .receive([&](std::string& name) { campaign = std::move(name); },
               [&](caf::error& error) { failure = std::move(error); });
  if (failure) return no_answer("cannot start the campaign", failure);

  ProgressLine line(is_terminal(STDERR_FILENO));
  actors::Progress progress;
  while (!progress.finished && !failure) {
    interrupted = interrupts.wait(look_every);
    if (interrupted) break;
    self->request(coordinator, answer_within, actors::watch_atom_v, campaign)
        .receive([&](actors::Progress& now) { progress = std::move(now); },
                 [&](caf::error& error) { failure = std::move(error); });
    line.show(progress);
  }
  line.clear();
  if (failure) return no_answer("lost sight of the campaign", failure);
  if (interrupted) {
    self->send(coordinator, actors::cancel_atom_v, campaign);
    std::fprintf(stderr, "interrupted after %llu leaves; the same command resumes\n",
                 static_cast<unsigned long long>(progress.done));
  }
  return campaign;
}

base::Expected<std::vector<protocols::Event>> load_trace(coordinator::Ledger& ledger, const std::string& execution) {
  const auto result = ledger.result(execution);
  if (!result) return result.error();
  if (!*result) return base::Error{base::ErrorCode::bad_input, "no execution \"" + execution + "\" in the ledger", {}};
  if ((*result)->trace.empty())
    return base::Error{base::ErrorCode::unavailable, "the trace of " + execution + " was not kept", {}};
  const auto bytes = ledger.load_blob((*result)->trace);
  if (!bytes) return bytes.error();
  return protocols::decode_chunks(*bytes);
}

int report_campaign(const std::string& out, const std::string& campaign, const scenarios::Scenario& scenario,
                    bool interrupted, const std::string& format) {
  auto ledger = coordinator::Ledger::open(out);
  if (!ledger) {
    print_error(ledger.error());
    return exit_code_of(ledger.error());
  }
  auto report = coordinator::gather(**ledger, campaign, scenario);
  if (!report) {
    print_error(report.error());
    return exit_code_of(report.error());
  }
  report->interrupted = interrupted;
  const auto folder = out + "/campaigns/" + campaign;
  const auto json = coordinator::json_report(*report).dump(2) + "\n";
  const auto html = folder + "/report.html";
  const auto trace = [&](const std::string& execution) { return load_trace(**ledger, execution); };
  for (const auto& [path, text] :
       {std::pair{html, coordinator::html_report(*report, trace)}, std::pair{folder + "/report.json", json},
        std::pair{folder + "/junit.xml", coordinator::junit_report(*report)}})
    if (auto written = base::write_file_atomically(path, text); !written) print_error(written.error());
  const auto printed =
      format == "json"
          ? print(json)
          : print(coordinator::terminal_report(*report, is_terminal(STDOUT_FILENO)) + "HTML report: " + html + "\n");
  if (interrupted) return scenarios::exit_codes::interrupted;
  return printed ? coordinator::exit_code(*report) : scenarios::exit_codes::inconclusive;
}

}  // namespace leafcutter::commands
