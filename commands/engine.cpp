#include "commands/engine.hpp"

#include <unistd.h>

#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
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

/// A local actor that does not answer by then is stuck: on a starved host it may have to wait long for a processor, and
/// for a disk.
constexpr auto answer_within = 2min;
/// How long one request for the state of the campaign waits; between two of them an interrupt is heard.
constexpr auto ask_again_after = 5s;
constexpr auto look_every = 100ms;

base::Error no_answer(const std::string& awaited, const caf::error& error) {
  if (error != caf::sec::request_timeout)
    return {base::ErrorCode::internal, awaited + ": the coordinator says " + caf::to_string(error), {}};
  return {base::ErrorCode::timeout,
          awaited + ": no answer from the coordinator within " + base::format_duration(answer_within) +
              "; the campaign is kept, and the same command resumes it",
          {}};
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

node::NodeOptions node_options(const std::string& name, unsigned slots, const config::Config& config,
                               std::vector<std::string> capabilities) {
  node::NodeOptions options;
  options.name = name;
  options.slots = config::effective_slots(slots != 0 ? slots : config.slots);
  options.capabilities = std::move(capabilities);
  options.incarnation = static_cast<std::uint64_t>(::getpid());
  return options;
}

base::Expected<std::vector<std::string>> require_capabilities() {
  std::vector<std::string> seen;
  std::string missing;
  for (const auto& capability : node::examine_host()) {
    if (capability.seen)
      seen.push_back(capability.name);
    else if (capability.only_for.empty())
      missing += "\n  " + capability.name + ": " + capability.detail +
                 (capability.remedy.empty() ? "" : "; " + capability.remedy);
  }
  if (!missing.empty()) return base::Error{base::ErrorCode::unavailable, "this host cannot run leaves:" + missing, {}};
  return seen;
}

actors::CampaignRequest campaign_request(const scenarios::Scenario& scenario) {
  actors::CampaignRequest request;
  request.scenario = {scenarios::identity(scenario), scenario.file, scenario.text, scenario.variant};
  request.seed = scenario.explore.seed;
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
  if (failure) return no_answer("waited for the campaign to be accepted", failure);

  ProgressLine line(is_terminal(STDERR_FILENO));
  actors::Progress progress;
  auto told = std::chrono::steady_clock::now();
  while (!progress.finished && !failure) {
    interrupted = interrupts.wait(look_every);
    if (interrupted) break;
    self->request(coordinator, ask_again_after, actors::watch_atom_v, campaign)
        .receive(
            [&](actors::Progress& now) {
              progress = std::move(now);
              told = std::chrono::steady_clock::now();
            },
            [&](caf::error& error) {
              const bool patient = std::chrono::steady_clock::now() - told < answer_within;
              if (error != caf::sec::request_timeout || !patient) failure = std::move(error);
            });
    line.show(progress);
  }
  line.clear();
  if (failure) return no_answer("waited to be told how campaign " + campaign + " stands", failure);
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
  if (!ledger) return fail(ledger.error());
  auto report = coordinator::gather(**ledger, campaign, scenario);
  if (!report) return fail(report.error());
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
