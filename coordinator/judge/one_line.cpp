#include <array>

#include "coordinator/finding.hpp"
#include "coordinator/judge/attributes.hpp"
#include "coordinator/judge/layout.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::coordinator {

using protocols::Event;
using protocols::Value;
namespace events = scenarios::events;

namespace {

constexpr std::size_t body_columns = 44, evidence_columns = 200;

std::string body_text(const Value& attrs, const char* json = "json", const char* body = "body") {
  if (const auto* value = attribute(attrs, json); value && !value->is_null())
    return "  " + compact(*value, body_columns);
  const auto text = one_line_text(text_of(attrs, body), body_columns);
  return text.empty() ? std::string() : "  \"" + text + "\"";
}

std::string number_text(const Value& attrs, const char* name) {
  const auto number = number_of(attrs, name);
  return number ? std::to_string(*number) : std::string();
}

std::string target(const Value& attrs) {
  const auto path = text_of(attrs, "path");
  if (path.empty()) return "request";
  auto text = text_of(attrs, "method") + " " + path;
  if (const auto query = text_of(attrs, "query"); !query.empty()) text += "?" + query;
  return one_line_text(text, 100);
}

std::string request(const Value& attrs) {
  auto text = target(attrs) + body_text(attrs);
  const auto outcome = text_of(attrs, "outcome");
  const auto* reply = attribute(attrs, "reply");
  const auto status = reply ? number_text(*reply, "status") : std::string();
  if (!status.empty()) {
    text += "  -> " + status;
    if (flag_of(*reply, "delivered") == false) text += " (reply lost)";
  }
  if (!outcome.empty() && outcome != "replied") text += (status.empty() ? "  -> " : ", ") + outcome;
  return text;
}

std::string exit_text(const Value& attrs) {
  std::string text = "exits";
  if (const auto signal = number_text(attrs, "signal"); !signal.empty())
    text = "killed by signal " + signal;
  else if (const auto named = text_of(attrs, "signal"); !named.empty())
    text = "killed by " + named;
  else if (const auto status = number_text(attrs, "status"); !status.empty())
    text += " with status " + status;
  return flag_of(attrs, "injected").value_or(false) ? text + " (injected)" : text;
}

std::string attempt_text(const Value& attrs) {
  const auto attempt = number_of(attrs, "attempt").value_or(1);
  return attempt > 1 ? " again (start " + std::to_string(attempt) + ")" : "";
}

/// What a fault's evidence tells a reader: the call first, then what became of it, where it struck last. Left out is
/// what only a machine asks for (process ids), what the next events say (the signal that killed) or the kind (that it
/// struck before the call), and what is told better by a name beside it.
std::string evidence_text(const Value& evidence) {
  if (!evidence.is_object()) return compact(evidence, evidence_columns);
  std::string first, middle, last;
  const auto add = [](std::string& to, const std::string& name, const Value& value) {
    const auto said = value.is_object() ? text_of(value, "text") : std::string();
    to += (to.empty() ? "" : ", ") + name + ": " +
          (said.empty() ? compact(value, evidence_columns) : one_line_text(said, evidence_columns));
  };
  for (const auto& [name, value] : evidence.items()) {
    if (name == "pid" || name == "pids" || name == "signal" || name == "before") continue;
    if (name == "errno" && evidence.contains("errno_name")) continue;
    if (name == "path" && evidence.contains("peer")) continue;
    if (name == "call")
      add(first, name, value);
    else if (name == "path" || name == "peer")
      add(last, name, value);
    else
      add(middle, name == "errno_name" ? "errno" : name, value);
  }
  std::string text;
  for (const auto* part : {&first, &middle, &last})
    if (!part->empty()) text += (text.empty() ? "" : ", ") + *part;
  return text.empty() ? text : "{" + fit(text, evidence_columns) + "}";
}

std::string fired(const Value& attrs) {
  auto text = "FAULT " + text_of(attrs, "kind") + " strikes";
  if (const auto* evidence = attribute(attrs, "evidence"); evidence && !evidence->empty())
    if (const auto told = evidence_text(*evidence); !told.empty()) text += "  " + told;
  return text;
}

std::string armed(const Value& attrs) {
  auto text = "fault armed: " + text_of(attrs, "kind");
  if (const auto* site = attribute(attrs, "site")) {
    if (site->is_object())
      text += " at " + text_of(*site, "lane") + " " + text_of(*site, "operation") + " " + text_of(*site, "resource");
    else
      text += " at " + compact(*site, 60);
  }
  const auto occurrence = number_text(attrs, "occurrence");
  return occurrence.empty() ? text : text + " #" + occurrence;
}

std::string syscall(const Value& attrs) {
  auto text = text_of(attrs, "call") + " " + text_of(attrs, "resource");
  if (const auto n = number_text(attrs, "n"); !n.empty()) text += " #" + n;
  if (const auto* injected = attribute(attrs, "injected"); injected && !injected->is_null() && *injected != false)
    text += *injected == true ? "  (injected)" : "  (injected: " + compact(*injected, 40) + ")";
  return text;
}

std::string step(const Value& attrs) {
  auto text = "step " + text_of(attrs, "label");
  if (const auto status = number_text(attrs, "status"); !status.empty())
    text += "  -> " + status;
  else if (const auto outcome = text_of(attrs, "outcome"); !outcome.empty())
    text += "  -> " + outcome;
  if (flag_of(attrs, "expected") == false) text += "  NOT EXPECTED";
  const auto detail = one_line_text(text_of(attrs, "detail"), 60);
  return detail.empty() ? text : text + "  (" + detail + ")";
}

std::string settled(const Value& attrs) {
  if (flag_of(attrs, "ok").value_or(false))
    return "settled: nothing moved for " + number_text(attrs, "quiet_ms") + "ms";
  const auto* busy = attribute(attrs, "busy");
  return "did not settle" + (busy && !busy->empty() ? "; still busy: " + compact(*busy, 60) : std::string());
}

std::string check(const Value& attrs) {
  auto text = "check \"" + text_of(attrs, "property") + "\"";
  text += flag_of(attrs, "ok").value_or(false) ? " holds" : " FAILS";
  if (const auto exit = number_text(attrs, "exit"); !exit.empty()) text += ", exit status " + exit;
  if (const auto status = number_text(attrs, "status"); !status.empty()) text += ", status " + status;
  auto said = one_line_text(text_of(attrs, "stdout"), 60);
  if (said.empty()) said = one_line_text(text_of(attrs, "detail"), 60);
  return said.empty() ? text : text + ": " + said;
}

std::string connection(const Event& event) {
  if (event.kind == events::connect) return flag_of(event.attrs, "accepted") == false ? "connect refused" : "connect";
  std::string text = "connection closed";
  if (const auto cause = text_of(event.attrs, "cause"); !cause.empty()) text += " (" + one_line_text(cause, 40) + ")";
  return text;
}

std::string leaf(const Event& event) {
  if (event.kind == events::leaf_begin) return "leaf " + text_of(event.attrs, "address") + " begins";
  if (event.kind == events::sites) {
    const auto* list = attribute(event.attrs, "sites");
    return std::to_string(list && list->is_array() ? list->size() : 0) + " sites visited";
  }
  auto text = "leaf ends: " + text_of(event.attrs, "cause");
  if (const auto detail = one_line_text(text_of(event.attrs, "detail"), 80); !detail.empty())
    text += " (" + detail + ")";
  return text;
}

std::string what(const Event& event) {
  const auto& attrs = event.attrs;
  const std::string_view kind = event.kind;
  if (kind == events::request) return request(attrs);
  if (kind == events::reply) return target(attrs) + "  <- " + number_text(attrs, "status") + body_text(attrs);
  if (kind == events::connect || kind == events::close) return connection(event);
  if (kind == events::fault_fired) return fired(attrs);
  if (kind == events::fault_armed) return armed(attrs);
  if (kind == events::fault_undone) return "fault undone: " + one_line_text(text_of(attrs, "how"), 80);
  if (kind == events::start) return "starts" + attempt_text(attrs);
  if (kind == events::ready) return "is ready" + attempt_text(attrs);
  if (kind == events::exit) return exit_text(attrs);
  if (kind == events::log) return "writes: " + one_line_text(text_of(attrs, "line"), 100);
  if (kind == events::syscall) return syscall(attrs);
  if (kind == events::step) return step(attrs);
  if (kind == events::settled) return settled(attrs);
  if (kind == events::check) return check(attrs);
  for (const auto* own : {events::leaf_begin, events::leaf_end, events::sites})
    if (kind == own) return leaf(event);
  return event.kind + "  " + compact(attrs, 80);  // of a newer schema
}

}  // namespace

std::string one_line(const Event& event) { return event.lane + "  " + what(event); }

}  // namespace leafcutter::coordinator
