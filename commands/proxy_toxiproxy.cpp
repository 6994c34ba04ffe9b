#include "commands/proxy_toxiproxy.hpp"

#include <csignal>
#include <memory>

#include "base/text.hpp"
#include "commands/descriptor_limit.hpp"
#include "commands/interrupts.hpp"
#include "commands/output.hpp"
#include "http/token.hpp"
#include "node/runs/journal_file.hpp"
#include "node/runs/records.hpp"
#include "node/toxiproxy/api.hpp"
#include "node/toxiproxy/service.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

namespace exit_codes = scenarios::exit_codes;
namespace runs = node::runs;
namespace toxiproxy = node::toxiproxy;

constexpr auto journal_interval = std::chrono::seconds(1);

protocols::Value proxy_values(const std::map<std::string, toxiproxy::Proxy>& proxies) {
  protocols::Value list = protocols::Value::array();
  for (const auto& [name, proxy] : proxies)
    list.push_back(
        {{"proxy", name}, {"listen", proxy.listen}, {"upstream", proxy.upstream}, {"enabled", proxy.enabled}});
  return list;
}

std::string started_line(const toxiproxy::Service& service, std::uint64_t seed) {
  runs::RecordLine line("toxiproxy-started");
  line.add("listen", service.address()).add("seed", seed).add("compatible_with", toxiproxy::compatible_version);
  line.add_value("proxies", proxy_values(service.first_proxies()));
  return std::move(line).text();
}

std::string started_text(const toxiproxy::Service& service, std::uint64_t seed) {
  std::string text = "Toxiproxy's interface (" + std::string(toxiproxy::compatible_version) + ") on http://" +
                     service.address() + ", seed " + std::to_string(seed) + "\n";
  for (const auto& [name, proxy] : service.first_proxies())
    text += "  " + name + ": " + toxiproxy::listen_address(proxy.listen) + " -> " + proxy.upstream +
            (proxy.enabled ? "" : " (disabled)") + ", " + std::to_string(proxy.toxics.size()) +
            (proxy.toxics.size() == 1 ? " toxic\n" : " toxics\n");
  return text;
}

/// Everything that can be wrong with the options; errors have been printed.
std::optional<toxiproxy::ServiceOptions> service_options(const ToxiproxyOptions& options) {
  toxiproxy::ServiceOptions service;
  service.address = options.address;
  service.engine.seed = options.seed.value_or(0);
  service.engine.threads = options.threads;
  auto token = http::read_token(options.token_file, toxiproxy::token_variable);
  if (!token) {
    print_error(token.error());
    return std::nullopt;
  }
  service.token = std::move(*token);
  if (options.config.empty()) return service;
  auto text = base::read_file(options.config);
  if (!text) {
    print_error(text.error());
    return std::nullopt;
  }
  service.config = std::move(*text);
  service.config_file = options.config;
  return service;
}

}  // namespace

int run_toxiproxy(const ToxiproxyOptions& options) {
  Interrupts interrupts;  // before the engine's threads
  raise_descriptor_limit();
  auto prepared = service_options(options);
  if (!prepared) return exit_codes::bad_input;
  std::unique_ptr<runs::JournalFile> journal;
  if (!options.journal.empty()) {
    auto created = runs::JournalFile::create(options.journal);
    if (!created) return fail(created.error());
    journal = std::move(*created);
    prepared->engine.hook = [start = std::chrono::steady_clock::now(), file = journal.get()](const auto& event) {
      file->append(runs::event_record(event, start));
    };
  }
  const auto seed = prepared->engine.seed;
  toxiproxy::Notes notes;
  auto started = toxiproxy::Service::start(std::move(*prepared), notes);
  for (const auto& note : notes) print_warning({base::ErrorCode::bad_input, note, {options.config, 0, 0}});
  if (!started) {
    // An address that is taken, too, is the user's to mend.
    print_error(started.error());
    return exit_codes::bad_input;
  }
  auto& service = *started;
  const auto line = started_line(*service, seed);
  if (journal) journal->begin(line);
  const bool said = print(options.records ? line : started_text(*service, seed));
  while (said && !interrupts.wait(journal_interval))
    if (journal) journal->flush();
  service->engine().flush_events();
  runs::RecordLine last("toxiproxy-stopped");
  last.add("dropped_records", service->engine().stats().dropped_events);
  service.reset();
  const auto end = std::move(last).text();
  int code = interrupts.number() == SIGINT ? exit_codes::interrupted : 0;
  if (!said || (options.records && !print(end))) code = exit_codes::inconclusive;
  if (journal) {
    journal->append(end);
    if (const auto closed = journal->close(); !closed) code = fail(closed.error());
  }
  return code;
}

}  // namespace leafcutter::commands
