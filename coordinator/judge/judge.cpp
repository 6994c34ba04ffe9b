#include "coordinator/judge/judge.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "coordinator/finding.hpp"
#include "coordinator/judge/attributes.hpp"
#include "coordinator/judge/ending.hpp"
#include "coordinator/judge/monitor.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::coordinator {

using protocols::Event;
using scenarios::Reason;
using scenarios::Verdict;

namespace {

/// A step whose reply broke its own expectation, or that had to be replied to and was not.
std::optional<Violation> broken_expectation(const Event& event) {
  if (event.kind != scenarios::events::step || flag_of(event.attrs, "expected").value_or(true)) return std::nullopt;
  const auto label = text_of(event.attrs, "label");
  std::string message = "step \"" + label + "\" ";
  const auto status = number_of(event.attrs, "status");
  const auto outcome = text_of(event.attrs, "outcome");
  if (status)
    message += "was answered with status " + std::to_string(*status);
  else
    message += outcome.empty() || outcome == "replied" ? "was answered" : "got no reply (" + outcome + ")";
  message += ", which breaks its own expectation";
  if (const auto detail = one_line_text(text_of(event.attrs, "detail"), 300); !detail.empty()) message += ": " + detail;
  return Violation{"expectations", std::move(message), label, {ref(event)}};
}

void see_fired(const Event& event, std::vector<bool>& fired) {
  if (event.kind != scenarios::events::fault_fired) return;
  const auto index = number_of(event.attrs, "fault");
  if (index && *index >= 0 && static_cast<std::size_t>(*index) < fired.size())
    fired[static_cast<std::size_t>(*index)] = true;
}

std::string unfired_text(const scenarios::Plan& plan, const std::vector<bool>& fired) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fired.size(); ++i)
    if (!fired[i]) names.push_back(plan.faults[i].text());
  std::string text = "planned but never fired: ";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i > 0 ? "; " : "") + names[i];
  return text;
}

void settle(Judgement& judgement, Reason reason, std::string detail) {
  judgement.reason = reason;
  judgement.verdict = scenarios::verdict_of(reason);
  judgement.detail = std::move(detail);
}

/// FAIL > INFRA > INCONCLUSIVE > PASS.
void decide(Judgement& judgement, const Ending& ending, const std::vector<PropertyOutcome::Open>& open,
            const scenarios::Plan& plan) {
  if (!judgement.violations.empty()) {
    const auto& first = judgement.violations.front();
    const bool property = first.property != "expectations";
    return settle(judgement, property ? Reason::property_violated : Reason::expectation_broken,
                  (property ? first.property + ": " : std::string()) + first.message);
  }
  if (ending.cause() == Ending::Cause::missing || ending.cause() == Ending::Cause::infra)
    return settle(judgement, ending.infra_reason(), ending.why_unknown());
  if (ending.dropped() > 0) return settle(judgement, Reason::events_dropped, ending.why_unknown());
  if (ending.cause() == Ending::Cause::timeout)
    return settle(judgement, Reason::timed_out, open.empty() ? ending.why_unknown() : open.front().what);
  for (const auto reason : {Reason::not_settled, Reason::check_unavailable})
    for (const auto& obligation : open)
      if (obligation.reason == reason) return settle(judgement, reason, obligation.what);
  if (std::find(judgement.fired.begin(), judgement.fired.end(), false) != judgement.fired.end())
    return settle(judgement, Reason::vacuous, unfired_text(plan, judgement.fired));
  settle(judgement, Reason::held, "");
}

}  // namespace

Judgement judge(const scenarios::Scenario& scenario, const scenarios::Plan& plan, const std::vector<Event>& events) {
  Judgement judgement;
  judgement.fired.assign(plan.faults.size(), false);
  std::vector<std::unique_ptr<Monitor>> monitors;
  for (const auto& property : scenario.properties) monitors.push_back(Monitor::make(property));

  Ending ending;
  std::vector<Violation> expectations;
  for (const auto& event : events) {
    ending.see(event);
    see_fired(event, judgement.fired);
    for (const auto& monitor : monitors) monitor->see(event);
    if (auto broken = broken_expectation(event); broken && expectations.size() < violations_kept)
      expectations.push_back(std::move(*broken));
  }

  std::vector<PropertyOutcome::Open> open;
  for (std::size_t i = 0; i < monitors.size(); ++i) {
    auto outcome = monitors[i]->finish(ending);
    std::move(outcome.violations.begin(), outcome.violations.end(), std::back_inserter(judgement.violations));
    std::move(outcome.open.begin(), outcome.open.end(), std::back_inserter(open));
    if (outcome.vacuous) judgement.vacuous.push_back(scenario.properties[i].name);
  }
  // Properties first: a violated one names the failure even where a step complained earlier.
  std::move(expectations.begin(), expectations.end(), std::back_inserter(judgement.violations));
  for (const auto& obligation : open) judgement.open.push_back(obligation.what);
  decide(judgement, ending, open, plan);
  return judgement;
}

std::vector<scenarios::SiteCount> sites_of(const std::vector<Event>& events) {
  std::vector<scenarios::SiteCount> sites;
  for (const auto& event : events) {
    if (event.kind != scenarios::events::sites) continue;
    const auto* list = attribute(event.attrs, "sites");
    if (!list || !list->is_array()) continue;
    for (const auto& entry : *list) {
      if (!entry.is_array() || entry.size() != 4 || !entry[0].is_string() || !entry[1].is_string() ||
          !entry[2].is_string() || !entry[3].is_number_integer() || entry[3] < 0)
        continue;
      sites.push_back({{entry[0].get<std::string>(), entry[1].get<std::string>(), entry[2].get<std::string>()},
                       entry[3].get<std::uint32_t>()});
    }
  }
  std::sort(sites.begin(), sites.end(), [](const auto& a, const auto& b) { return a.site < b.site; });
  return sites;
}

}  // namespace leafcutter::coordinator
