// Services: their ports, readiness, restarts, variants, and an order in which they can be started.
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"
#include "scenarios/loader/loading.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::scenarios::loading {
namespace {

/// `${data}` and `${port}` would be ambiguous, and lanes must differ.
bool is_reserved(const std::string& name) {
  return name == workload_lane || name == "leaf" || name == "data" || name == "port" || name == "scenario";
}

std::vector<Port> load_ports(Loading& loading, const Service& service, const Node* node) {
  std::vector<Port> ports;
  if (node == nullptr || !node->is_map()) return ports;
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const auto& value = node->items[i];
    const auto* number = value.is_map() ? value.find("port") : &value;
    const auto read = number_of(number, 0);
    if (read == 0 || read > 65535) continue;
    const auto protocol = text_of(value.find("protocol"));
    Port port{node->keys[i].text, static_cast<std::uint16_t>(read),
              protocol == "http"  ? Protocol::http
              : protocol == "udp" ? Protocol::udp
                                  : Protocol::tcp};
    for (const auto& other : ports)
      if (other.number == port.number && (other.protocol == Protocol::udp) == (port.protocol == Protocol::udp))
        loading.notes.error(*number, "ports \"" + other.name + "\" and \"" + port.name + "\" of service \"" +
                                         service.name + "\" have the same number " + std::to_string(port.number));
    ports.push_back(std::move(port));
  }
  return ports;
}

/// A port that can be dialled to see whether somebody is there: no UDP port can.
std::string ready_port(Loading& loading, const Service& service, const Node* named, const Node& at) {
  std::vector<std::string> names;
  for (const auto& port : service.ports)
    if (port.protocol != Protocol::udp) names.push_back(port.name);
  if (named == nullptr) {
    if (names.size() == 1) return names.front();
    loading.notes.error(at, "\"ready\" of service \"" + service.name + "\" does not say which port; " +
                                (names.empty() ? "the service declares none" : "it has " + base::join_names(names)));
    return {};
  }
  const auto* port = named->is_scalar() ? service.port(named->text) : nullptr;
  if (port != nullptr && port->protocol == Protocol::udp)
    loading.notes.error(*named, "port \"" + port->name + "\" of service \"" + service.name +
                                    "\" is declared as udp: nobody can see whether it is ready; use log or run");
  if (named->is_scalar() && is_name(named->text) && port == nullptr)
    loading.notes.error(*named, "service \"" + service.name + "\" has no port \"" + named->text + "\"" +
                                    suggestion(named->text, names));
  return text_of(named);
}

Readiness load_readiness(Loading& loading, const Service& service, const Node* node) {
  Readiness ready;
  if (node == nullptr || !node->is_map()) return ready;
  ready.within = duration_of(node->find("within"), ready.within);
  if (const auto* path = node->find("http")) {
    ready.by = Readiness::By::http;
    ready.path = text_of(path);
    if (path->is_scalar() && !path->text.empty() && path->text.front() != '/')
      loading.notes.error(*path, "\"http\" of \"ready\" of service \"" + service.name +
                                     "\": expected a path that begins with a slash, found " + describe(*path));
    ready.port = ready_port(loading, service, node->find("port"), *path);
  } else if (const auto* port = node->find("tcp")) {
    ready.by = Readiness::By::tcp;
    ready.port = ready_port(loading, service, port, *port);
  } else if (const auto* log = node->find("log")) {
    ready.by = Readiness::By::log;
    ready.pattern = text_of(log);
  } else if (const auto* run = node->find("run")) {
    ready.by = Readiness::By::command;
    ready.command = load_command(loading, run, {&service, {}});
  }
  return ready;
}

RestartPolicy load_restart(const Node* node) {
  RestartPolicy policy;
  if (node == nullptr || !node->is_map()) return policy;
  const auto on = text_of(node->find("on"));
  policy.on = on == "crash"      ? RestartPolicy::On::crash
              : on == "any-exit" ? RestartPolicy::On::any_exit
                                 : RestartPolicy::On::never;
  policy.at_most = static_cast<unsigned>(number_of(node->find("at-most"), policy.at_most));
  return policy;
}

void load_environment(Loading& loading, const Service& service, const Node* node,
                      std::map<std::string, std::string>& into) {
  if (node == nullptr || !node->is_map()) return;
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const auto& name = node->keys[i];
    if (name.text.find('=') != std::string::npos)
      loading.notes.error(name, "the environment variable \"" + name.text + "\" has an equals sign in its name");
    check_references_below(loading, &node->items[i], {&service, {}});
    into[name.text] = text_of(&node->items[i]);
  }
}

void load_seed_data(Loading& loading, Service& service, const Node* node) {
  const auto* copy = node != nullptr ? node->find("copy") : nullptr;
  if (copy == nullptr || !copy->is_scalar() || copy->text.empty()) return;
  service.seed_data = copy->text.front() == '/' ? copy->text : loading.scenario.folder + "/" + copy->text;
  struct stat status {};
  if (loading.options.check_programs && (::stat(service.seed_data.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)))
    loading.notes.error(*copy, "there is no folder \"" + copy->text + "\" (looked for " + service.seed_data + ")");
}

/// Every variant is checked; the chosen one is applied.
void load_variants(Loading& loading, Service& service, const Node* node) {
  if (node == nullptr || !node->is_map()) return;
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const auto& variant = node->items[i];
    auto& names = loading.scenario.variants;
    if (std::find(names.begin(), names.end(), node->keys[i].text) == names.end()) names.push_back(node->keys[i].text);
    auto changed = service;
    if (variant.find("run") != nullptr) changed.run = load_command(loading, variant.find("run"), {&service, {}});
    check_references_below(loading, variant.find("add-arguments"), {&service, {}});
    for (const auto& argument : texts_of(variant.find("add-arguments"))) changed.run.push_back(argument);
    load_environment(loading, service, variant.find("environment"), changed.environment);
    if (node->keys[i].text == loading.options.variant) service = std::move(changed);
  }
}

void load_needs(Loading& loading, Service& service, const Node* node) {
  if (node == nullptr || !node->is_list()) return;
  auto others = service_names(loading.scenario);
  std::erase(others, service.name);
  for (const auto& item : node->items) {
    if (!item.is_scalar() || !is_name(item.text)) continue;
    if (item.text == service.name)
      loading.notes.error(item, "service \"" + service.name + "\" needs itself");
    else if (loading.scenario.service(item.text) == nullptr)
      loading.notes.error(item, "service \"" + service.name + "\" needs \"" + item.text + "\", which is no service" +
                                    suggestion(item.text, others));
    else if (std::find(service.needs.begin(), service.needs.end(), item.text) == service.needs.end())
      service.needs.push_back(item.text);
  }
}

/// One way round a circle that begins at `name`, or nothing.
bool find_circle(const Scenario& scenario, const std::string& name, const std::string& goal,
                 std::vector<std::string>& way, std::set<std::string>& seen) {
  for (const auto& need : scenario.service(name)->needs) {
    if (need == goal) return true;
    if (!seen.insert(need).second) continue;
    way.push_back(need);
    if (find_circle(scenario, need, goal, way, seen)) return true;
    way.pop_back();
  }
  return false;
}

/// Stable: among those that can start, the first in the document.
void sort_by_needs(Loading& loading, const Node& services) {
  std::vector<Service> sorted;
  auto& waiting = loading.scenario.services;
  const auto started = [&](const std::string& name) {
    return std::any_of(sorted.begin(), sorted.end(), [&](const Service& s) { return s.name == name; });
  };
  while (!waiting.empty()) {
    const auto next = std::find_if(waiting.begin(), waiting.end(), [&](const Service& s) {
      return std::all_of(s.needs.begin(), s.needs.end(), started);
    });
    if (next == waiting.end()) break;
    sorted.push_back(std::move(*next));
    waiting.erase(next);
  }
  std::set<std::string> told;
  for (const auto& service : waiting) {
    std::vector<std::string> way = {service.name};
    std::set<std::string> seen;
    // A service that only needs a member of a circle has no way back to itself and is not the one to blame.
    auto all = loading.scenario;
    all.services.insert(all.services.end(), sorted.begin(), sorted.end());
    if (told.count(service.name) > 0 || !find_circle(all, service.name, service.name, way, seen)) continue;
    told.insert(way.begin(), way.end());
    std::string circle;
    for (const auto& name : way) circle += name + " -> ";
    const auto* node = services.find(service.name);
    const auto* needs = node->find("needs");
    loading.notes.error(needs != nullptr ? *needs : *node,
                        "services need each other in a circle: " + circle + service.name);
  }
  sorted.insert(sorted.end(), waiting.begin(), waiting.end());
  waiting = std::move(sorted);
}

}  // namespace

void load_services(Loading& loading) {
  const auto* node = loading.document.find("services");
  if (node == nullptr || !node->is_map()) return;
  // Names and ports first: everything else may speak of them.
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const auto& name = node->keys[i];
    if (loading.scenario.service(name.text) != nullptr) continue;  // given twice: reported by the parser
    if (is_reserved(name.text))
      loading.notes.error(name, "a service cannot be called \"" + name.text + "\": the name has a meaning of its own");
    Service service;
    service.name = name.text;
    service.where = loading.notes.place(name);
    service.ports = load_ports(loading, service, node->items[i].find("ports"));
    loading.scenario.services.push_back(std::move(service));
  }
  for (auto& service : loading.scenario.services) {
    const auto& value = *node->find(service.name);
    const Scope scope{&service, {}};
    service.run = load_command(loading, value.find("run"), scope);
    load_environment(loading, service, value.find("environment"), service.environment);
    load_seed_data(loading, service, value.find("data"));
    if (const auto* prepare = value.find("prepare"); prepare != nullptr)
      for (const auto& command : prepare->items) service.prepare.push_back(load_command(loading, &command, scope));
    service.ready = load_readiness(loading, service, value.find("ready"));
    service.restart = load_restart(value.find("restart"));
    load_needs(loading, service, value.find("needs"));
    load_variants(loading, service, value.find("variants"));
  }
  std::sort(loading.scenario.variants.begin(), loading.scenario.variants.end());
  sort_by_needs(loading, *node);
}

void load_links(Loading& loading) {
  auto& scenario = loading.scenario;
  const auto* node = loading.document.find("links");
  if (node == nullptr) {
    auto callers = service_names(scenario);
    callers.emplace_back(workload_lane);
    for (const auto& from : callers)
      for (const auto& to : scenario.services)
        for (const auto& port : to.ports)
          if (from != to.name)
            scenario.links.push_back({from, to.name, port.name, port.protocol, port.number, to.ports.size() == 1});
    return;
  }
  if (!node->is_list()) return;
  for (const auto& item : node->items)
    for (auto& link : resolve_links(loading, item)) {
      if (scenario.link(link.id()) != nullptr)
        loading.notes.error(item, "the link \"" + link.id() + "\" is given twice");
      else
        scenario.links.push_back(std::move(link));
    }
}

}  // namespace leafcutter::scenarios::loading
