#include "scenarios/schema.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/text.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::scenarios {
namespace {

using Kind = Form::Kind;

Form text(std::uint64_t least = 1) { return {.kind = Kind::text, .least = least}; }
Form name() { return {.kind = Kind::name}; }
Form variable() { return {.kind = Kind::variable}; }
Form regex() { return {.kind = Kind::regex}; }
Form lua() { return {.kind = Kind::lua}; }
Form boolean() { return {.kind = Kind::boolean}; }
Form anything() { return {.kind = Kind::any}; }
Form matchers() { return {.kind = Kind::matchers}; }
Form integer(std::uint64_t least, std::uint64_t most) { return {.kind = Kind::integer, .least = least, .most = most}; }
Form of_shape(const std::string& shape_name) { return {.kind = Kind::shape, .noun = shape_name}; }
Form word(const std::string& noun, std::vector<std::string> words) {
  return {.kind = Kind::word, .noun = noun, .words = std::move(words)};
}
Form list(Form element, std::uint64_t least, std::uint64_t most = 10'000) {
  return {.kind = Kind::list, .least = least, .most = most, .parts = {std::move(element)}};
}
Form map(Form element, Kind keys = Kind::name, std::uint64_t least = 0) {
  return {.kind = Kind::map, .least = least, .parts = {std::move(element)}, .keys = keys};
}
Form either(std::vector<Form> parts) { return {.kind = Kind::either, .parts = std::move(parts)}; }
Form duration(std::chrono::nanoseconds least = std::chrono::milliseconds(1),
              std::chrono::nanoseconds most = std::chrono::hours(1)) {
  return {.kind = Kind::duration,
          .least = static_cast<std::uint64_t>(least.count()),
          .most = static_cast<std::uint64_t>(most.count())};
}
Form command() { return list(text(0), 1, 1'000); }

std::vector<std::string> selectable_events() {
  std::vector<std::string> names;
  for (const auto& kind : event_kinds())
    if (kind.selectable) names.push_back(kind.name);
  return names;
}

std::vector<std::string> kinds_of(Mechanism mechanism) {
  std::vector<std::string> names;
  for (const auto& kind : fault_kinds())
    if (kind.mechanism == mechanism) names.push_back(kind.name);
  return names;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& family : syscall_families()) names.push_back(family.name);
  return names;
}

Shape document_shape() {
  return {"document",
          "The document",
          "One scenario, one file. Every key is checked: what is not listed here is a mistake.",
          {{"leafcutter", integer(language_version, language_version), "the version of this language", true},
           {"name", name(), "what the scenario is called in reports", true},
           {"about", text(), "a sentence for the reader"},
           {"services", map(of_shape("service"), Kind::name, 1),
            "the programs under test, by name; a name is also the host that others dial", true},
           {"links", list(text(), 0),
            "`caller -> service` or `caller -> service:port`; a caller is a service or `workload`", false,
            "every service and the workload to every port of every other service"},
           {"egress", list(of_shape("egress"), 0),
            "connections that may leave the leaf; results then depend on what is outside. See [Egress](egress.md)",
            false, "nothing leaves it"},
           {"workload", list(of_shape("step"), 1), "what is done to the services, in order", true},
           {"properties", list(of_shape("property"), 0), "what must hold", false, "[]"},
           {"explore", of_shape("explore"), "which faults to try, and how far to go", false,
            "no faults: the baseline only"}}};
}

std::vector<Shape> service_shapes() {
  return {
      {"service",
       "A service",
       "An unmodified program. Each run gives it an empty data folder and a network of its own.",
       {{"run", command(),
         "argument vector, no shell; a program with a slash is looked for in the scenario's folder, others on the PATH",
         true},
        {"ports", map(either({integer(1, 65535), of_shape("port")})),
         "the ports it listens on, by name: a number (TCP), or a mapping", false, "{}"},
        {"environment", map(text(0), Kind::text), "environment variables", false, "{}"},
        {"data", of_shape("data"), "what is in its data folder at first", false, "an empty folder"},
        {"prepare", list(command(), 0, 100), "commands run once before the first start", false, "[]"},
        {"ready", of_shape("ready"), "how it shows that it is ready", false, "as soon as it runs"},
        {"needs", list(name(), 0), "services that must be ready before it is started", false, "[]"},
        {"restart", of_shape("restart"), "what happens when it ends", false, "{ on: never }"},
        {"variants", map(of_shape("variant")), "named changes to it: `--variant NAME` applies them", false, "{}"}}},
      {"port",
       "A port",
       "",
       {{"port", integer(1, 65535), "its number", true},
        {"protocol", word("protocol", {"tcp", "http", "udp"}),
         "`http`: requests and replies are events and can be struck; `udp`: datagrams, in sessions, one a client "
         "socket",
         false, "tcp"}}},
      {"egress",
       "A way out",
       "TCP connections of some services to one port of one host outside of the leaf. All others are refused.",
       {{"from", either({name(), list(name(), 1)}), "a service or `workload`, or a list of them", true},
        {"to", text(),
         "the name or the address of a host, as the services dial it; `localhost` is the host that leaves run on",
         true},
        {"port", integer(1, 65535), "its number", true},
        {"at", text(),
         "where it really is, such as `127.0.0.1:8443`; names are looked up by the host when a leaf begins", false,
         "`to` and `port`"}}},
      {"data",
       "Data",
       "",
       {{"copy", text(), "a folder beside the scenario; its content is copied into the data folder", true}}},
      {"ready",
       "Readiness",
       "Exactly one of `http`, `tcp`, `log` and `run`.",
       {{"http", text(), "a path; any 2xx answer to GET is ready"},
        {"port", name(), "which port", false, "the only one", {"http"}},
        {"tcp", name(), "a port that accepts connections"},
        {"log", regex(), "a line of its output that matches"},
        {"run", command(), "a command that exits 0"},
        {"within", duration(), "how long it may take", false, "10s"}},
       {"http", "tcp", "log", "run"}},
      {"restart",
       "Restart",
       "",
       {{"on", word("restart policy", {"never", "crash", "any-exit"}),
         "`crash`: a signal or an exit status other than 0", true},
        {"at-most", integer(0, 1'000), "how often", false, "3"}}},
      {"variant",
       "A variant",
       "",
       {{"add-arguments", list(text(0), 1, 1'000), "appended to `run`"},
        {"run", command(), "instead of `run`"},
        {"environment", map(text(0), Kind::text), "added to `environment`, or replacing what is there"}},
       {},
       {"add-arguments", "run", "environment"}},
  };
}

std::vector<Shape> workload_shapes() {
  const std::vector<std::string> requests = {"get", "post", "put", "delete", "patch"};
  auto answered = requests;
  answered.insert(answered.end(), {"tcp", "run"});
  std::vector<Key> keys;
  for (const auto& method : requests)
    keys.push_back({method, text(), "an HTTP request: `service/path` or `service:port/path`"});
  const std::vector<Key> rest = {
      {"headers", map(text(0), Kind::text), "request headers", false, "{}", requests},
      {"json", anything(), "the body, as JSON; an unquoted `${name}` is put in as it is", false, "", requests},
      {"body", text(0), "the body, as text", false, "", requests},
      {"retries", integer(0, 100), "how often to try again after no reply at all", false, "0", requests},
      {"tcp", text(), "raw bytes to `service` or `service:port`"},
      {"send", text(0), "what to send, with C escapes", false, "", {"tcp"}},
      {"until", regex(), "read until this matches", false, "until the peer closes", {"tcp"}},
      {"run", command(), "a command"},
      {"expect", matchers(),
       "what must be true of an answer: over `status`, `json`, `body` (requests), `reply` (tcp), `exit`, `stdout`, "
       "`json` (run). `reply: required`: no "
       "answer at all is a violation, too",
       false, "{}", answered},
      {"save", map(lua(), Kind::variable), "variables for later steps, each a Lua expression over the answer", false,
       "{}", answered},
      {"within", duration(), "how long to wait for the answer", false, "5s", answered},
      {"repeat", integer(1, 10'000), "do the steps of `do` so many times"},
      {"as", variable(), "the loop's variable, which counts from 1", false, "", {"repeat"}},
      {"do", list(of_shape("step"), 1, 1'000), "the steps", false, "", {"repeat"}},
      {"parallel", list(list(of_shape("step"), 1, 1'000), 1, 16), "branches of steps, at the same time"},
      {"settle", of_shape("settle"), "wait until nothing moves on any link or watched file"},
      {"name", text(), "the step's name in reports; a fault can strike at it", false, "what the step does"},
      {"when", lua(), "skip the step unless this Lua expression is true"},
  };
  keys.insert(keys.end(), rest.begin(), rest.end());
  auto kinds = requests;
  kinds.insert(kinds.end(), {"tcp", "run", "repeat", "parallel", "settle"});
  return {{"step", "A step of the workload", "Exactly one key says what it does.", keys, kinds},
          {"settle",
           "Settle",
           "",
           {{"quiet", duration(), "for how long nothing must move", false, "200ms"},
            {"within", duration(), "how long to wait for that", false, "5s"}}}};
}

std::vector<Shape> property_shapes() {
  return {
      {"property",
       "A property",
       "Exactly one of `always`, `never`, `eventually`, `count` and `check`. `for-each` makes it an obligation for "
       "every event that matches, "
       "linked by the values of `key`.",
       {{"name", text(), "what must hold, in words", true},
        {"for-each",
         of_shape("pattern"),
         "the events that oblige",
         false,
         "",
         {"always", "never", "eventually", "count"}},
        {"always", of_shape("pattern"), "every such event satisfies `holds` and `holds-lua`"},
        {"holds", matchers(), "matchers over the event", false, "", {"always"}},
        {"holds-lua", lua(), "a Lua expression over the event", false, "", {"always"}},
        {"never", of_shape("pattern"), "no such event"},
        {"eventually", of_shape("pattern"), "at least one such event"},
        {"within",
         duration(),
         "how soon, from the obliging event or the last start of a service, whichever is later",
         false,
         "10s",
         {"eventually"}},
        {"count", of_shape("pattern"), "so many such events, for each value of `key`"},
        {"at-least", integer(0, 1'000'000'000), "the fewest", false, "", {"count"}},
        {"at-most", integer(0, 1'000'000'000), "the most", false, "", {"count"}},
        {"check", of_shape("check"), "state read back after the workload, when every service is up again"}},
       {"always", "never", "eventually", "count", "check"}},
      {"pattern",
       "A pattern",
       "Events of one kind. Every further key is an attribute of the event (`status`, `json.id`) with a matcher.",
       {{"event", word("event kind", selectable_events()), "the kind of event", true},
        {"key", text(), "the attribute that links events of one obligation"},
        {"where", lua(), "a Lua expression over the event's attributes"}},
       {},
       {},
       "attributes of the event"},
      {"check",
       "A check",
       "A command or a request, straight to the service. Every further key is a matcher over `stdout`, `json` "
       "(command) or `status`, `json`, `body` "
       "(request; without `status`, any 2xx will do).",
       {{"run", command(), "a command, in the scenario's folder"},
        {"exit", integer(0, 255), "the exit status that is right", false, "0", {"run"}},
        {"get", text(), "`service/path` or `service:port/path`"},
        {"within", duration(), "how long it may take", false, "10s"}},
       {"run", "get"},
       {},
       "the answer"},
  };
}

Form parameter_form(const FaultParameter& parameter) {
  switch (parameter.type) {
    case FaultParameter::Type::duration: return duration();
    case FaultParameter::Type::error_name: return word("error", error_names());
    case FaultParameter::Type::count: return integer(parameter.least, parameter.most);
    case FaultParameter::Type::word: return word(parameter.name, parameter.words);
    case FaultParameter::Type::decimal:
    case FaultParameter::Type::names:
    case FaultParameter::Type::signed_duration:
    case FaultParameter::Type::event: return text();
  }
  return text();
}

std::string parameters_shape(const FaultKind& kind) { return kind.name + " parameters"; }

/// The mapping form of a fault, `{ latency: 2s }`: a key for each kind of the mechanism that takes parameters. The
/// value is the first parameter, or a mapping of all.
Shape fault_shape(Mechanism mechanism, const std::string& shape_name, const std::string& title) {
  Shape shape{shape_name, title, "One key, the kind of fault; its value is the parameter.", {}};
  for (const auto& kind : fault_kinds()) {
    if (kind.mechanism != mechanism || kind.parameters.empty()) continue;
    const auto& first = kind.parameters.front();
    auto form = parameter_form(first);
    if (kind.parameters.size() > 1) form = either({std::move(form), of_shape(parameters_shape(kind))});
    shape.keys.push_back({kind.name, std::move(form), kind.about + " The value: " + first.about + "."});
    shape.one_of.push_back(kind.name);
  }
  return shape;
}

/// Of kinds with more than one parameter.
std::vector<Shape> fault_parameter_shapes() {
  std::vector<Shape> shapes;
  for (const auto& kind : fault_kinds()) {
    if (kind.parameters.size() < 2) continue;
    Shape shape{parameters_shape(kind), "Parameters of " + kind.name, "", {}};
    for (const auto& parameter : kind.parameters)
      if (parameter.type != FaultParameter::Type::names)
        shape.keys.push_back({parameter.name, parameter_form(parameter), parameter.about, parameter.required});
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

Form fault_list(Mechanism mechanism, const std::string& noun) {
  return list(either({word(noun, kinds_of(mechanism)), of_shape(noun)}), 1);
}

std::vector<Shape> explore_shapes() {
  std::vector<Shape> shapes = {
      {"explore",
       "Exploration",
       "The space of faults, and the budget.",
       {{"faults", list(of_shape("fault"), 0), "what may be struck, and how", false, "[]"},
        {"observe", map(list(word("syscall family", family_names()), 1)),
         "service -> syscall families that become events although no fault needs them", false, "{}"},
        {"at-once", integer(1, 2), "1: every single fault; 2: ordered pairs of faults as well", false, "1"},
        {"occurrences", integer(1, 100), "up to which visit of a site it is struck", false, "1"},
        {"seed", integer(0, 9'223'372'036'854'775'807), "of every random choice", false, "1"},
        {"budget", of_shape("budget"), "when to stop", false, "{ leaves: 1000, time: 10m }"},
        {"leaf-timeout", duration(std::chrono::milliseconds(100)), "how long one run may take", false, "30s"}}},
      {"fault",
       "Faults of a service or a link",
       "`syscalls`, `process` and `dns` strike services, `network` strikes links, `rules` either. `leafcutter faults` "
       "lists every kind.",
       {{"on", either({name(), list(either({name(), of_shape("target")}), 1), of_shape("target")}),
         "a service, a link, what is between sets of services, or a list of them", true},
        {"syscalls", of_shape("syscall faults"), "at the system calls of a service"},
        {"network", fault_list(Mechanism::link, "network fault"),
         "kinds of link fault: a name, or `{ name: parameter }`"},
        {"process", fault_list(Mechanism::process, "process fault"),
         "kinds of process fault: a name, or `{ name: parameter }`"},
        {"dns", fault_list(Mechanism::dns, "dns fault"),
         "kinds of fault of the service's lookups of names: a name, or `{ name: parameter }`; see [DNS](dns.md)"},
        {"rules", list(text(), 1),
         "faults at the system calls that a line of text selects, such as `\"fsync=EIO path=*.wal #2\"`, or on the "
         "connections of a link, such as `\"reset caller=shop #2\"`; see [Faults](faults.md). Write them in quotes"}},
       {},
       {"syscalls", "network", "process", "dns", "rules"}},
      {"target",
       "A link as target",
       "`link`, or `between` with `and`.",
       {{"link", text(), "`caller -> service` or `caller -> service:port`"},
        {"between", either({name(), list(name(), 1)}), "services (or `workload`) on one side of a partition"},
        {"and", either({name(), list(name(), 1)}), "those on the other side", false, "", {"between"}}},
       {"link", "between"}},
      {"syscall faults",
       "Syscall faults",
       "",
       {{"families", list(word("syscall family", family_names()), 1), "which calls", true},
        {"errors", list(word("error", error_names()), 1), "they fail with each of these"},
        {"delay", duration(), "they take so much longer"},
        {"crash", boolean(), "the service is killed before the call and, where that makes a difference, after it",
         false, "false"},
        {"power-loss", boolean(), "as `crash`, and what the service had not durably synced is gone", false, "false"},
        {"effects", fault_list(Mechanism::syscall, "syscall effect"),
         "kinds of syscall fault: a name, or `{ name: parameter }`; each strikes those of the families that it can"},
        {"paths", text(), "only files whose path in the data folder matches this glob", false,
         "all of the data folder"}},
       {},
       {"errors", "delay", "crash", "power-loss", "effects"}},
      fault_shape(Mechanism::link, "network fault", "A network fault with a parameter"),
      fault_shape(Mechanism::syscall, "syscall effect", "A syscall effect with a parameter"),
      fault_shape(Mechanism::process, "process fault", "A process fault with a parameter"),
      fault_shape(Mechanism::dns, "dns fault", "A DNS fault with a parameter"),
      {"budget",
       "Budget",
       "",
       {{"leaves", integer(1, 10'000'000), "runs", false, "1000"},
        {"time", duration(std::chrono::seconds(1), std::chrono::hours(24 * 30)), "wall time", false, "10m"}}},
  };
  for (auto& shape : fault_parameter_shapes()) shapes.push_back(std::move(shape));
  return shapes;
}

std::string numbers(const Form& form) {
  if (form.least == form.most) return std::to_string(form.least);
  return "a whole number from " + std::to_string(form.least) + " to " + std::to_string(form.most);
}

/// 1, not 1.0.
std::string shortest(double value) {
  auto text = Value(value).dump();
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string real_numbers(const Form& form) {
  const bool open = form.to == std::numeric_limits<double>::max();
  if (form.above) return "a number above " + shortest(form.from) + (open ? "" : " and up to " + shortest(form.to));
  return "a number from " + shortest(form.from) + (open ? " on" : " to " + shortest(form.to));
}

}  // namespace

const Key* Shape::key(std::string_view key_name) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == key_name; });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string> Shape::key_names() const {
  std::vector<std::string> names;
  for (const auto& key : keys) names.push_back(key.name);
  return names;
}

const Vocabulary& vocabulary() {
  static const auto all = [] {
    Vocabulary made;
    made.shapes = {document_shape()};
    for (auto&& group : {service_shapes(), workload_shapes(), property_shapes(), explore_shapes()})
      made.shapes.insert(made.shapes.end(), group.begin(), group.end());
    return made;
  }();
  return all;
}

const std::vector<Shape>& shapes() { return vocabulary().shapes; }

const Shape& shape(std::string_view name) { return vocabulary().shape(name); }

const Shape& Vocabulary::shape(std::string_view name) const {
  for (const auto& known : shapes)
    if (known.name == name) return known;
  throw std::logic_error("the table of keys has no shape \"" + std::string(name) + "\"");
}

std::string Vocabulary::expected(const Form& form) const {
  switch (form.kind) {
    case Kind::text: return "text";
    case Kind::name: return "a name (a letter, then letters, digits, - and _)";
    case Kind::variable: return "a variable name (letters, digits and _)";
    case Kind::integer: return numbers(form);
    case Kind::number: return real_numbers(form);
    case Kind::pattern: return form.noun;
    case Kind::boolean: return "true or false";
    case Kind::duration: return "a duration such as 300ms or 5s";
    case Kind::regex: return "a regular expression (RE2)";
    case Kind::lua: return "a Lua expression";
    case Kind::word: return form.words.size() <= 8 ? base::join_names(form.words) : "the name of a " + form.noun;
    case Kind::any: return "any value";
    case Kind::matchers: return "a mapping of matchers";
    case Kind::list: return "a list of " + expected(form.parts[0]);
    case Kind::map: return "a mapping of names to " + expected(form.parts[0]);
    case Kind::shape: {
      const auto keys = shape(form.noun).key_names();
      return keys.size() <= 6 ? "a mapping with " + base::join_names(keys) : "a mapping (" + form.noun + ")";
    }
    case Kind::tagged: return "a mapping with \"" + form.noun + "\", which says what it is";
    case Kind::either: {
      std::string all;
      for (const auto& part : form.parts) all += (all.empty() ? "" : ", or ") + expected(part);
      return all;
    }
  }
  return "?";
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && text.size() <= 63 && letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool is_variable(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && text.size() <= 63 && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace leafcutter::scenarios
