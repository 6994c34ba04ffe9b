#include "coordinator/report/html_data.hpp"

#include <algorithm>
#include <set>

#include "coordinator/judge/attributes.hpp"
#include "coordinator/judge/layout.hpp"
#include "coordinator/judge/story.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::coordinator {

using protocols::Event;
using scenarios::Scenario;
namespace events = scenarios::events;

namespace {

constexpr std::size_t detail_bytes = 1200;
constexpr std::size_t text_columns = 260;  // what a fault proves fits, whole

bool noise(const Event& event) { return event.kind == events::log || event.kind == events::syscall; }

/// Which rows are drawn: what tells the story, then the rest from the front, noise last.
std::vector<std::size_t> chosen_rows(const std::vector<Event>& all, const std::vector<std::size_t>& story) {
  std::set<std::size_t> chosen(story.begin(), story.end());
  for (const bool noisy : {false, true})
    for (std::size_t i = 0; i < all.size() && chosen.size() < trace_rows; ++i)
      if (noise(all[i]) == noisy) chosen.insert(i);
  return {chosen.begin(), chosen.end()};
}

/// A link's two ends: its attributes say, or else its name does.
std::pair<std::string, std::string> ends(const Event& event) {
  auto from = text_of(event.attrs, "from"), to = text_of(event.attrs, "to");
  if (from.empty() || to.empty()) {
    const auto arrow = event.lane.find(" -> ");
    if (arrow == std::string::npos) return {};
    from = event.lane.substr(0, arrow);
    to = event.lane.substr(arrow + 4);
    to = to.substr(0, to.find(':'));
  }
  return {from, to};
}

/// The workload asks in several lanes ("workload/2"); it has one column.
std::string column(const std::string& lane) { return lane.substr(0, lane.find('/')); }

Value columns_of(const Scenario& scenario, const std::vector<Event>& all) {
  std::vector<std::string> names = {scenarios::workload_lane};
  for (const auto& service : scenario.services) names.push_back(service.name);
  const auto add = [&](const std::string& name) {
    if (!name.empty() && name != "leaf" && std::find(names.begin(), names.end(), name) == names.end() &&
        names.size() < 16)
      names.push_back(name);
  };
  for (const auto& event : all) {
    const auto [from, to] = ends(event);
    if (to.empty()) add(column(event.lane));
    add(column(from));
    add(column(to));
  }
  return names;
}

Value row_of(const Event& event) {
  const auto line = one_line(event);
  Value row = {
      {"time", moment(event.at)},
      {"kind", event.kind},
      {"lane", event.lane},
      {"text", fit(line.starts_with(event.lane + "  ") ? line.substr(event.lane.size() + 2) : line, text_columns)},
      {"detail", one_line_text(event.attrs.dump(-1, ' ', false, Value::error_handler_t::replace), detail_bytes)},
      {"seq", event.seq}};
  if (const auto [from, to] = ends(event); !to.empty()) {
    row["from"] = column(from);
    row["to"] = column(to);
  } else {
    row["at"] = column(event.lane);
  }
  return row;
}

Value load(const TraceSource& source, const std::string& execution, std::vector<Event>& out) {
  if (execution.empty()) return {{"missing", "there is no such execution"}};
  auto trace = source(execution);
  if (!trace) return {{"missing", "the trace of " + execution + " cannot be shown: " + trace.error().message}};
  if (trace->empty()) return {{"missing", "the trace of " + execution + " is empty"}};
  out = std::move(*trace);
  return nullptr;
}

Violation violation_of(const CampaignReport& report, const Finding& finding, const std::vector<Event>& failing) {
  for (auto& violation : judge(report.scenario, finding.plan, failing).violations)
    if (violation.property == finding.property) return violation;
  return {finding.property, finding.message, "", {}};
}

Value finding_data(const CampaignReport& report, const Finding& finding, const TraceSource& source) {
  std::vector<Event> failing, passing;
  auto failing_missing = load(source, finding.failing_execution, failing);
  auto passing_missing = load(source, finding.passing_execution, passing);
  const auto violation = violation_of(report, finding, failing);
  std::vector<std::size_t> here, there;
  if (!failing.empty() && !passing.empty())
    for (const auto& divergence : divergences(failing, passing, violation.key)) {
      if (divergence.failing) here.push_back(*divergence.failing);
      if (divergence.passing) there.push_back(*divergence.passing);
    }
  const Violation same_key{finding.property, "", violation.key, {}};
  return {{"signature", finding.signature},
          {"failing", failing.empty() ? failing_missing : trace_data(report.scenario, failing, violation, here)},
          {"passing", passing.empty() ? passing_missing : trace_data(report.scenario, passing, same_key, there)}};
}

std::string plan_text(const scenarios::Plan& plan) {
  std::string text;
  for (const auto& fault : plan.faults) text += (text.empty() ? "" : "; ") + fault.text();
  return text.empty() ? "no fault" : one_line_text(text, 300);
}

}  // namespace

Value trace_data(const Scenario& scenario, const std::vector<Event>& all, const Violation& violation,
                 const std::vector<std::size_t>& divergent) {
  auto story = relevant(all, violation, trace_rows / 2);
  const std::set<std::size_t> telling(story.begin(), story.end());
  for (const auto index : divergent)
    if (story.size() < trace_rows) story.push_back(index);
  auto rows = Value::array();
  std::size_t next = 0;
  for (const auto index : chosen_rows(all, story)) {
    auto row = row_of(all[index]);
    if (index > next) row["gap"] = index - next;
    if (telling.contains(index)) row["telling"] = true;
    if (all[index].kind == events::fault_fired) row["fault"] = true;
    const EventRef own{all[index].lane, all[index].seq};
    if (std::find(violation.events.begin(), violation.events.end(), own) != violation.events.end())
      row["evidence"] = true;
    if (std::find(divergent.begin(), divergent.end(), index) != divergent.end()) row["parts"] = true;
    if (!violation.key.empty() && mentions(all[index].attrs, violation.key)) row["key"] = true;
    rows.push_back(std::move(row));
    next = index + 1;
  }
  const auto shown = rows.size();
  return {{"columns", columns_of(scenario, all)},
          {"rows", std::move(rows)},
          {"total", all.size()},
          {"shown", shown},
          {"after", all.size() - next},
          {"key", one_line_text(violation.key, 80)}};
}

Value html_data(const CampaignReport& report, const TraceSource& trace) {
  auto findings = Value::array();
  for (std::size_t i = 0; i < std::min(report.findings.size(), traced_findings); ++i)
    findings.push_back(finding_data(report, report.findings[i], trace));

  std::vector<const Result*> ordered;
  for (const auto& result : report.results) ordered.push_back(&result);
  if (ordered.size() > listed_leaves) {
    // Of very many leaves those that did not simply pass are worth their place first.
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Result* a, const Result* b) { return a->verdict > b->verdict; });
    ordered.resize(listed_leaves);
  }
  auto leaves = Value::array();
  for (const auto* result : ordered)
    leaves.push_back({result->address, scenarios::name(result->verdict), scenarios::name(result->reason),
                      plan_text(result->plan), one_line_text(result->detail, 240), result->node, result->wall_ms});
  return {{"findings", std::move(findings)},
          {"leaves", std::move(leaves)},
          {"leaves_left_out", report.results.size() - ordered.size()}};
}

}  // namespace leafcutter::coordinator
