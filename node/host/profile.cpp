#include "node/host/profile.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <csignal>

#include "base/text.hpp"

namespace leafcutter::node::host {
namespace {

/// As a number is written by who means it: digits, no sign, no leading zero, within 64 bits.
std::optional<std::uint64_t> plain_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return value;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + "\"";
}

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : map) names.push_back(name);
  return names;
}

std::string what_would_do(std::string_view word, const std::vector<std::string>& known) {
  if (const auto near = base::nearest(word, known)) return "; did you mean " + in_quotes(*near) + "?";
  if (known.empty()) return "; it has none";
  return "; it has " + base::join_names(known);
}

Decision denied(std::string reason) { return {false, std::move(reason), {}, {}}; }
Decision allowed(std::string resource) { return {true, {}, {}, std::move(resource)}; }

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Reads the parameters of one request; the first that is wrong is the reason of the denial.
class RequestReader {
 public:
  explicit RequestReader(const Request& request) : request_(request) {}

  /// Nothing but these, and each with a value.
  void only(const std::vector<std::string>& known) {
    for (const auto& [name, unused] : request_.parameters)
      if (!contains(known, name))
        deny("parameter " + in_quotes(name) + " is none of " + request_.action + what_would_do(name, known));
    if (!request_.argv.empty())
      deny("argument " + in_quotes(request_.argv.front()) + ": " + request_.action + " takes no arguments");
  }

  std::string word(const char* name) {
    const auto found = request_.parameters.find(name);
    if (found != request_.parameters.end()) return found->second;
    deny("parameter " + in_quotes(name) + " is missing");
    return {};
  }

  bool has(const char* name) const { return request_.parameters.contains(name); }

  std::uint64_t number(const char* name, std::uint64_t least, std::uint64_t most) {
    const auto text = word(name);
    const auto value = plain_number(text);
    if (value && *value >= least && *value <= most) return *value;
    deny(std::string(name) + " " + in_quotes(text) + " is not a whole number from " + std::to_string(least) + " to " +
         std::to_string(most));
    return 0;
  }

  void duration(std::chrono::nanoseconds longest) {
    if (request_.duration.count() <= 0)
      deny("it is not said for how long; at most " + base::format_duration(longest));
    else if (request_.duration > longest)
      deny("duration " + base::format_duration(request_.duration) + " is longer than " +
           base::format_duration(longest));
  }

  void no_duration() {
    if (request_.duration.count() != 0) deny("duration: " + request_.action + " takes as long as it takes");
  }

  void deny(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }

  bool good() const { return reason_.empty(); }
  Decision result(std::string resource) const { return good() ? allowed(std::move(resource)) : denied(reason_); }

 private:
  const Request& request_;
  std::string reason_;
};

Decision decide_signal(const Profile& profile, const Request& request, const Situation& situation) {
  RequestReader reader(request);
  reader.only({"target", "signal"});
  const auto name = reader.word("target"), signal = reader.word("signal");
  if (!reader.good()) return reader.result("");
  const auto found = profile.signal.find(name);
  if (found == profile.signal.end())
    return denied("target " + in_quotes(name) + " is none of the profile's" +
                  what_would_do(name, keys_of(profile.signal)));
  const auto& target = found->second;
  if (!contains(target.signals, signal))
    return denied("signal " + in_quotes(signal) + " is not allowed for target " + in_quotes(name) +
                  what_would_do(signal, target.signals));
  if (is_destructive_signal(signal) && !contains(situation.recovered, target.service))
    return denied("signal " + signal + " ends " + in_quotes(name) + ", and the recovery of service " +
                  in_quotes(target.service) +
                  " has not worked in this session yet; run recover service=" + target.service);
  if (signal == "STOP")
    reader.duration(std::chrono::minutes(5));
  else
    reader.no_duration();
  return reader.result(target.service.empty() ? "process " + target.pid_file : "service " + target.service);
}

Decision decide_pressure(const Pressure& limits, const Request& request, const char* unit) {
  RequestReader reader(request);
  reader.only(limits.folders.empty() ? std::vector<std::string>{unit} : std::vector<std::string>{unit, "folder"});
  reader.number(unit, 1, limits.most);
  std::string resource = request.action;
  if (!limits.folders.empty()) {
    const auto folder = reader.word("folder");
    if (!contains(limits.folders, folder))
      reader.deny("folder " + in_quotes(folder) + " is none of the profile's" + what_would_do(folder, limits.folders));
    resource += " " + folder;
  }
  reader.duration(limits.longest);
  return reader.result(resource);
}

Decision decide_network(const Shaping& limits, const Request& request) {
  RequestReader reader(request);
  reader.only({"interface", "delay", "loss", "rate"});
  const auto interface = reader.word("interface");
  if (reader.good() && !contains(limits.interfaces, interface))
    reader.deny("interface " + in_quotes(interface) + " is none of the profile's" +
                what_would_do(interface, limits.interfaces));
  if (!reader.has("delay") && !reader.has("loss") && !reader.has("rate"))
    reader.deny("nothing is said to be done; parameters: delay, loss and rate");
  if (reader.has("delay")) {
    const auto delay = base::parse_duration(reader.word("delay"));
    if (limits.delay.count() == 0)
      reader.deny("delay: the profile allows none");
    else if (!delay || delay->count() <= 0 || *delay > limits.delay)
      reader.deny("delay " + in_quotes(reader.word("delay")) + " is not a duration of up to " +
                  base::format_duration(limits.delay));
  }
  if (reader.has("loss")) {
    if (limits.loss == 0) reader.deny("loss: the profile allows none");
    reader.number("loss", 1, limits.loss);
  }
  if (reader.has("rate")) {
    if (limits.slowest == 0) reader.deny("rate: the profile allows none");
    reader.number("rate", limits.slowest, 100'000'000);
  }
  reader.duration(limits.longest);
  return reader.result("network " + interface);
}

Decision decide_probe(const Profile& profile, const Request& request) {
  RequestReader reader(request);
  reader.only({"name"});
  const auto name = reader.word("name");
  if (reader.good() && !profile.probes.contains(name))
    reader.deny("probe " + in_quotes(name) + " is none of the profile's" +
                what_would_do(name, keys_of(profile.probes)));
  reader.no_duration();
  return reader.result("");
}

Decision decide_configure(const Profile& profile, const Request& request) {
  RequestReader reader(request);
  reader.only({"name", "variant"});
  const auto name = reader.word("name"), variant = reader.word("variant");
  if (!reader.good()) return reader.result("");
  const auto found = profile.configurations.find(name);
  if (found == profile.configurations.end())
    return denied("configuration " + in_quotes(name) + " is none of the profile's" +
                  what_would_do(name, keys_of(profile.configurations)));
  if (!found->second.variants.contains(variant))
    return denied("variant " + in_quotes(variant) + " is none of configuration " + in_quotes(name) +
                  what_would_do(variant, keys_of(found->second.variants)));
  reader.duration(found->second.longest);
  return reader.result("file " + found->second.file);
}

Decision decide_service(const Profile& profile, const Request& request, const Situation& situation) {
  RequestReader reader(request);
  reader.only({"service"});
  const auto name = reader.word("service");
  if (!reader.good()) return reader.result("");
  if (!profile.services.contains(name))
    return denied("service " + in_quotes(name) + " is none of the profile's" +
                  what_would_do(name, keys_of(profile.services)));
  if (request.action == "restart" && !contains(situation.recovered, name))
    return denied("service " + in_quotes(name) +
                  ": its recovery has not worked in this session yet; run recover service=" + name);
  reader.no_duration();
  return reader.result("service " + name);
}

/// How far a vector fits an entry, and what the first element is that does not.
struct Fit {
  std::size_t elements = 0;
  std::string reason;  ///< empty: all of it
};

Fit fit(const CommandEntry& entry, const std::vector<std::string>& argv) {
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    const auto number = std::to_string(i + 1);
    if (i + 1 >= argv.size()) return {i, "argument " + number + " is missing, " + entry.arguments[i].expected()};
    if (!entry.arguments[i].takes(argv[i + 1]))
      return {i, "argument " + number + " " + in_quotes(argv[i + 1]) + " is not " + entry.arguments[i].expected()};
  }
  const auto taken = entry.arguments.size();
  if (argv.size() > taken + 1)
    return {taken, "argument " + std::to_string(taken + 1) + " " + in_quotes(argv[taken + 1]) +
                       " is one too many: the command ends after " + std::to_string(taken)};
  return {taken, {}};
}

Decision decide_command(const Profile& profile, const Request& request) {
  if (!request.parameters.empty())
    return denied("parameter " + in_quotes(request.parameters.begin()->first) + ": a command has arguments only");
  if (request.argv.empty()) return denied("no program is named");
  if (request.duration.count() != 0) return denied("duration: the profile says how long a command may take");
  std::vector<std::string> programs;
  std::optional<std::pair<Fit, const CommandEntry*>> best;
  for (const auto& entry : profile.commands) {
    if (!contains(programs, entry.program)) programs.push_back(entry.program);
    if (entry.program != request.argv.front()) continue;
    auto tried = fit(entry, request.argv);
    if (tried.reason.empty()) {
      auto decision = allowed("");
      decision.command = entry.name;
      return decision;
    }
    if (!best || tried.elements > best->first.elements) best = std::pair(std::move(tried), &entry);
  }
  if (best) return denied("command " + in_quotes(best->second->name) + ": " + best->first.reason);
  const auto near = base::nearest(request.argv.front(), programs);
  return denied("program " + in_quotes(request.argv.front()) + " is none of the profile's" +
                (near ? "; did you mean " + in_quotes(*near) + "?" : ""));
}

Decision decide_alone(const Profile& profile, const Request& request, const Situation& situation) {
  if (request.action == "signal") return decide_signal(profile, request, situation);
  if (request.action == "cpu" && profile.cpu) return decide_pressure(*profile.cpu, request, "workers");
  if (request.action == "memory" && profile.memory) return decide_pressure(*profile.memory, request, "megabytes");
  if (request.action == "disk" && profile.disk) return decide_pressure(*profile.disk, request, "megabytes");
  if (request.action == "network" && profile.network) return decide_network(*profile.network, request);
  if (request.action == "probe") return decide_probe(profile, request);
  if (request.action == "configure") return decide_configure(profile, request);
  if (request.action == "restart" || request.action == "recover") return decide_service(profile, request, situation);
  if (request.action == "command") return decide_command(profile, request);
  if (contains(action_names(), request.action))
    return denied("action " + in_quotes(request.action) + " is not in the profile");
  return denied("action " + in_quotes(request.action) + " does not exist" +
                what_would_do(request.action, action_names()));
}

}  // namespace

std::string Argument::expected() const {
  switch (kind) {
    case Kind::exact: return in_quotes(text);
    case Kind::one_of: return "one of " + base::join_names(words);
    case Kind::integer: return "a whole number from " + std::to_string(from) + " to " + std::to_string(to);
    case Kind::matches: return "what " + in_quotes(text) + " matches as a whole";
  }
  return "?";
}

bool Argument::takes(std::string_view element) const {
  if (element.find('\0') != std::string_view::npos) return false;
  switch (kind) {
    case Kind::exact: return element == text;
    case Kind::one_of: return contains(words, element);
    case Kind::integer: {
      const auto number = plain_number(element);
      return number && *number >= from && *number <= to;
    }
    case Kind::matches: {
      RE2::Options quiet;
      quiet.set_log_errors(false);
      quiet.set_never_nl(false);
      const RE2 regex(text, quiet);
      return regex.ok() && RE2::FullMatch(re2::StringPiece(element.data(), element.size()), regex);
    }
  }
  return false;
}

std::optional<std::vector<std::string>> CommandEntry::fixed_vector() const {
  std::vector<std::string> out = {program};
  for (const auto& argument : arguments) {
    if (argument.kind != Argument::Kind::exact) return std::nullopt;
    out.push_back(argument.text);
  }
  return out;
}

const CommandEntry* Profile::command(std::string_view entry_name) const {
  for (const auto& entry : commands)
    if (entry.name == entry_name) return &entry;
  return nullptr;
}

const std::vector<std::string>& action_names() {
  static const std::vector<std::string> names = {"signal", "cpu",       "memory",  "disk",    "network",
                                                 "probe",  "configure", "recover", "restart", "command"};
  return names;
}

Decision decide(const Profile& profile, const Request& request, const Situation& situation) {
  auto decision = decide_alone(profile, request, situation);
  // What brings a service back must be possible in every state.
  if (!decision.allowed || request.action == "recover") return decision;
  const auto* entry = profile.command(decision.command);
  if (entry != nullptr) decision.resource = "command " + entry->name;
  const auto most = entry == nullptr ? 1U : entry->at_once;
  unsigned same = 0;
  for (const auto& running : situation.running) same += running.resource == decision.resource ? 1 : 0;
  if (!decision.resource.empty() && same >= most)
    return denied(decision.resource + " is held by " +
                  (same == 1 ? "another action" : std::to_string(same) + " others") + " until that has been undone");
  if (situation.running.size() >= profile.at_once)
    return denied("at-once: " + std::to_string(situation.running.size()) +
                  " actions are going on, and the profile allows " + std::to_string(profile.at_once));
  return decision;
}

Decision decide_use(const Profile& profile, const std::string& kind, const std::string& word) {
  const auto& known = kind == "feature" ? profile.features : kind == "tier" ? profile.tiers : profile.pools;
  if (contains(known, word)) return allowed("");
  return denied(kind + " " + in_quotes(word) + " is none of the profile's" + what_would_do(word, known));
}

bool is_destructive_signal(std::string_view name) {
  return name == "TERM" || name == "INT" || name == "QUIT" || name == "ABRT" || name == "KILL";
}

int signal_number(std::string_view name) {
  static const std::vector<std::pair<std::string_view, int>> known = {
      {"TERM", SIGTERM}, {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"ABRT", SIGABRT}, {"KILL", SIGKILL},
      {"HUP", SIGHUP},   {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"STOP", SIGSTOP}};
  for (const auto& [word, number] : known)
    if (word == name) return number;
  return 0;
}

}  // namespace leafcutter::node::host
