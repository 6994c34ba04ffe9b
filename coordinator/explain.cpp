#include <algorithm>

#include "coordinator/finding.hpp"
#include "coordinator/judge/attributes.hpp"
#include "coordinator/judge/layout.hpp"
#include "coordinator/judge/story.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::coordinator {

using protocols::Event;
namespace events = scenarios::events;

namespace {

constexpr std::size_t width = 100, most_lines = 40;
constexpr std::size_t most_events = 20, most_faults = 4, most_divergences = 3, most_lane_columns = 24;
constexpr std::size_t most_fault_lines = 3;

/// The violation that the finding speaks of, found again in the trace; without a trace only its name.
Violation violation_in(const scenarios::Scenario& scenario, const Finding& finding, const std::vector<Event>& failing) {
  const auto judgement = judge(scenario, finding.plan, failing);
  for (const auto& violation : judgement.violations)
    if (violation.property == finding.property) return violation;
  return {finding.property, finding.message, "", {}};
}

std::string without_lane(const Event& event) {
  const auto line = one_line(event);
  return line.starts_with(event.lane + "  ") ? line.substr(event.lane.size() + 2) : line;
}

std::vector<std::string> headline(const Finding& finding, const Violation& violation) {
  const auto message = violation.message.empty() ? finding.message : violation.message;
  auto lines = wrap("FAIL  " + one_line_text(finding.property, 200), width, 1);
  for (auto& line : wrap(one_line_text(message, 600), width - 6, 3)) lines.push_back("      " + line);
  return lines;
}

std::vector<std::string> plan_lines(const Finding& finding, const std::vector<Event>& failing) {
  std::string how;
  if (finding.runs > 0)
    how = "failed " + std::to_string(finding.fails) + " of " + std::to_string(finding.runs) + " runs";
  if (!finding.confirmed) how += std::string(how.empty() ? "" : "; ") + "not confirmed";
  if (finding.control_passed) how += std::string(how.empty() ? "" : "; ") + "without faults it holds";
  std::vector<std::string> lines = {std::string(finding.one_minimal ? "Minimal plan" : "Smallest plan so far") +
                                    (how.empty() ? "" : " (" + how + ")")};
  const auto faults = in_order_of_strikes(finding.plan, failing);
  if (faults.empty()) lines.push_back("  no fault at all");
  for (std::size_t i = 0; i < std::min(faults.size(), most_faults); ++i)
    lines.push_back(fit("  " + std::to_string(i + 1) + ". " + one_line_text(faults[i]->text(), 200), width));
  if (faults.size() > most_faults) lines.push_back("  … " + std::to_string(faults.size() - most_faults) + " more");
  if (!finding.plan.variant.empty()) lines.push_back(fit("  variant " + finding.plan.variant, width));
  return lines;
}

/// One line; of a fault as many as its evidence takes, up to three.
std::vector<std::string> event_text(const Event& event, const Violation& violation, std::size_t lane_columns) {
  auto time = moment(event.at);
  time.insert(0, time.size() < 9 ? 9 - time.size() : 0, ' ');
  const EventRef own{event.lane, event.seq};
  const bool evidence = std::find(violation.events.begin(), violation.events.end(), own) != violation.events.end();
  const char* mark = event.kind == events::fault_fired ? "! " : evidence ? "> " : "  ";
  const auto front = mark + time + "  " + pad(event.lane, lane_columns) + "  ";
  if (event.kind != events::fault_fired) return {fit(front + without_lane(event), width)};
  const auto indent = columns(front);
  auto lines = wrap(without_lane(event), width - indent, most_fault_lines);
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].insert(0, i == 0 ? front : std::string(indent, ' '));
  return lines;
}

std::vector<std::string> event_lines(const std::vector<Event>& all, const Violation& violation, std::size_t room) {
  if (all.empty()) return {"What happened: the trace of this execution is no longer kept"};
  // As many events as there is room for; `room` counts a heading and the count of the rest, too.
  for (std::size_t limit = std::min(most_events, room - 2);; --limit) {
    const auto chosen = relevant(all, violation, limit);
    std::size_t lane_columns = 4;
    for (const auto i : chosen)
      lane_columns = std::max(lane_columns, std::min(columns(all[i].lane), most_lane_columns));
    std::vector<std::string> lines = {"What happened (! a fault, > what breaks the property)"};
    for (const auto i : chosen)
      for (auto& line : event_text(all[i], violation, lane_columns)) lines.push_back(std::move(line));
    if (chosen.size() < all.size())
      lines.push_back("             … " + std::to_string(all.size() - chosen.size()) + " more events");
    if (lines.size() <= room || limit == 1) return lines;
  }
}

/// What the neighbour's plan lacks, when its trace says what its plan was.
std::string neighbour_text(const scenarios::Plan& plan, const std::vector<Event>& passing) {
  for (const auto& event : passing) {
    if (event.kind != events::leaf_begin) continue;
    const auto* stored = attribute(event.attrs, "plan");
    if (!stored) return {};
    const auto neighbour = scenarios::plan_from(*stored);
    if (!neighbour) return {};
    std::string text;
    for (const auto& fault : plan.faults)
      if (std::find(neighbour->faults.begin(), neighbour->faults.end(), fault) == neighbour->faults.end())
        text += (text.empty() ? " (without " : "; ") + one_line_text(fault.text(), 120);
    return text.empty() ? text : text + ")";
  }
  return {};
}

std::vector<std::string> difference_lines(const Finding& finding, const Violation& violation,
                                          const std::vector<Event>& failing, const std::vector<Event>& passing) {
  if (passing.empty() || failing.empty()) return {};
  const auto all = divergences(failing, passing, violation.key);
  std::vector<std::string> lines = {
      fit("Where the passing neighbour differs" + neighbour_text(finding.plan, passing), width)};
  if (all.empty()) {
    lines.push_back("  nowhere in what was recorded: the difference lies inside a service");
    return lines;
  }
  const auto side = [](const char* label, const std::vector<Event>& trace, const std::optional<std::size_t>& index) {
    return fit(std::string("    ") + label +
                   (index ? without_lane(trace[*index]) + "  (" + moment(trace[*index].at) + ")" : "nothing more"),
               width);
  };
  for (std::size_t i = 0; i < std::min(all.size(), most_divergences); ++i) {
    lines.push_back(fit("  " + all[i].lane, width));
    lines.push_back(side("fails:  ", failing, all[i].failing));
    lines.push_back(side("passes: ", passing, all[i].passing));
  }
  return lines;
}

}  // namespace

std::vector<std::string> explain(const scenarios::Scenario& scenario, const Finding& finding,
                                 const std::vector<Event>& failing, const std::vector<Event>& passing) {
  const auto violation = violation_in(scenario, finding, failing);
  auto lines = headline(finding, violation);
  const auto append = [&](const std::vector<std::string>& part) {
    if (part.empty()) return;
    lines.emplace_back();
    lines.insert(lines.end(), part.begin(), part.end());
  };
  append(plan_lines(finding, failing));
  const auto difference = difference_lines(finding, violation, failing, passing);
  const std::vector<std::string> replay = {"Replay", fit("  leafcutter replay " + finding.leaf.text(), width)};
  const auto after = 1 + (difference.empty() ? 0 : difference.size() + 1) + replay.size() + 1;
  append(event_lines(failing, violation, most_lines - lines.size() - after));
  append(difference);
  append(replay);
  return lines;
}

}  // namespace leafcutter::coordinator
