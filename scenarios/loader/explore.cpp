// The space to explore: what is written about faults, expanded into one choice for each lane, kind, operation and
// parameter.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "scenarios/dns_lanes.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/loader/loading.hpp"
#include "scenarios/loader/rules.hpp"
#include "scenarios/rule.hpp"
#include "scenarios/rule_terms.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::scenarios::loading {
namespace {

/// What one `on` stands for.
struct Strikes {
  std::vector<std::pair<std::string, const Node*>> services;
  std::vector<std::pair<Link, const Node*>> links;
  struct Sets : Parting {
    const Node* at = nullptr;
  };
  std::vector<Sets> between;
};

class ExploreReader {
 public:
  explicit ExploreReader(Loading& loading) : loading_(loading), explore_(loading.scenario.explore) {}

  void read(const Node& node) {
    explore_.at_once = static_cast<unsigned>(number_of(node.find("at-once"), explore_.at_once));
    explore_.occurrences = static_cast<unsigned>(number_of(node.find("occurrences"), explore_.occurrences));
    explore_.seed = number_of(node.find("seed"), explore_.seed);
    explore_.leaf_timeout = duration_of(node.find("leaf-timeout"), explore_.leaf_timeout);
    if (const auto* budget = node.find("budget"); budget != nullptr) {
      explore_.max_leaves = number_of(budget->find("leaves"), explore_.max_leaves);
      explore_.max_time = duration_of(budget->find("time"), explore_.max_time);
    }
    if (const auto* observe = node.find("observe"); observe != nullptr && observe->is_map()) read_observe(*observe);
    if (const auto* faults = node.find("faults"); faults != nullptr && faults->is_list())
      for (const auto& fault : faults->items)
        if (fault.is_map()) read_fault(fault);
  }

 private:
  void read_observe(const Node& node) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const auto& name = node.keys[i];
      if (!known_service(name)) continue;
      for (const auto& family : texts_of(&node.items[i])) observe(name.text, family);
    }
  }

  bool known_service(const Node& name) {
    if (loading_.scenario.service(name.text) != nullptr) return true;
    loading_.notes.error(
        name, "there is no service \"" + name.text + "\"" + suggestion(name.text, service_names(loading_.scenario)));
    return false;
  }

  void observe(const std::string& service, const std::string& family) {
    observe_family(loading_.scenario, service, family);
  }

  void read_target(const Node& on, Strikes& strikes) {
    if (on.is_list()) {
      for (const auto& item : on.items)
        if (!item.is_list()) read_target(item, strikes);
    } else if (on.is_map()) {
      const auto* named = on.find("link");
      if (on.find("between") != nullptr) read_between(on, strikes);
      if (named == nullptr) return;
      for (auto& link : resolve_links(loading_, *named)) {
        if (loading_.scenario.link(link.id()) != nullptr) {
          strikes.links.emplace_back(std::move(link), named);
          continue;
        }
        std::vector<std::string> ids;
        for (const auto& known : loading_.scenario.links) ids.push_back(known.id());
        loading_.notes.error(*named, "there is no link \"" + link.id() + "\"" + suggestion(link.id(), ids));
      }
    } else if (on.is_scalar() && is_name(on.text) && known_service(on)) {
      strikes.services.emplace_back(on.text, &on);
    }
  }

  /// The names of one side; each is a service or the workload, and on one side only.
  std::vector<std::string> read_side(const Node* node, const std::vector<std::string>& other) {
    std::vector<std::string> names;
    auto known = service_names(loading_.scenario);
    known.emplace_back(workload_lane);
    const auto take = [&](const Node& name) {
      if (!name.is_scalar() || !is_name(name.text)) return;
      if (std::find(known.begin(), known.end(), name.text) == known.end())
        loading_.notes.error(name, "there is no service \"" + name.text + "\"" + suggestion(name.text, known));
      else if (std::find(other.begin(), other.end(), name.text) != other.end())
        loading_.notes.error(name, "\"" + name.text + "\" is on both sides of the partition");
      else if (std::find(names.begin(), names.end(), name.text) == names.end())
        names.push_back(name.text);
    };
    if (node != nullptr && node->is_list())
      for (const auto& item : node->items) take(item);
    else if (node != nullptr)
      take(*node);
    return names;
  }

  void read_between(const Node& on, Strikes& strikes) {
    Strikes::Sets sets;
    sets.at = &on;
    sets.first = read_side(on.find("between"), {});
    sets.second = read_side(on.find("and"), sets.first);
    if (on.find("and") == nullptr)
      return loading_.notes.error(on, "\"between\" needs \"and\": the services on the other side");
    if (sets.first.empty() || sets.second.empty()) return;
    sets.across = crossing(sets);
    if (sets.across.empty())
      return loading_.notes.error(on, "no link leads from " + base::join_names(sets.first) + " to " +
                                          base::join_names(sets.second) + " or back: there is nothing to part");
    strikes.between.push_back(std::move(sets));
  }

  std::vector<Link> crossing(const Parting& sets) const {
    const auto has = [](const std::vector<std::string>& side, const std::string& name) {
      return std::find(side.begin(), side.end(), name) != side.end();
    };
    std::vector<Link> links;
    for (const auto& link : loading_.scenario.links)
      if ((has(sets.first, link.from) && has(sets.second, link.to)) ||
          (has(sets.second, link.from) && has(sets.first, link.to)))
        links.push_back(link);
    return links;
  }

  void read_fault(const Node& node) {
    Strikes strikes;
    const auto* on = node.find("on");
    if (on != nullptr) read_target(*on, strikes);
    if (const auto* syscalls = node.find("syscalls"); syscalls != nullptr && syscalls->is_map()) {
      refuse_links(strikes, "syscalls");
      for (const auto& [service, at] : strikes.services) read_syscalls(*syscalls, service);
    }
    if (const auto* network = node.find("network"); network != nullptr && network->is_list()) {
      for (const auto& [service, at] : strikes.services)
        loading_.notes.error(*at, "\"network\" faults strike links, and \"" + service +
                                      "\" is a service; write { link: caller -> " + service + " }");
      for (const auto& [link, at] : strikes.links)
        for (const auto& kind : network->items) read_network(kind, link);
      for (const auto& sets : strikes.between)
        for (const auto& kind : network->items) read_partition(kind, sets);
    }
    if (const auto* process = node.find("process"); process != nullptr && process->is_list()) {
      refuse_links(strikes, "process");
      for (const auto& [service, at] : strikes.services)
        for (const auto& item : process->items) read_process(item, service);
    }
    if (const auto* dns = node.find("dns"); dns != nullptr && dns->is_list()) {
      refuse_links(strikes, "dns");
      for (const auto& [service, at] : strikes.services)
        for (const auto& item : dns->items) read_dns(item, service);
    }
    if (const auto* written = node.find("rules"); written != nullptr && written->is_list()) {
      RuleTargets targets;
      for (const auto& [service, at] : strikes.services) targets.services.push_back(service);
      for (const auto& [link, at] : strikes.links) targets.links.push_back(link);
      targets.between.assign(strikes.between.begin(), strikes.between.end());
      load_rules(loading_, *written, targets);
    }
  }

  void refuse_links(const Strikes& strikes, const std::string& what) {
    for (const auto& sets : strikes.between)
      loading_.notes.error(*sets.at, "\"" + what + "\" faults strike services, and this is between services");
    for (const auto& [link, at] : strikes.links)
      loading_.notes.error(*at, "\"" + what + "\" faults strike services, and \"" + link.id() + "\" is a link");
  }

  void add(const Node& at, FaultChoice choice) {
    const auto* kind = fault_kind(choice.kind);
    if (kind == nullptr) return;
    if (const auto checked = check_params(*kind, choice.params); !checked)
      return loading_.notes.error(at, checked.error().message);
    const auto same = std::any_of(explore_.faults.begin(), explore_.faults.end(), [&](const FaultChoice& other) {
      return other.kind == choice.kind && other.lane == choice.lane && other.operation == choice.operation &&
             other.path_glob == choice.path_glob && other.params == choice.params;
    });
    if (same) return;  // asked for twice is asked for once
    warn_of_crash(loading_, at, *kind, choice.lane);
    explore_.faults.push_back(std::move(choice));
  }

  static bool strikes_operation(const std::string& kind, const std::string& operation) {
    const auto& operations = fault_kind(kind)->operations;
    return std::find(operations.begin(), operations.end(), operation) != operations.end();
  }

  void read_syscalls(const Node& node, const std::string& service) {
    const auto paths = text_of(node.find("paths"));
    const auto* delay = node.find("delay");
    const auto* crash = node.find("crash");
    const auto* power_loss = node.find("power-loss");
    const auto* families = node.find("families");
    if (families == nullptr || !families->is_list()) return;
    std::vector<const SyscallFamily*> known;
    for (const auto& name : families->items) {
      const auto* family = name.is_scalar() ? syscall_family(name.text) : nullptr;
      if (family == nullptr) continue;
      known.push_back(family);
      observe(service, family->name);
      const auto choose = [&](const Node& at, const std::string& kind, Value params) {
        add(at, {kind, service, family->name, family->object == "file" ? paths : "", std::move(params)});
      };
      for (const auto& error : texts_of(node.find("errors")))
        if (error_number(error) != 0) choose(*node.find("errors"), "errno", {{"error", error}});
      if (delay != nullptr && delay->is_scalar() && base::parse_duration(delay->text))
        choose(*delay, "delay", {{"for", delay->text}});
      for (const auto& [asked, kind] : {std::pair{crash, "crash"}, {power_loss, "power-loss"}}) {
        if (text_of(asked) != "true") continue;
        const auto before = std::string(kind) + "-before";
        const auto after = std::string(kind) + "-after";
        choose(*asked, before, Value::object());
        if (strikes_operation(after, family->name)) choose(*asked, after, Value::object());
      }
    }
    if (const auto* effects = node.find("effects"); effects != nullptr && effects->is_list())
      for (const auto& effect : effects->items) read_effect(effect, service, known, paths);
  }

  /// A kind and its parameters, as `name` or `{ name: parameter }` or `{ name: { parameter: value } }`.
  struct Chosen {
    const FaultKind* kind = nullptr;
    const Node* at = nullptr;
    Value params = Value::object();
  };

  static Value parameter_value(const FaultParameter& parameter, const Node& node) {
    return parameter.type == FaultParameter::Type::count ? to_value(node) : Value(node.text);
  }

  /// False when the value is malformed in a way that has been reported: the structure knows numbers, words and
  /// durations.
  static bool add_parameter(Chosen& chosen, const FaultParameter& parameter, const Node& node) {
    using Type = FaultParameter::Type;
    auto& value = chosen.params[parameter.name] = parameter_value(parameter, node);
    if (parameter.type == Type::duration) return base::parse_duration(node.text).ok();
    return (parameter.type != Type::count && parameter.type != Type::word) ||
           check_param(*chosen.kind, parameter, value).ok();
  }

  /// Nothing when it is malformed; what is missing is reported.
  std::optional<Chosen> read_kind(const Node& item, Mechanism mechanism) {
    const bool mapping = item.is_map() && item.keys.size() == 1;
    if (!item.is_scalar() && !mapping) return std::nullopt;
    const auto& name = mapping ? item.keys.front() : item;
    Chosen chosen{fault_kind(name.text), &name};
    if (chosen.kind == nullptr || chosen.kind->mechanism != mechanism) return std::nullopt;
    const auto& parameters = chosen.kind->parameters;
    if (mapping) {
      const auto& given = item.items.front();
      if (parameters.empty()) return std::nullopt;
      if (given.is_map()) {
        for (std::size_t i = 0; i < given.items.size(); ++i)
          for (const auto& parameter : parameters)
            if (parameter.name == given.keys[i].text && given.items[i].is_scalar() &&
                !add_parameter(chosen, parameter, given.items[i]))
              return std::nullopt;
      } else if (given.is_scalar()) {
        if (!add_parameter(chosen, parameters.front(), given)) return std::nullopt;
      }
    } else if (!parameters.empty() && parameters.front().required) {
      const auto& first = parameters.front();
      loading_.notes.error(name, "fault \"" + chosen.kind->name + "\" needs " + first.about + ": write { " +
                                     chosen.kind->name + ": " + example(first) + " }");
      return std::nullopt;
    }
    return chosen;
  }

  static std::string example(const FaultParameter& parameter) {
    switch (parameter.type) {
      case FaultParameter::Type::duration: return "2s";
      case FaultParameter::Type::signed_duration: return "-5m";
      case FaultParameter::Type::error_name: return "EIO";
      case FaultParameter::Type::count: return std::to_string(std::max<std::uint64_t>(parameter.least, 100));
      case FaultParameter::Type::event: return "\"ready service=shop\"";
      case FaultParameter::Type::word: return parameter.words.front();
      case FaultParameter::Type::decimal: return "0.1";
      case FaultParameter::Type::names: break;
    }
    return "...";
  }

  void read_effect(const Node& item, const std::string& service, const std::vector<const SyscallFamily*>& families,
                   const std::string& paths) {
    const auto chosen = read_kind(item, Mechanism::syscall);
    if (!chosen) return;
    bool strikes_some = false;
    for (const auto* family : families) {
      if (!strikes_operation(chosen->kind->name, family->name)) continue;
      strikes_some = true;
      add(*chosen->at,
          {chosen->kind->name, service, family->name, family->object == "file" ? paths : "", chosen->params});
    }
    if (!strikes_some && !families.empty())
      loading_.notes.error(*chosen->at, "fault \"" + chosen->kind->name + "\" strikes " +
                                            base::join_names(chosen->kind->operations) +
                                            ", none of which is in \"families\"");
  }

  void read_network(const Node& item, const Link& link) {
    auto chosen = read_kind(item, Mechanism::link);
    if (!chosen) return;
    const auto& kind = *chosen->kind;
    if (kind.between)
      return loading_.notes.error(*chosen->at, "fault \"" + kind.name +
                                                   "\" is between sets of services; write on: { between: " + link.from +
                                                   ", and: " + link.to + " }");
    if (link.is_datagrams()) return read_datagrams(*chosen, link);
    if (!kind.connections)
      return loading_.notes.error(*chosen->at, "fault \"" + kind.name + "\" strikes datagrams, but port \"" +
                                                   link.port + "\" of service \"" + link.to + "\" is declared as tcp");
    if (kind.http_only && link.protocol != Protocol::http) {
      loading_.notes.error(*chosen->at, "fault \"" + kind.name + "\" needs to see requests, but port \"" + link.port +
                                            "\" of service \"" + link.to + "\" is declared as tcp; declare { port: " +
                                            std::to_string(link.number) + ", protocol: http } if it speaks HTTP");
      return;
    }
    // A kind that knows both strikes requests where they can be told apart: that is the finer place, and it holds the
    // other.
    const bool requests = link.protocol == Protocol::http && strikes_operation(kind.name, "request") &&
                          !strikes_stream(kind, chosen->params);
    add(*chosen->at, {kind.name, link.id(), requests ? "request" : "connect", "", chosen->params});
  }

  void read_dns(const Node& item, const std::string& service) {
    const auto chosen = read_kind(item, Mechanism::dns);
    if (!chosen) return;
    if (loading_.scenario.service(resolver_name) != nullptr)
      return loading_.notes.error(*chosen->at, "\"" + dns_lane(service) +
                                                   "\" would be two things: the service \"dns\" and the resolver that "
                                                   "\"dns\" faults strike; give the service another name");
    const auto& ports = loading_.scenario.service(service)->ports;
    if (std::any_of(ports.begin(), ports.end(), [](const Port& port) { return port.number == 53; }))
      return loading_.notes.error(*chosen->at, "service \"" + service +
                                                   "\" listens on port 53 itself, where its lookups would be struck; "
                                                   "\"dns\" faults can strike those that ask it");
    add(*chosen->at, {chosen->kind->name, dns_lane(service), query_operation, "", chosen->params});
  }

  void read_datagrams(Chosen& chosen, const Link& link) {
    const auto port = "port \"" + link.port + "\" of service \"" + link.to + "\" is declared as udp";
    if (!chosen.kind->datagrams)
      return loading_.notes.error(*chosen.at, "fault \"" + chosen.kind->name + "\" strikes connections, but " + port);
    if (chosen.params.value("mode", "") == "stall")
      return loading_.notes.error(*chosen.at,
                                  "who sends datagrams feels nothing: \"mode\" cannot be stall, since " + port);
    add(*chosen.at, {chosen.kind->name, link.id(), "session", "", std::move(chosen.params)});
  }

  void read_partition(const Node& item, const Strikes::Sets& sets) {
    auto chosen = read_kind(item, Mechanism::link);
    if (!chosen) return;
    const auto& kind = *chosen->kind;
    if (!kind.between)
      return loading_.notes.error(
          *chosen->at, "fault \"" + kind.name + "\" strikes links, and this is between services; write on: { link: " +
                           sets.across.front().id() + " }");
    auto& params = chosen->params;
    params["between"] = sets.first;
    params["and"] = sets.second;
    for (const auto* event : {"after", "until"})
      if (params.contains(event) && !known_event(*chosen->at, params[event].get<std::string>())) return;
    const bool at_connect = params.value("at", "step") == "connect";
    params.erase("at");
    if (params.contains("after")) {
      if (at_connect)
        return loading_.notes.error(*chosen->at, "\"after\" says when; it does not go together with at: connect");
      Fault rule{kind.name, {workload_lane, "event", ""}, 1, Value::object(), Aim{}};
      rule.aim->after = params["after"].get<std::string>();
      params.erase("after");
      if (const auto right = check_params(kind, params); !right)
        return loading_.notes.error(*chosen->at, right.error().message);
      rule.params = std::move(params);
      explore_.rules.push_back(std::move(rule));
    } else if (at_connect) {
      for (const auto& link : sets.across)
        if (!link.is_datagrams()) add(*chosen->at, {kind.name, link.id(), "connect", "", params});
    } else {
      add(*chosen->at, {kind.name, workload_lane, "step", "", std::move(params)});
    }
  }

  bool known_event(const Node& at, const std::string& text) {
    Mistake mistake;
    if (read_event_pattern(text, event_scope(loading_.scenario), mistake)) return true;
    loading_.notes.error(at, "event \"" + text + "\": " + mistake.message);
    return false;
  }

  void read_process(const Node& item, const std::string& service) {
    const auto chosen = read_kind(item, Mechanism::process);
    if (!chosen) return;
    for (const auto& operation : chosen->kind->operations)
      add(*chosen->at, {chosen->kind->name, service, operation, "", chosen->params});
  }

  Loading& loading_;
  Explore& explore_;
};

/// Events of system calls exist only for what is watched, and a property, or what a rule waits for, may be the only one
/// that asks.
void observe_for_patterns(Scenario& scenario) {
  const auto visit = [&](const Pattern& pattern) {
    if (pattern.event != events::syscall) return;
    std::vector<std::string> services, families;
    for (const auto& matcher : pattern.matchers) {
      if (matcher.test != Matcher::Test::equals || !matcher.value.is_string() || matcher.path.size() != 1) continue;
      if (matcher.path[0] == "service" || matcher.path[0] == "lane") services.push_back(matcher.value);
      if (matcher.path[0] == "family") families.push_back(matcher.value);
      if (matcher.path[0] == "call")
        for (const auto* family : rules::families_named(matcher.value)) families.push_back(family->name);
    }
    if (services.empty()) services = service_names(scenario);
    for (const auto& service : services)
      for (const auto& family : families) {
        auto& known = scenario.explore.observe[service];
        if (syscall_family(family) != nullptr && std::find(known.begin(), known.end(), family) == known.end())
          known.push_back(family);
      }
  };
  for (const auto& property : scenario.properties) {
    if (property.for_each) visit(*property.for_each);
    visit(property.pattern);
  }
  for (const auto& rule : scenario.explore.rules)
    for (const auto& text : event_patterns_of(rule))
      if (const auto pattern = parse_event_pattern(text)) visit(*pattern);
}

}  // namespace

void load_explore(Loading& loading) {
  if (const auto* node = loading.document.find("explore"); node != nullptr && node->is_map())
    ExploreReader(loading).read(*node);
  observe_for_patterns(loading.scenario);
}

}  // namespace leafcutter::scenarios::loading
