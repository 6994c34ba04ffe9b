// leafcutter exec: one program under rules, on the host itself; no scenario.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "commands/commands.hpp"
#include "commands/exec_report.hpp"
#include "commands/exec_rules.hpp"
#include "commands/output.hpp"
#include "commands/whole_number.hpp"
#include "node/exec/session.hpp"
#include "scenarios/rule.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

namespace exit_codes = scenarios::exit_codes;

constexpr const char* exec_footer =
    "The program and its arguments come last: leafcutter exec [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
    "\n"
    "A rule is CALL=EFFECT[:ARGUMENT[,ARGUMENT]] [key=value]... [#n | first n | every n | from n] [uncounted]:\n"
    "  fsync=EIO path=/var/db/*.wal #2        the second fsync of such a file fails\n"
    "  write=short:100 path=*.tmp             writes carry 100 bytes at most\n"
    "  connect=ETIMEDOUT:2s peer=*:5432       connecting takes two seconds and fails\n"
    "  rename=crash-after                     killed when the rename has taken effect\n"
    "A rule without path or object strikes every file but the system's (/usr, /lib, /proc, /dev, ...) or, for "
    "connect,\n"
    "accept, send and receive, every TCP connection; never a terminal. Relative paths are relative to the working\n"
    "folder. `leafcutter faults` lists calls and effects, docs/exec.md has more.\n"
    "\n"
    "Exit status: the program's own, or 128 + the signal that killed it; 126 or 127 when it cannot be executed.\n"
    "2: a rule or an option is wrong, nothing was run. 3: the host cannot do it, or the program succeeded and some "
    "rule\n"
    "never fired (--allow-unfired: its 0 stands). A program that fails keeps its status, fired or not.";

struct ExecOptions {
  std::vector<std::string> faults, rule_files, observe;
  std::string trace, folder, data;
  std::uint64_t seed = 1;
  bool allow_unfired = false;
};

base::Expected<std::string> existing_folder(const std::string& option, const std::string& given) {
  std::error_code error;
  const auto path = std::filesystem::canonical(given, error);
  if (!error && std::filesystem::is_directory(path, error)) return path.string();
  return base::Error{base::ErrorCode::bad_input,
                     "\"" + given + "\" is no folder" + (error ? ": " + error.message() : ""),
                     {option, 0, 0}};
}

void say(const std::string& text) { std::fputs(text.c_str(), stderr); }

/// Everything that can be wrong with the command line; nothing has been run. Errors have been printed.
std::optional<node::SessionJob> prepare(const ExecOptions& options, const std::vector<std::string>& program) {
  bool good = true;
  const auto wrong = [&](const base::Error& error) {
    print_error(error);
    good = false;
  };
  node::SessionJob job;
  job.argv = program;
  auto read = read_rules({options.faults, options.rule_files, options.seed, !options.data.empty()});
  for (const auto& error : read.errors) wrong(error);
  job.plan = std::move(read.plan);
  if (auto families = read_families(options.observe))
    job.observe = std::move(*families);
  else
    wrong(families.error());
  if (auto folder = existing_folder("--cwd", options.folder.empty() ? "." : options.folder))
    job.folder = std::move(*folder);
  else
    wrong(folder.error());
  if (!options.data.empty()) {
    if (auto folder = existing_folder("--data", options.data))
      job.data = std::move(*folder);
    else
      wrong(folder.error());
  }
  if (job.argv.empty())
    wrong(
        {base::ErrorCode::bad_input, "name the program to run: leafcutter exec --fault RULE -- PROGRAM ARGUMENTS", {}});
  for (const auto& fault : job.plan.faults)
    job.every_event = job.every_event || !scenarios::event_patterns_of(fault).empty();
  job.every_event = job.every_event || !options.trace.empty();
  if (!good) return std::nullopt;
  return job;
}

int exit_code_of(const node::SessionResult& result, std::size_t unfired, bool allow_unfired) {
  if (result.signal != 0) return 128 + result.signal;
  if (result.status != 0 || unfired == 0 || allow_unfired) return result.status;
  return exit_codes::inconclusive;
}

void say_unfired(const node::SessionResult& result, std::size_t unfired, const ExecOptions& options) {
  if (unfired == 0) return;
  const std::string count = unfired == 1 ? "1 rule" : std::to_string(unfired) + " rules";
  say("leafcutter: " + count + " NEVER FIRED, so this run says nothing about " + (unfired == 1 ? "it" : "them"));
  if (options.allow_unfired)
    say(" (--allow-unfired)\n");
  else if (result.status != 0 || result.signal != 0)
    say("\n");
  else
    say("; exit status 3 (--allow-unfired accepts it)\n");
}

int run_exec(const ExecOptions& options, const std::vector<std::string>& program, const Context& context) {
  auto job = prepare(options, program);
  if (!job) return exit_codes::bad_input;
  job->ignore_pipe = context.pipe_was_ignored;
  std::optional<TraceFile> trace;
  if (!options.trace.empty()) {
    auto file = TraceFile::create(options.trace);
    if (!file) {
      print_error(file.error());
      return exit_codes::bad_input;
    }
    trace = std::move(*file);
  }
  ExecReport report(job->plan);
  const auto result = node::run_session(*job, [&](const protocols::Event& event) {
    report.see(event);
    if (trace) trace->write(event);
  });
  int code = exit_codes::inconclusive;
  if (!result) {
    auto error = result.error();
    if (error.code == base::ErrorCode::unavailable)
      error.message = "UNAVAILABLE: " + error.message + " (`leafcutter doctor` examines this host); nothing was run";
    print_error(error);
  } else {
    if (!result->not_executed.empty()) say("leafcutter: " + job->argv.front() + ": " + result->not_executed + "\n");
    say(report.unresolved_text() + report.rules_text());
    if (!result->power_loss.empty()) say("leafcutter: power loss in " + job->data + ": " + result->power_loss + "\n");
    if (!job->observe.empty()) say(report.sites_text());
    say_unfired(*result, report.unfired(), options);
    code = exit_code_of(*result, report.unfired(), options.allow_unfired);
  }
  if (trace)
    if (const auto written = trace->close(); !written) {
      print_error(written.error());
      if (code == 0) code = exit_codes::inconclusive;
    }
  return code;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options()) names.push_back("--" + option->get_lnames().front());
  return names;
}

}  // namespace

void add_exec(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("exec", "run one program under rules, without a scenario");
  auto options = std::make_shared<ExecOptions>();
  command->footer(exec_footer);
  command->fallthrough(false);  // what follows the program's name is the program's own
  command->prefix_command();
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* about, const char* type) {
    command->add_option(name, list, about)
        ->type_name(type)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  add_list("--fault", options->faults, "a rule; may be given several times", "RULE");
  add_list("--rules", options->rule_files, "a file of rules, one a line; # begins a comment line", "FILE");
  command->add_option("--seed", options->seed, "of rules with a probability")
      ->check(whole_number())
      ->capture_default_str();
  command->add_option("--trace", options->trace, "write every event to FILE, one JSON object a line")
      ->type_name("FILE");
  command->add_flag("--allow-unfired", options->allow_unfired, "rules that never fired are no failure");
  add_list("--observe", options->observe, "say which sites of these families were visited (\"all\": of all)",
           "FAMILIES");
  command
      ->add_option("--data", options->data, "the folder that a power loss strikes: what was not synced there is lost")
      ->type_name("DIR");
  command->add_option("--cwd", options->folder, "run the program in this folder")->type_name("DIR");
  command->callback([options, command, &context] {
    auto program = command->remaining();
    if (!program.empty() && (program.front().starts_with('-') || !context.program.empty())) {
      const auto names = option_names(*command);
      const auto near = base::nearest(program.front(), names);
      print_error({base::ErrorCode::bad_input,
                   "\"" + program.front() + "\" is no option of exec" +
                       (near ? "; did you mean \"" + *near + "\"?" : "; they are " + base::join_names(names)),
                   {}});
      context.exit_code = exit_codes::bad_input;
      return;
    }
    if (program.empty()) program = context.program;
    context.exit_code = run_exec(*options, program, context);
  });
}

}  // namespace leafcutter::commands
