#include "node/runs/loader.hpp"

#include <algorithm>
#include <utility>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "node/proxy/socket_address.hpp"
#include "node/runs/event_gates.hpp"
#include "node/runs/fault_reader.hpp"
#include "node/runs/json_text.hpp"
#include "node/runs/span.hpp"
#include "node/runs/vocabulary.hpp"
#include "scenarios/loader/structure.hpp"
#include "scenarios/matcher_text.hpp"
#include "scenarios/regex.hpp"

namespace leafcutter::node::runs {
namespace {

using scenarios::loading::Node;
using scenarios::loading::Notes;

const scenarios::loading::DocumentRules& run_rules() {
  static const scenarios::loading::DocumentRules rules{"Run document", "schema_version: 1", true};
  return rules;
}

const std::vector<Node>& items_of(const Node* node) {
  static const std::vector<Node> none;
  return node != nullptr && node->is_list() ? node->items : none;
}

std::string text_of(const Node* node) { return node != nullptr && node->is_scalar() ? node->text : ""; }

class Loader {
 public:
  Loader(const Node& document, int version, Notes& notes) : document_(document), notes_(notes) {
    run_.schema_version = version;
  }

  Run load() {
    run_.name = text_of(document_.find("name"));
    if (const auto* seed = document_.find("seed")) run_.seed = scenarios::loading::whole_number(*seed).value_or(0);
    const auto& proxies = items_of(document_.find("proxies"));
    for (std::size_t i = 0; i < proxies.size(); ++i) load_proxy(proxies[i], "proxies[" + std::to_string(i) + "]");
    const auto& phases = items_of(document_.find("phases"));
    for (std::size_t i = 0; i < phases.size(); ++i)
      load_phase(phases[i], "phases[" + std::to_string(i) + "]", i + 1 == phases.size());
    return std::move(run_);
  }

 private:
  void load_proxy(const Node& node, const std::string& path) {
    ProxySpec spec;
    spec.transport = text_of(node.find("protocol")) == "udp" ? proxy::Transport::udp : proxy::Transport::tcp;
    spec.name = text_of(node.find("name"));
    if (const auto* name = node.find("name"); name != nullptr && name->is_scalar()) check_name(*name, path);
    if (const auto* listen = node.find("listen"); listen != nullptr && listen->is_scalar()) {
      spec.listen = listen->text;
      spec.listen_at = notes_.place(*listen);
      check_listen(*listen, path + ".listen", spec);
    }
    if (const auto* upstream = node.find("upstream"); upstream != nullptr && upstream->is_scalar()) {
      spec.upstream = upstream->text;
      spec.upstream_at = notes_.place(*upstream);
      check_upstream(*upstream, path);
    }
    load_limits(node.find("limits"), path + ".limits", spec.limits);
    run_.proxies.push_back(std::move(spec));
  }

  void check_name(const Node& name, const std::string& path) {
    if (!name.text.empty() && name.text.find_first_not_of(" \t\r\n") == std::string::npos)
      notes_.error(name, path + ".name: it is blank; a word would do");
    for (std::size_t i = 0; i < run_.proxies.size(); ++i)
      if (run_.proxies[i].name == name.text)
        notes_.error(name, path + ".name: proxies[" + std::to_string(i) + "] is called \"" + name.text +
                               "\", too; names are unique");
  }

  void check_listen(const Node& node, const std::string& path, const ProxySpec& spec) {
    const auto address = proxy::parse_host_port(node.text, path);
    if (!address) return notes_.error(node, address.error().message);
    if (run_.schema_version == 1 && proxy::literal_address(*address).empty())
      return notes_.error(node, path + ": \"" + address->host +
                                    "\" is a name; schema_version 1 wants an address such as 127.0.0.1:8080 (2 takes "
                                    "names)");
    for (std::size_t i = 0; address->port != 0 && i < run_.proxies.size(); ++i)
      if (run_.proxies[i].listen == node.text && run_.proxies[i].transport == spec.transport)
        notes_.error(node, path + ": proxies[" + std::to_string(i) + "] listens on " + node.text +
                               " already; port 0 takes a free one");
  }

  void check_upstream(const Node& node, const std::string& path) {
    const auto upstream = proxy::parse_host_port(node.text, path + ".upstream");
    if (!upstream) return notes_.error(node, upstream.error().message);
    if (upstream->port == 0) notes_.error(node, path + ".upstream: port 0; 1 to 65535 would do");
  }

  void load_limits(const Node* node, const std::string& path, proxy::LinkLimits& limits) {
    if (node == nullptr || !node->is_map()) return;
    const auto number = [&](const char* name, std::size_t& into) {
      if (const auto* one = node->find(name))
        if (const auto value = scenarios::loading::whole_number(*one)) into = *value;
    };
    const auto time = [&](const char* name, std::chrono::milliseconds& into) {
      if (const auto* one = node->find(name))
        if (const auto span = load_span(*one, path + "." + name))
          into = std::max(std::chrono::milliseconds(1), std::chrono::ceil<std::chrono::milliseconds>(*span));
    };
    number("connections", limits.connections);
    number("sessions", limits.sessions);
    number("memory_bytes", limits.memory_bytes);
    number("direction_bytes", limits.direction_bytes);
    time("connect_timeout", limits.connect_timeout);
    time("session_idle", limits.session_idle);
  }

  /// Of a scalar that has been checked against the pattern, and reported when it is none.
  std::optional<std::chrono::nanoseconds> load_span(const Node& node, const std::string& path) {
    if (!node.is_scalar() || !scenarios::regex_search(span_pattern(), node.text)) return std::nullopt;
    const auto span = parse_span(node.text);
    if (span) return *span;
    notes_.error(node, path + ": " + span.error().message);
    return std::nullopt;
  }

  void load_phase(const Node& node, const std::string& path, bool last) {
    Phase phase;
    phase.name = text_of(node.find("name"));
    for (const auto& other : run_.phases)
      if (other.name == phase.name && !phase.name.empty()) {
        notes_.warning(*node.find("name"), path + ".name: an earlier phase is called \"" + phase.name +
                                               "\", too; events will not tell them apart");
        break;
      }
    const auto* duration = node.find("duration");
    if (duration != nullptr && duration->is_scalar())
      phase.duration = load_span(*duration, path + ".duration");
    else if (!last && (duration == nullptr || !duration->reported) && node.is_map())
      notes_.error(duration != nullptr ? *duration : node,
                   path + ".duration: only the last phase may go without one; 30s would do");
    for (const auto& spec : run_.proxies) phase.sets[spec.name].phase = phase.name;
    const auto& proxies = items_of(node.find("proxies"));
    std::vector<std::string> named;
    waiting_.clear();
    for (std::size_t i = 0; i < proxies.size(); ++i)
      load_phase_proxy(proxies[i], path + ".proxies[" + std::to_string(i) + "]", phase, named);
    for (const auto& [proxy, after] : waiting_) load_after(proxy, after, phase);
    run_.phases.push_back(std::move(phase));
  }

  void load_phase_proxy(const Node& node, const std::string& path, Phase& phase, std::vector<std::string>& named) {
    const auto* name = node.find("proxy");
    if (name == nullptr || !name->is_scalar()) return;
    const auto spec = std::find_if(run_.proxies.begin(), run_.proxies.end(),
                                   [&](const ProxySpec& one) { return one.name == name->text; });
    if (spec == run_.proxies.end()) return unknown_proxy(*name, path);
    if (std::find(named.begin(), named.end(), name->text) != named.end())
      return notes_.error(
          *name, path + ".proxy: \"" + name->text + "\" has its faults in this phase already; put them into one list");
    named.push_back(name->text);
    FaultReader reader({run_.schema_version, spec->transport}, notes_);
    phase.sets[spec->name].faults = reader.read(node.find("faults"), path + ".faults");
    for (const auto& after : reader.waiting()) waiting_.emplace_back(spec->name, after);
  }

  /// What cannot be is said: the fault would never be in force.
  void load_after(const std::string& proxy, const FaultReader::After& after, Phase& phase) {
    const auto& node = *after.node;
    const auto kind = awaited_kind(text_of(node.find("record")));
    if (!kind) return;
    Awaited awaited;
    awaited.kind = *kind;
    awaited.proxy = proxy;
    if (const auto* name = node.find("proxy"); name != nullptr && name->is_scalar()) {
      awaited.proxy = name->text;
      if (!phase.sets.contains(name->text)) return unknown_proxy(*name, after.path);
    }
    if (const auto* id = node.find("fault"); id != nullptr && id->is_scalar()) {
      awaited.fault = id->text;
      if (!check_awaited_fault(*id, {proxy, after.fault}, after.path, awaited, phase)) return;
    }
    if (const auto* number = node.find("connection")) awaited.connection = scenarios::loading::whole_number(*number);
    if (const auto* cause = node.find("cause")) awaited.cause = awaited_cause(text_of(cause));
    const bool has_cause = *kind == proxy::EventKind::connect_failed || *kind == proxy::EventKind::closed;
    if (awaited.cause && !has_cause)
      return notes_.error(*node.find("cause"),
                          after.path + ".cause: only connect-failed and connection-closed have one");
    if (const auto* count = node.find("count")) awaited.count = scenarios::loading::whole_number(*count).value_or(1);
    phase.awaited[proxy][after.fault] = std::move(awaited);
  }

  bool check_awaited_fault(const Node& id, const std::pair<std::string, std::string>& own, const std::string& path,
                           const Awaited& awaited, const Phase& phase) {
    const auto wrong = [&](const std::string& why) {
      notes_.error(id, path + ".fault: " + why);
      return false;
    };
    if (awaited.kind == proxy::EventKind::accepted || awaited.kind == proxy::EventKind::connected ||
        awaited.kind == proxy::EventKind::connect_failed)
      return wrong("no fault does that; struck, passed-over and connection-closed name one");
    if (own == std::pair(awaited.proxy, awaited.fault)) return wrong("it would wait for itself");
    std::vector<std::string> known;
    for (const auto& fault : phase.sets.at(awaited.proxy).faults) known.push_back(fault.id);
    if (std::find(known.begin(), known.end(), awaited.fault) != known.end()) return true;
    const auto near = scenarios::near_name(awaited.fault, known);
    return wrong("in this phase no fault of \"" + awaited.proxy + "\" is called \"" + awaited.fault + "\"" +
                 (near            ? "; did you mean \"" + *near + "\"?"
                  : known.empty() ? "; it has none"
                                  : "; known: " + base::join_names(known)));
  }

  void unknown_proxy(const Node& name, const std::string& path) {
    std::vector<std::string> known;
    for (const auto& one : run_.proxies) known.push_back(one.name);
    const auto near = scenarios::near_name(name.text, known);
    notes_.error(name, path + ".proxy: no proxy is called " + scenarios::loading::describe(name) +
                           (near ? "; did you mean \"" + *near + "\"?" : "; known: " + base::join_names(known)));
  }

  const Node& document_;
  Notes& notes_;
  std::vector<std::pair<std::string, FaultReader::After>> waiting_;  ///< of the phase, by proxy
  Run run_;
};

/// Nothing: it is not known which keys the document may have, and that has been said.
std::optional<int> version_of(const Node& document, Notes& notes) {
  if (!document.is_map()) {
    notes.error(document, "the document: expected a mapping that begins with \"schema_version: 1\", found " +
                              scenarios::loading::describe(document));
    return std::nullopt;
  }
  const auto* version = document.find("schema_version");
  if (version == nullptr) {
    for (const auto& key : document.keys)
      if (scenarios::near_name(key.text, {"schema_version"})) {
        notes.error(key, "unknown key \"" + key.text + "\" in the document; did you mean \"schema_version\"?");
        return std::nullopt;
      }
    notes.error(document,
                document.find("leafcutter") != nullptr
                    ? "this is a scenario, for `leafcutter run`; a Run document begins with \"schema_version: 1\""
                    : "the document lacks \"schema_version\": 1 or 2 would do");
    return std::nullopt;
  }
  const auto number = scenarios::loading::whole_number(*version);
  if (number && *number >= 1 && *number <= static_cast<std::uint64_t>(newest_schema_version))
    return static_cast<int>(*number);
  notes.error(*version, "schema_version: found " + scenarios::loading::describe(*version) +
                            "; this program reads the versions 1 and 2, as numbers");
  return std::nullopt;
}

bool is_json(const std::string& file) { return file.size() > 5 && file.ends_with(".json"); }

}  // namespace

RunLoadResult load_run_file(const std::string& path) {
  const auto text = base::read_file(path);
  if (text) return load_run_text(*text, path);
  RunLoadResult result;
  result.errors.push_back({base::ErrorCode::bad_input, text.error().message, {path, 0, 0}});
  return result;
}

RunLoadResult load_run_text(std::string_view text, const std::string& file) {
  Notes notes(file);
  RunLoadResult result;
  std::optional<Node> document;
  if (const auto flaw = is_json(file) ? json_flaw(text) : std::nullopt)
    notes.error(flaw->line, flaw->column, "this is not JSON: " + flaw->message);
  else
    document =
        scenarios::loading::parse_document(is_json(file) ? json_as_yaml(text) : std::string(text), notes, run_rules());
  if (const auto version = document ? version_of(*document, notes) : std::nullopt) {
    const auto& vocabulary = run_vocabulary(*version);
    scenarios::loading::check_against(vocabulary, vocabulary.shapes.front().name, *document, "", notes);
    auto run = Loader(*document, *version, notes).load();
    run.digest = base::sha256(text);
    if (!notes.any_error()) result.run = std::move(run);
  }
  result.errors = notes.errors();
  result.warnings = notes.warnings();
  return result;
}

}  // namespace leafcutter::node::runs
