// leafcutter proxy: stand-alone proxies under the faults of a Run document.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>

#include "commands/commands.hpp"
#include "commands/descriptor_limit.hpp"
#include "commands/output.hpp"
#include "commands/proxy_session.hpp"
#include "commands/proxy_toxiproxy.hpp"
#include "commands/whole_number.hpp"
#include "node/runs/loader.hpp"
#include "node/runs/recording.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

namespace exit_codes = scenarios::exit_codes;
namespace runs = node::runs;

constexpr const char* proxy_footer =
    "Either RUN or --toxiproxy. With --toxiproxy proxies and their toxics are commanded over HTTP, by Toxiproxy's own\n"
    "clients; see docs/toxiproxy.md.\n"
    "\n"
    "RUN is a Run document, YAML or JSON: proxies, and the phases in which faults act on them. See docs/proxy.md;\n"
    "`leafcutter schema run` prints its JSON Schema, docs/run-reference.md has every key.\n"
    "\n"
    "Exit status: 0 the last phase has ended, or SIGTERM came; 2 the document, an option or an address is wrong, and\n"
    "nothing was run; 3 something could not be written; 130 interrupted.";

struct ProxyOptions {
  std::string file, toxiproxy, config, token_file;
  std::string journal, replay, format = "auto";
  std::optional<std::uint64_t> seed;
  unsigned threads = 1;
  bool watch = false;
};

/// Records, not text for people, on standard output.
bool wants_records(const ProxyOptions& options) {
  return options.format == "json" || (options.format == "auto" && !is_terminal(STDOUT_FILENO));
}

std::unique_ptr<ProxyView> view_for(const ProxyOptions& options, runs::Time start) {
  if (wants_records(options)) return make_record_view(start);
  if (!is_terminal(STDOUT_FILENO)) return make_text_view(start);
  return make_dashboard(start, std::getenv("NO_COLOR") == nullptr);
}

/// Takes seed and decisions out of a journal. False: it is none, which has been said.
bool prepare_replay(const ProxyOptions& options, const runs::Run& run, runs::RunnerOptions& runner) {
  const auto recording = runs::read_recording(options.replay);
  if (!recording) {
    print_error(recording.error());
    return false;
  }
  const auto warn = [&](const std::string& message) {
    print_warning({base::ErrorCode::bad_input, message, {options.replay, 0, 0}});
  };
  if (recording->digest != run.digest)
    warn("it is the journal of another document (SHA-256 " + recording->digest +
         "); its decisions are made again where proxies and faults have the same names");
  if (recording->dropped != 0)
    warn("it lacks " + std::to_string(recording->dropped) + " records; what they say is taken for not having happened");
  if (!recording->whole) warn("it has no end; connections after it are drawn from its seed");
  if (recording->reloaded) warn("its document was replaced on the way; what came after that is drawn from its seed");
  runner.seed = recording->seed;
  runner.decisions = recording->decisions;
  return true;
}

/// RUN and --toxiproxy are two ways to say what the proxies do; what is wrong with the options given, or nothing.
std::optional<base::Error> bad_choice(const ProxyOptions& options) {
  const auto bad = [](const std::string& option, const std::string& why) {
    return base::Error{base::ErrorCode::bad_input, why, {option, 0, 0}};
  };
  if (options.toxiproxy.empty()) {
    if (!options.config.empty())
      return bad("--config",
                 "proxies for --toxiproxy, which is not there; a settings file comes before the command: "
                 "leafcutter --config FILE proxy RUN");
    if (!options.token_file.empty())
      return bad("--toxiproxy-token-file", "there is no --toxiproxy that it would be for");
    if (options.file.empty())
      return bad("RUN",
                 "no Run document; leafcutter proxy RUN would do, or leafcutter proxy --toxiproxy 127.0.0.1:8474");
    return std::nullopt;
  }
  if (!options.file.empty())
    return bad("--toxiproxy", "the phases of " + options.file +
                                  " replace all faults of its proxies, and so would the clients of this interface; "
                                  "start two: leafcutter proxy RUN, and leafcutter proxy --toxiproxy ADDRESS");
  if (!options.replay.empty())
    return bad("--replay", "it makes the decisions of a run again; with --toxiproxy the same --seed draws the same");
  if (options.watch)
    return bad("--watch", "with --toxiproxy there is no document to watch; POST /populate changes proxies");
  return std::nullopt;
}

/// False: a signal came first.
bool await_names(runs::ListenNames& names, Interrupts& interrupts) {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + runs::ListenNames::patience;
  while (!names.known()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
    if (left.count() <= 0) return true;
    std::array<pollfd, 2> items{{{interrupts.fd(), POLLIN, 0}, {names.fd(), POLLIN, 0}}};
    (void)::poll(items.data(), items.size(), static_cast<int>(left.count()));
    if (interrupts.wait(std::chrono::milliseconds(0))) return false;
  }
  return true;
}

int run_proxy(const ProxyOptions& options) {
  if (const auto bad = bad_choice(options)) return fail(*bad);
  if (!options.toxiproxy.empty())
    return run_toxiproxy({options.toxiproxy, options.config, options.token_file, options.journal, options.seed,
                          options.threads, wants_records(options)});
  Interrupts interrupts;  // before the engine's threads
  raise_descriptor_limit();
  std::unique_ptr<runs::FileWatch> watch;
  if (options.watch) {
    // Before the document is read: what is changed from then on is seen.
    auto watching = runs::FileWatch::start(options.file);
    if (!watching) return fail(watching.error());
    watch = std::move(*watching);
  }
  auto loaded = runs::load_run_file(options.file);
  for (const auto& error : loaded.errors) print_error(error);
  for (const auto& warning : loaded.warnings) print_warning(warning);
  if (!loaded.run) return exit_codes::bad_input;
  runs::ListenNames names;
  names.ask(*loaded.run);
  if (!await_names(names, interrupts)) return interrupts.number() == SIGTERM ? 0 : exit_codes::interrupted;
  if (const auto settled = names.settle(*loaded.run); !settled) return fail(settled.error());
  const auto start = std::chrono::steady_clock::now();
  runs::RunnerOptions runner_options{options.seed, options.threads, {}, {}, start, options.watch};
  if (!options.replay.empty() && !prepare_replay(options, *loaded.run, runner_options)) return exit_codes::bad_input;
  std::unique_ptr<runs::JournalFile> journal;
  if (!options.journal.empty()) {
    auto created = runs::JournalFile::create(options.journal);
    if (!created) return fail(created.error());
    journal = std::move(*created);
  }
  if (journal)
    runner_options.hook = [start, file = journal.get()](const node::proxy::Event& event) {
      file->append(runs::event_record(event, start));
    };
  auto runner = runs::Runner::start(std::move(*loaded.run), std::move(runner_options));
  if (!runner) return fail(runner.error());
  const auto view = view_for(options, start);
  return run_proxy_session({**runner, *view, journal.get(), watch.get(), interrupts, names, options.file, start});
}

}  // namespace

void add_proxy(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand(
      "proxy", "stand-alone network proxies under the faults of a Run document or of Toxiproxy's clients");
  auto options = std::make_shared<ProxyOptions>();
  command->footer(proxy_footer);
  command->add_option("RUN", options->file, "the Run document (.yaml, .yml or .json)");
  command
      ->add_option("--toxiproxy", options->toxiproxy,
                   "answer Toxiproxy's HTTP interface on this address; any but loopback needs a token")
      ->type_name("ADDRESS");
  command->add_option("--config", options->config, "with --toxiproxy: its proxies and their toxics (JSON)")
      ->type_name("FILE");
  command
      ->add_option("--toxiproxy-token-file", options->token_file,
                   "the token that its clients must send (default: $LEAFCUTTER_TOXIPROXY_TOKEN)")
      ->type_name("FILE");
  command->add_option("--seed", options->seed, "of every random choice (default: the document's, or 0)")
      ->check(whole_number())
      ->type_name("N");
  command->add_option("--journal", options->journal, "write every decision to this new file (NDJSON)")
      ->type_name("FILE");
  command
      ->add_option("--replay", options->replay,
                   "make the decisions in this journal again instead of drawing; its seed is used, too")
      ->type_name("JOURNAL")
      ->excludes("--seed");
  command->add_flag("--watch", options->watch, "load the document again when it changes");
  command->add_option("--threads", options->threads, "that carry bytes")->check(CLI::Range(1, 64))->type_name("N");
  command->add_option("--format", options->format, "auto: a dashboard on a terminal, NDJSON elsewhere")
      ->check(CLI::IsMember({"auto", "text", "json"}))
      ->capture_default_str();
  command->callback([options, &context] { context.exit_code = run_proxy(*options); });
}

}  // namespace leafcutter::commands
