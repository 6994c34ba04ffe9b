#include "node/runs/vocabulary.hpp"

#include <limits>

#include "node/runs/dns_effect.hpp"
#include "node/runs/effects.hpp"
#include "node/runs/event_gates.hpp"
#include "node/runs/span.hpp"
#include "scenarios/json_schema.hpp"

namespace leafcutter::node::runs {
namespace {

using scenarios::Form;
using scenarios::Key;
using scenarios::Shape;
using Kind = Form::Kind;

constexpr std::uint64_t any_whole = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t most_proxies = 4096, most_phases = 10'000, most_faults = 256;

Form text_of_at_least(std::uint64_t least) { return {.kind = Kind::text, .least = least}; }
Form count_form(std::uint64_t least, std::uint64_t most = any_whole) {
  return {.kind = Kind::integer, .least = least, .most = most};
}
Form one_of_words(std::string noun, std::vector<std::string> words) {
  return {.kind = Kind::word, .noun = std::move(noun), .words = std::move(words)};
}
Form shape_named(std::string name) { return {.kind = Kind::shape, .noun = std::move(name)}; }
Form list_of(Form element, std::uint64_t least, std::uint64_t most) {
  return {.kind = Kind::list, .least = least, .most = most, .parts = {std::move(element)}};
}
Form span_form(bool nullable) {
  return {.kind = Kind::pattern, .noun = span_noun, .words = {span_pattern()}, .nullable = nullable};
}

Form fault_form(int version) {
  Form form{.kind = Kind::tagged, .noun = "type"};
  for (const auto& kind : effect_kinds()) {
    if (kind.since > version) continue;
    form.words.push_back(kind.name);
    form.parts.push_back(shape_named(kind.name + " fault"));
  }
  return form;
}

/// A parameter as that version has it: what came later is not there, nor is what it refers to.
Form form_in(int version, Form form) {
  if (version > 1 || form.kind != Kind::tagged) return form;
  for (std::size_t i = form.words.size(); i-- > 0;)
    if (form.words[i] == "fixed") {
      form.words.erase(form.words.begin() + static_cast<std::ptrdiff_t>(i));
      form.parts.erase(form.parts.begin() + static_cast<std::ptrdiff_t>(i));
    }
  return form;
}

Key flow_key(int version) {
  return {"flow", one_of_words("flow", {"to-upstream", "to-client", "both"}),
          "which way, as the client sees it; `both` has draws and state for each", version == 1,
          version == 1 ? "" : "both"};
}

Shape fault_shape_of(int version, const EffectKind& kind) {
  Shape shape{kind.name + " fault", "The " + kind.name + " fault", kind.about, {}, {}, kind.some_of};
  shape.keys.push_back({"type", one_of_words("fault type", {kind.name}), "which kind of fault", true});
  if (kind.make != nullptr) shape.keys.push_back(flow_key(version));
  for (const auto& parameter : kind.parameters) {
    if (parameter.since > version) continue;
    auto key = parameter.key;
    key.form = form_in(version, std::move(key.form));
    if (kind.make == nullptr && key.name == "case") key.form.words = dns_case_words(version);
    shape.keys.push_back(std::move(key));
  }
  if (version > 1) {
    shape.keys.push_back({"id", text_of_at_least(1),
                          "names the fault in events and its random stream; one of a kind in its list", false,
                          "the kind; the second of a kind is `kind#2`"});
    shape.keys.push_back({"select", shape_named("selector"), "whom and what it strikes", false, "everything"});
    shape.keys.push_back({"after", shape_named("event"), "not in force before that", false, "in force at once"});
  }
  return shape;
}

std::vector<Shape> selector_shapes() {
  return {
      {"selector",
       "A selector",
       "What is given must all be true.",
       {{"connections", shape_named("ordinals"), "in the order of accepting on this proxy; UDP: sessions"},
        {"chunks", shape_named("ordinals"),
         "nth chunk read, or datagram, of the direction while the fault is in force"},
        {"bytes", shape_named("byte range"), "of the direction's stream; TCP"},
        {"peers", list_of(text_of_at_least(1), 1, 1000), "client addresses: `127.0.0.1`, `10.0.0.0/8`", false, "all"},
        {"probability", {.kind = Kind::number, .from = 0, .to = 1}, "of each draw; 0: nothing is touched", false, "1"},
        {"draw", one_of_words("way to draw", {"natural", "connection", "each-chunk"}),
         "once for each connection and direction, or for every chunk or datagram", false,
         "for each chunk with jitter, corrupt, slice, duplicate and reorder, else for each connection"}}},
      {"byte range",
       "A byte range",
       "",
       {{"from", count_form(0), "the first", false, "0"},
        {"until", count_form(1), "the one after the last", false, "no end"}}}};
}

Shape event_shape() {
  return {"event",
          "An event",
          "Something that happens in the phase, as a record of the journal tells of it. From then on the fault is in "
          "force, on open connections too, until the phase ends. What is given must all be true.",
          {{"record", one_of_words("record", awaited_records()), "the record's `type`", true},
           {"proxy", text_of_at_least(1), "on which proxy", false, "the fault's own"},
           {"fault", text_of_at_least(1), "the `id` of the fault that struck, passed over or ended the connection"},
           {"connection", count_form(1), "the connection's number on that proxy"},
           {"cause", one_of_words("cause", awaited_causes()), "of `connect-failed` and `connection-closed`"},
           {"count", count_form(1, 1'000'000'000), "how often, since the phase began", false, "1"}}};
}

Shape limits_shape() {
  return {"limits",
          "Limits",
          "",
          {{"connections", count_form(1, 1'000'000), "TCP, on each thread; more wait in the queue", false, "100000"},
           {"sessions", count_form(1, 1'000'000), "UDP; a new one beyond that replaces the one idle longest", false,
            "4096"},
           {"memory_bytes", count_form(65'536, std::uint64_t{1} << 40), "held by faults and for slow readers", false,
            "67108864"},
           {"direction_bytes", count_form(4096, std::uint64_t{1} << 40), "of that, by one direction of one connection",
            false, "16777216"},
           {"connect_timeout", span_form(false), "how long the upstream may take", false, "10s"},
           {"session_idle", span_form(false), "UDP: after that a session is forgotten", false, "60s"}}};
}

Shape proxy_shape(int version) {
  Shape shape{"proxy",
              "A proxy",
              "",
              {{"name", text_of_at_least(1), "what phases and events call it", true},
               {"protocol", one_of_words("protocol", {"tcp", "udp"}), "what it carries", true},
               {"listen", text_of_at_least(1),
                version == 1 ? "an address and a port, `127.0.0.1:8080`; port 0 takes a free one"
                             : "an address or a name, and a port: `127.0.0.1:8080`, `[::1]:0`, `localhost:0`",
                true},
               {"upstream", text_of_at_least(1),
                "`host:port`; a name is resolved for every new connection, and all its addresses are tried", true}}};
  if (version > 1) shape.keys.push_back({"limits", shape_named("limits"), "what it may take", false, "the defaults"});
  return shape;
}

std::vector<Shape> document_shapes(int version) {
  const auto number = static_cast<std::uint64_t>(version);
  Shape document{"run",
                 "The document, schema_version " + std::to_string(version),
                 "Proxies, and the phases in which faults act on them.",
                 {{"schema_version", count_form(number, number), "the version of this language", true},
                  {"name", text_of_at_least(0), "what the run is called"}}};
  if (version > 1)
    document.keys.push_back({"seed", count_form(0), "of every random choice; --seed wins over it", false, "0"});
  document.keys.push_back(
      {"proxies", list_of(shape_named("proxy"), 1, most_proxies), "the proxies, and where they listen", true});
  document.keys.push_back({"phases", list_of(shape_named("phase"), 1, most_phases),
                           "what happens to them, one phase after the other", true});
  return {std::move(document),
          proxy_shape(version),
          {"phase",
           "A phase",
           "Replaces all faults of all proxies at one instant, on open connections too.",
           {{"name", text_of_at_least(1), "what events call it", true},
            {"duration", span_form(true), "how long; only the last phase may go without, and lasts until stopped"},
            {"proxies", list_of(shape_named("phase proxy"), 0, most_proxies),
             "which faults act; a proxy that is not named has none", false, "[]"}}},
          {"phase proxy",
           "A proxy in a phase",
           "",
           {{"proxy", text_of_at_least(1), "its name", true},
            {"faults", list_of(fault_form(version), 0, most_faults), "in the order in which bytes pass them", true}}}};
}

scenarios::Vocabulary vocabulary_of(int version) {
  scenarios::Vocabulary made;
  made.places = scenarios::Vocabulary::Places::paths;
  made.shapes = document_shapes(version);
  if (version > 1) {
    made.shapes.push_back(limits_shape());
    made.shapes.push_back(event_shape());
    for (auto& shape : selector_shapes()) made.shapes.push_back(std::move(shape));
  }
  for (const auto& kind : effect_kinds())
    if (kind.since <= version) made.shapes.push_back(fault_shape_of(version, kind));
  for (auto& shape : parameter_shapes(version)) made.shapes.push_back(std::move(shape));
  return made;
}

std::string transports_section() {
  std::string out =
      "## Faults and transports\n\n| fault | TCP | UDP | schema_version | what it does |\n|---|---|---|---|---|\n";
  for (const auto& kind : effect_kinds()) {
    const auto cell = [&](proxy::Transport transport) {
      if (!kind_exists_on(transport, kind, 2)) return std::string("");
      return std::string(kind.since == 1 && !kind_exists_on(transport, kind, 1) ? "from 2" : "yes");
    };
    out += "| `" + kind.name + "` | " + cell(proxy::Transport::tcp) + " | " + cell(proxy::Transport::udp) + " | " +
           (kind.since == 1 ? "1, 2" : "2") + " | " + kind.about + " |\n";
  }
  return out + "\n";
}

}  // namespace

const scenarios::Vocabulary& run_vocabulary(int schema_version) {
  static const auto first = vocabulary_of(1), second = vocabulary_of(2);
  return schema_version == 1 ? first : second;
}

protocols::Value run_json_schema() {
  protocols::Value definitions = protocols::Value::object();
  protocols::Value versions = protocols::Value::array();
  for (int version = 1; version <= newest_schema_version; ++version) {
    const auto prefix = "v" + std::to_string(version) + "-";
    definitions.update(scenarios::definitions_schema(run_vocabulary(version), prefix));
    versions.push_back(scenarios::document_schema(run_vocabulary(version), prefix));
  }
  return {{"$schema", scenarios::schema_dialect},
          {"title", "Leafcutter Run document, schema_version 1 and 2"},
          {"oneOf", std::move(versions)},
          {"$defs", std::move(definitions)}};
}

std::string run_reference_page() {
  return "# Run document reference\n\nEvery key of a Run document of schema_version 2, for `leafcutter proxy`. "
         "Generated from the tables in `node/runs/`, which the\nloader and `run.schema.json` read, too. A document of "
         "schema_version 1 has the keys of `fault`'s own, and nothing else.\n\n" +
         transports_section() + scenarios::shapes_page(run_vocabulary(2));
}

}  // namespace leafcutter::node::runs
