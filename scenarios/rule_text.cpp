// Rules once they are read: how they are written, and what they need to be seen.
#include <algorithm>

#include "scenarios/event_kinds.hpp"
#include "scenarios/event_pattern.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/link_rule.hpp"
#include "scenarios/rule.hpp"
#include "scenarios/rule_terms.hpp"

namespace leafcutter::scenarios {
namespace {

std::string as_argument(const Value& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Value::error_handler_t::replace);
}

}  // namespace

std::string rule_text(const Fault& fault) {
  const auto* kind = fault_kind(fault.kind);
  if (kind != nullptr && kind->mechanism == Mechanism::link) return link_rule_text(fault);
  const bool at_calls = kind == nullptr || kind->mechanism != Mechanism::process;
  auto out = at_calls ? fault.site.operation + "=" : "";
  if (fault.kind != "errno") out += fault.kind;
  std::string events, arguments;
  if (kind != nullptr)
    for (const auto& parameter : kind->parameters) {
      const auto given = fault.params.find(parameter.name);
      if (given == fault.params.end()) continue;
      if (parameter.type == FaultParameter::Type::event)
        events += " " + parameter.name + "=" + quoted_word(as_argument(*given));
      else
        arguments += (arguments.empty()                                                   ? ""
                      : arguments.find(':') == std::string::npos && fault.kind == "errno" ? ":"
                                                                                          : ",") +
                     as_argument(*given);
    }
  if (!arguments.empty()) out += (fault.kind == "errno" ? "" : ":") + arguments;
  out += events;
  const auto narrowed = fault.aim ? fault.aim->text() : "";
  return narrowed.empty() ? out : out + " " + narrowed;
}

std::vector<std::string> event_patterns_of(const Fault& fault) {
  std::vector<std::string> patterns;
  if (fault.aim && !fault.aim->after.empty()) patterns.push_back(fault.aim->after);
  if (const auto* kind = fault_kind(fault.kind); kind != nullptr)
    for (const auto& parameter : kind->parameters)
      if (parameter.type == FaultParameter::Type::event && fault.params.contains(parameter.name))
        patterns.push_back(fault.params[parameter.name].get<std::string>());
  return patterns;
}

std::vector<std::string> families_awaited(const Fault& fault) {
  std::vector<std::string> families;
  for (const auto& text : event_patterns_of(fault)) {
    const auto pattern = parse_event_pattern(text);
    if (!pattern || pattern->event != events::syscall) continue;
    for (const auto& matcher : pattern->matchers) {
      if (matcher.test != Matcher::Test::equals || !matcher.value.is_string() || matcher.path.size() != 1) continue;
      if (matcher.path[0] != "family" && matcher.path[0] != "call") continue;
      for (const auto* family : rules::families_named(matcher.value.get<std::string>()))
        families.push_back(family->name);
    }
  }
  return families;
}

std::vector<std::string> families_of(const Fault& fault) {
  std::vector<std::string> families;
  const auto add = [&](const std::string& family) {
    if (syscall_family(family) != nullptr && std::find(families.begin(), families.end(), family) == families.end())
      families.push_back(family);
  };
  add(fault.site.operation);
  if (const auto* kind = fault_kind(fault.kind); kind != nullptr)
    for (const auto& family : kind->watches) add(family);
  return families;
}

}  // namespace leafcutter::scenarios
