// The table of keys as a page for readers.
#include "base/text.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::scenarios {
namespace {

using Kind = Form::Kind;

std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string anchor(const std::string& title) {
  std::string out;
  for (const char c : title) {
    if (c == ' ')
      out += '-';
    else if (c != ',')
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return out;
}

std::string link_to(const Vocabulary& vocabulary, const std::string& name) {
  const auto& title = vocabulary.shape(name).title;
  return "[" + name + "](#" + anchor(title) + ")";
}

std::string form_text(const Vocabulary& vocabulary, const Form& form) {
  switch (form.kind) {
    case Kind::list:
      return form.parts[0].kind == Kind::name ? "list of names" : "list of " + form_text(vocabulary, form.parts[0]);
    case Kind::map: return "mapping of names to " + form_text(vocabulary, form.parts[0]);
    case Kind::shape: return link_to(vocabulary, form.noun);
    case Kind::matchers: return "[matchers](#matchers)";
    case Kind::name: return "name";
    case Kind::text: return "text";
    case Kind::regex: return "regular expression";
    case Kind::lua: return "[Lua](#lua)";
    case Kind::variable: return "variable name";
    case Kind::boolean: return "`true` or `false`";
    case Kind::any: return "any value";
    case Kind::integer:
      return form.least == form.most ? "`" + std::to_string(form.least) + "`"
                                     : "number, " + std::to_string(form.least) + " to " + std::to_string(form.most);
    case Kind::duration:
      return "duration, " + base::format_duration(std::chrono::nanoseconds(form.least)) + " to " +
             base::format_duration(std::chrono::nanoseconds(form.most));
    case Kind::word: {
      if (form.words.size() > 20) return "name of a " + form.noun;
      std::string out;
      for (const auto& word : form.words) out += (out.empty() ? "" : ", ") + ("`" + word + "`");
      return form.words.size() == 1 ? out : "one of " + out;
    }
    case Kind::number:
    case Kind::pattern: return vocabulary.expected(form);
    case Kind::tagged:
    case Kind::either: {
      std::string out;
      for (const auto& part : form.parts) out += (out.empty() ? "" : " or ") + form_text(vocabulary, part);
      return out;
    }
  }
  return "";
}

std::string shape_section(const Vocabulary& vocabulary, const Shape& shape) {
  std::string out = "## " + shape.title + "\n\n";
  if (!shape.about.empty()) out += shape.about + "\n\n";
  out += "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const auto& key : shape.keys) {
    const auto preset = key.required         ? "required"
                        : key.preset.empty() ? ""
                        : key.preset.find(' ') != std::string::npos && key.preset.front() != '{'
                            ? key.preset
                            : "`" + key.preset + "`";
    auto about = key.about;
    if (!key.only_with.empty()) {
      std::vector<std::string> with;
      for (const auto& other : key.only_with) with.push_back("`" + other + "`");
      about += " (with " + base::join_names(with) + ")";
    }
    out += "| `" + key.name + "` | " + escaped(form_text(vocabulary, key.form)) + " | " + escaped(preset) + " | " +
           escaped(about) + " |\n";
  }
  if (!shape.others.empty()) out += "| any other | [matcher](#matchers) | | " + shape.others + " |\n";
  return out + "\n";
}

}  // namespace

std::string shapes_page(const Vocabulary& vocabulary) {
  std::string out;
  for (const auto& one : vocabulary.shapes) out += shape_section(vocabulary, one);
  return out;
}

namespace {

std::string matchers_section() {
  return R"(## Matchers

The key is an attribute; dots lead into it (`json.id`, `json.items.0`). A missing attribute matches nothing but `{ exists: false }`.

| written | matches |
|---|---|
| `201`, `true`, `leaf` | exactly this value |
| `"2xx"` | exactly this text: quotes take away every special meaning |
| `2xx` | a status of this class |
| `201..299`, `{ at-least: 201, at-most: 299 }` | numbers in this range, its ends included; either end may be left out in the long form |
| `/timed out\|refused/`, `{ matches: "time[d]? out" }` | text in which this regular expression (RE2) matches somewhere |
| `[201, 503]` | any one of these values; `2xx` may be among them |
| `{ exists: true }` | anything but nothing |
| `{ equals: ... }` | exactly this value, a list or a mapping too |
| `{ status: 2xx, json.id: 7 }` | a mapping whose attributes match |

)";
}

std::string names_section() {
  return R"(## Names in strings

`${name}` is replaced in arguments, environment values, requests and what is expected of their answers. A literal `${` is written `$${`.

| name | where | value |
|---|---|---|
| `${scenario}` | everywhere | the scenario's folder |
| `${data}` | a service's own commands and environment | its data folder |
| `${port}`, `${port.NAME}` | a service's own commands and environment | its port's number |
| `${SERVICE.host}`, `${SERVICE.port}`, `${SERVICE.port.NAME}`, `${SERVICE.data}` | everywhere | the same of any service |
| `${VARIABLE}` | the workload | a loop's variable (`as`) or a saved one (`save`), after the step that saves it |

)";
}

std::string lua_section() {
  return R"(## Lua

Expressions of Lua 5.4 see the attributes of the event, or of the answer, as globals: `status == 201 and json.id ~= nil`. There are the safe
functions of the base library, `string`, `table` and `math` (without random numbers), and `matches(text, regex)` for RE2. Each evaluation begins afresh and is limited to 1000000
instructions (fewer when it uses much memory) and 8 MiB; patterns that could take too long are refused.

)";
}

std::string events_section() {
  std::string out =
      "## Events\n\nWhat a pattern can speak of. Every event has `lane`; events of a service have `service`, the "
      "same.\n\n| event | of | meaning | attributes |\n|---|---|---|---|\n";
  for (const auto& kind : event_kinds()) {
    if (!kind.selectable) continue;
    std::string attributes;
    for (const auto& attribute : kind.attributes)
      attributes += (attributes.empty() ? "" : "; ") +
                    ("`" + attribute.name + (attribute.open ? "`, `" + attribute.name + ".*`" : "`")) + " " +
                    attribute.about;
    out += "| `" + kind.name + "` | " + kind.lane + " | " + kind.about + " | " + escaped(attributes) + " |\n";
  }
  return out;
}

}  // namespace

std::string reference_page() {
  std::string out = "# Scenario reference\n\nEvery key of a scenario, version " + std::to_string(language_version) +
                    ". Generated from the table in `scenarios/schema.cpp`, which the loader and `scenario.schema.json` "
                    "read, too.\n\n";
  return out + shapes_page(vocabulary()) + matchers_section() + names_section() + lua_section() + events_section();
}

}  // namespace leafcutter::scenarios
