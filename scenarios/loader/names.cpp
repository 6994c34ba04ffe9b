// Names in a scenario: services, ports, links, `${...}` and programs, and what to say when one does not exist.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "scenarios/loader/loading.hpp"
#include "scenarios/schema.hpp"
#include "scenarios/template.hpp"

namespace leafcutter::scenarios::loading {
namespace {

bool is_program(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

bool on_path(const std::string& program) {
  const char* variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t from = 0; from <= path.size();) {
    const auto to = std::min(path.find(':', from), path.size());
    if (to > from && is_program(path.substr(from, to - from) + "/" + program)) return true;
    from = to + 1;
  }
  return false;
}

/// What a service offers to `${service.…}`.
std::vector<std::string> fields_of(const Service& service) {
  std::vector<std::string> fields = {"host", "data"};
  if (service.ports.size() == 1) fields.emplace_back("port");
  for (const auto& port : service.ports) fields.push_back("port." + port.name);
  return fields;
}

std::string with_dollar(const std::string& name) { return "${" + name + "}"; }

std::vector<std::string> known_references(const Scenario& scenario, const Scope& scope) {
  std::vector<std::string> known(scope.variables.begin(), scope.variables.end());
  if (scope.own != nullptr) {
    known.emplace_back("data");
    for (const auto& field : fields_of(*scope.own))
      if (field.starts_with("port")) known.push_back(field);
  }
  for (const auto& service : scenario.services)
    for (const auto& field : fields_of(service)) known.push_back(service.name + "." + field);
  known.emplace_back("scenario");
  return known;
}

/// Why a reference that is not known is none, as exactly as can be said.
std::string why_unknown(const Scenario& scenario, const Scope& scope, const std::string& name,
                        const std::vector<std::string>& known) {
  const auto several = [](const Service& service, const std::string& prefix) {
    std::vector<std::string> written;
    for (const auto& port : service.ports) written.push_back(with_dollar(prefix + "port." + port.name));
    return service.ports.empty() ? " has no ports" : " has several ports; write " + base::join_names(written);
  };
  if (name == "port" && scope.own != nullptr && scope.own->ports.size() != 1)
    return ": service \"" + scope.own->name + "\"" + several(*scope.own, "");
  if ((name == "data" || name == "port") && scope.own == nullptr && !scenario.services.empty())
    return " belongs to a service; here write " + with_dollar(scenario.services.front().name + "." + name);
  const auto dot = name.find('.');
  if (dot != std::string::npos)
    if (const auto* service = scenario.service(name.substr(0, dot)); service != nullptr) {
      const auto field = name.substr(dot + 1);
      if (field == "port") return ": service \"" + service->name + "\"" + several(*service, service->name + ".");
      const auto fields = fields_of(*service);
      const auto near = near_name(field, fields);
      return ": service \"" + service->name + "\" has no \"" + field + "\"" +
             (near ? "; did you mean " + with_dollar(service->name + "." + *near) + "?"
                   : "; it has " + base::join_names(fields));
    }
  const auto near = near_name(name, known);
  if (near) return " is not known here; did you mean " + with_dollar(*near) + "?";
  return " is not known here" + (known.size() <= 10 ? "; known: " + base::join_names(known) : std::string());
}

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" \t");
  return from == std::string::npos ? "" : text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

}  // namespace

std::string text_of(const Node* node, const std::string& preset) {
  return node != nullptr && node->is_scalar() ? node->text : preset;
}

std::vector<std::string> texts_of(const Node* node) {
  std::vector<std::string> texts;
  if (node != nullptr && node->is_list())
    for (const auto& item : node->items)
      if (item.is_scalar()) texts.push_back(item.text);
  return texts;
}

nanoseconds duration_of(const Node* node, nanoseconds preset) {
  if (node == nullptr || !node->is_scalar()) return preset;
  const auto duration = base::parse_duration(node->text);
  return duration ? *duration : preset;
}

std::uint64_t number_of(const Node* node, std::uint64_t preset) {
  return node == nullptr ? preset : whole_number(*node).value_or(preset);
}

namespace {

/// The document from the node's place to the end of its line.
std::string_view line_from(std::string_view document, const Node& node) {
  std::size_t begin = 0;
  for (int line = 1; line < node.line; ++line) {
    begin = document.find('\n', begin);
    if (begin == std::string_view::npos) return {};
    ++begin;
  }
  begin += static_cast<std::size_t>(std::max(node.column - 1, 0));
  if (begin >= document.size()) return {};
  return document.substr(begin, document.find('\n', begin) - begin);
}

}  // namespace

std::pair<int, int> Loading::place_within(const Node& node, std::size_t at) const {
  const std::size_t quote = node.plain ? 0 : 1;
  const auto rest = line_from(scenario.text, node);
  if (rest.size() < quote || !rest.substr(quote).starts_with(node.text)) return {node.line, node.column};
  return {node.line, node.column + static_cast<int>(quote + at)};
}

bool Loading::comment_follows(const Node& node) const {
  const auto rest = line_from(scenario.text, node);
  if (!node.plain || !rest.starts_with(node.text)) return false;
  const auto next = rest.find_first_not_of(" \t", node.text.size());
  return next != std::string_view::npos && rest[next] == '#';
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  if (const auto near = near_name(word, known)) return "; did you mean \"" + *near + "\"?";
  return known.empty() || known.size() > 12 ? "" : "; known: " + base::join_names(known);
}

std::vector<std::string> service_names(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const auto& service : scenario.services) names.push_back(service.name);
  return names;
}

void check_references(Loading& loading, const Node& at, const std::string& text, const Scope& scope) {
  if (text.find("${") == std::string::npos) return;
  const auto parts = split_template(text);
  if (!parts) return loading.notes.error(at, parts.error().message);
  const auto known = known_references(loading.scenario, scope);
  for (const auto& part : *parts)
    if (part.reference && std::find(known.begin(), known.end(), part.text) == known.end())
      loading.notes.error(at, with_dollar(part.text) + why_unknown(loading.scenario, scope, part.text, known));
}

void check_references_below(Loading& loading, const Node* node, const Scope& scope) {
  if (node == nullptr) return;
  if (node->is_scalar()) check_references(loading, *node, node->text, scope);
  for (const auto& key : node->keys) check_references(loading, key, key.text, scope);
  for (const auto& item : node->items) check_references_below(loading, &item, scope);
}

Target resolve_target(Loading& loading, const Node& at, bool http) {
  Target target;
  if (!at.is_scalar() || at.text.empty()) return target;
  const auto slash = http ? at.text.find('/') : std::string::npos;
  const auto authority = at.text.substr(0, slash);
  const auto colon = authority.find(':');
  const auto name = authority.substr(0, colon);
  const auto* service = loading.scenario.service(name);
  if (service == nullptr) {
    loading.notes.error(at, "there is no service \"" + name + "\" in \"" + at.text + "\"" +
                                suggestion(name, service_names(loading.scenario)));
    return target;
  }
  std::vector<std::string> ports;
  for (const auto& port : service->ports)
    if (port.protocol != Protocol::udp && (!http || port.protocol == Protocol::http || colon != std::string::npos))
      ports.push_back(port.name);
  if (colon != std::string::npos) {
    const auto wanted = authority.substr(colon + 1);
    if (service->port(wanted) == nullptr) {
      loading.notes.error(at, "service \"" + name + "\" has no port \"" + wanted + "\"" + suggestion(wanted, ports));
      return target;
    }
    target.port = wanted;
  } else if (service->ports.size() == 1) {
    target.port = service->ports.front().name;
  } else if (ports.size() == 1) {
    target.port = ports.front();
  } else {
    loading.notes.error(at, "service \"" + name + "\" has " +
                                (service->ports.empty() ? "no ports"
                                                        : "several ports; write \"" + name + ":" +
                                                              service->ports.front().name + "\" or the like"));
    return target;
  }
  if (service->port(target.port)->protocol == Protocol::udp) {
    loading.notes.error(at, "port \"" + target.port + "\" of service \"" + name +
                                "\" is declared as udp; this needs a port of tcp or http");
    return target;
  }
  if (http && slash == std::string::npos) {
    loading.notes.error(at, "\"" + at.text + "\" has no path; write \"" + at.text + "/\" for the root");
    return target;
  }
  if (http && service->port(target.port)->protocol != Protocol::http)
    loading.notes.warning(at, "port \"" + target.port + "\" of service \"" + name +
                                  "\" is not declared as http: requests to it are no events");
  target.service = name;
  target.path = http ? at.text.substr(slash) : "";
  return target;
}

std::vector<std::string> load_command(Loading& loading, const Node* node, const Scope& scope) {
  check_references_below(loading, node, scope);
  auto command = texts_of(node);
  if (command.empty()) return command;
  auto& program = command.front();
  const auto& at = node->items.front();
  if (program.empty()) {
    loading.notes.error(at, "the program of a command is empty");
    return command;
  }
  const bool fixed = program.find("${") == std::string::npos;
  if (fixed && program.find('/') != std::string::npos && program.front() != '/')
    program = loading.scenario.folder + "/" + program;
  if (!loading.options.check_programs || !fixed) return command;
  if (program.find('/') == std::string::npos) {
    if (!on_path(program))
      loading.notes.error(at, "there is no program \"" + program +
                                  "\" on the PATH; a program beside the scenario is written with a slash: \"./" +
                                  program + "\"");
  } else if (::access(program.c_str(), F_OK) != 0) {
    loading.notes.error(at, "there is no program \"" + at.text + "\" (looked for " + program + ")");
  } else if (!is_program(program)) {
    loading.notes.error(at, "\"" + at.text + "\" is not an executable file (" + program + ")");
  }
  return command;
}

std::vector<Link> resolve_links(Loading& loading, const Node& at) {
  if (!at.is_scalar()) return {};
  const auto arrow = at.text.find("->");
  const auto fail = [&](const std::string& message) {
    loading.notes.error(at, message);
    return std::vector<Link>{};
  };
  if (arrow == std::string::npos) return fail("expected a link such as \"shop -> broker\", found " + describe(at));
  const auto from = trimmed(at.text.substr(0, arrow));
  const auto end = trimmed(at.text.substr(arrow + 2));
  const auto colon = end.find(':');
  const auto to = end.substr(0, colon);
  auto callers = service_names(loading.scenario);
  callers.emplace_back(workload_lane);
  if (std::find(callers.begin(), callers.end(), from) == callers.end())
    return fail("the link \"" + at.text + "\" begins at \"" + from + "\", which is no service" +
                suggestion(from, callers));
  const auto* service = loading.scenario.service(to);
  if (service == nullptr)
    return fail("the link \"" + at.text + "\" ends at \"" + to + "\", which is no service" +
                suggestion(to, service_names(loading.scenario)));
  if (from == to)
    return fail("the link \"" + at.text +
                "\" leads from a service to itself; such connections do not leave the service");
  if (service->ports.empty())
    return fail("the link \"" + at.text + "\" ends at service \"" + to + "\", which has no ports");
  std::vector<Link> links;
  std::vector<std::string> ports;
  for (const auto& port : service->ports) {
    ports.push_back(port.name);
    if (colon == std::string::npos || end.substr(colon + 1) == port.name)
      links.push_back({from, to, port.name, port.protocol, port.number, service->ports.size() == 1});
  }
  if (links.empty())
    return fail("service \"" + to + "\" has no port \"" + end.substr(colon + 1) + "\"" +
                suggestion(end.substr(colon + 1), ports));
  return links;
}

}  // namespace leafcutter::scenarios::loading
