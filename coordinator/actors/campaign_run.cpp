#include "coordinator/actors/campaign_run.hpp"

#include <ctime>

#include "coordinator/actors/resolution.hpp"
#include "coordinator/campaign/disagreement.hpp"

namespace leafcutter::coordinator {

namespace {

using base::Error;
using base::Expected;

/// Up to this many explored leaves every trace is kept; beyond it, passing pairs' are not.
constexpr std::uint64_t keep_all_below = 2000;
/// Second results that disagree are named up to here, and counted beyond.
constexpr unsigned disagreements_named = 5;

std::string outcome(const Result& result) {
  return std::string(scenarios::name(result.verdict)) + "(" + std::string(scenarios::name(result.reason)) + ")";
}

}  // namespace

CampaignRun::CampaignRun(Ledger& ledger, Campaign campaign, std::string identity)
    : ledger_(&ledger),
      campaign_(std::move(campaign)),
      scenario_(std::make_shared<const scenarios::Scenario>(campaign_.scenario())),
      identity_(std::move(identity)) {}

Expected<CampaignRun> CampaignRun::open(Ledger& ledger, const scenarios::Scenario& scenario,
                                        const std::string& identity, std::uint64_t seed) {
  CampaignRun run(ledger, Campaign(scenario, identity, seed), identity);
  auto known = ledger.campaign(run.name());
  if (!known) return known.error();
  if (*known && (*known)->state == "running") {
    auto epochs = ledger.epochs(run.name());
    if (!epochs) return epochs.error();
    auto results = ledger.results(run.name());
    if (!results) return results.error();
    auto findings = ledger.findings(run.name());
    if (!findings) return findings.error();
    run.row_ = std::move(**known);
    run.elapsed_before_ms_ = run.row_.elapsed_ms;
    run.resumed_ = true;
    run.campaign_.restore(std::move(*epochs), *results, *findings);
    std::erase_if(*results, [](const Result& result) { return result.purpose == Purpose::explore; });
    run.followed_up_ = std::make_shared<const std::vector<Result>>(std::move(*results));
    return run;
  }
  if (*known) {
    const auto erased = ledger.erase(run.name());
    if (!erased) return erased.error();
  }
  run.row_.name = run.name();
  run.row_.scenario_file = scenario.file;
  run.row_.scenario_text = scenario.text;
  run.row_.identity = identity;
  run.row_.variant = scenario.variant;
  run.row_.seed = seed;
  run.row_.state = "running";
  run.row_.started_unix = static_cast<std::int64_t>(std::time(nullptr));
  const auto saved = ledger.save_campaign(run.row_);
  if (!saved) return saved.error();
  return run;
}

CampaignRun::Step CampaignRun::start() {
  if (resumed_) note_ = "resumed: " + std::to_string(campaign_.progress().executions) + " executions were done before";
  return apply(campaign_.start());
}

CampaignRun::Step CampaignRun::take(Result result, std::string_view chunks) {
  if (over_ || !campaign_.wants(result.execution)) return {};
  if (!chunks.empty() && keep_trace(result)) {
    auto digest = ledger_->store_blob(chunks);
    if (!digest) return fail(digest.error());
    result.trace = std::move(*digest);
  }
  const auto accepted = ledger_->accept(name(), result);
  if (!accepted) return fail(accepted.error());
  if (!*accepted) return {};
  return apply(campaign_.accepted(result));
}

CampaignRun::Step CampaignRun::inquired(const Inquired& answer) {
  if (over_) return {};
  return apply(campaign_.inquired(answer));
}

void CampaignRun::compare(const Result& second) {
  const auto first = ledger_->result(second.execution);
  if (!first || !*first) return;
  // Infrastructure trouble of one attempt says nothing about the leaf.
  if ((*first)->verdict == scenarios::Verdict::infra || second.verdict == scenarios::Verdict::infra) return;
  if ((*first)->verdict == second.verdict && (*first)->reason == second.reason) return;
  ++disagreements_;
  if (const auto found = disagreement(**first, second)) {
    const auto saved = ledger_->save_finding(name(), *found);
    if (!saved) {
      fail(saved.error());
      return;
    }
  }
  note_ = "nondeterminism: " + second.execution + " gave " + outcome(**first) + " first and " + outcome(second) +
          " when it was run again";
  if (disagreements_ > disagreements_named) return;
  row_.detail += (row_.detail.empty() ? "" : "; ") + note_;
  save_row();
}

CampaignRun::Step CampaignRun::stop_exploring(const std::string& reason) {
  if (over_) return {};
  return apply(campaign_.stop_exploring(reason));
}

void CampaignRun::clock(std::chrono::milliseconds elapsed) {
  if (!over_) row_.elapsed_ms = elapsed_before_ms_ + elapsed.count();
}

void CampaignRun::save_time() {
  if (!over_) save_row();
}

void CampaignRun::interrupt() { over_ = true; }

CampaignRun::Step CampaignRun::apply(Actions actions) {
  for (const auto& epoch : actions.new_epochs) {
    const auto saved = ledger_->save_epoch(epoch);
    if (!saved) return fail(saved.error());
  }
  for (auto& finding : actions.findings) {
    explain_finding(finding);
    const auto saved = ledger_->save_finding(name(), finding);
    if (!saved) return fail(saved.error());
  }
  Step step;
  for (auto& order : actions.orders) {
    auto out = to_leaf_order(std::move(order.execution), order.address, order.purpose, order.plan,
                             std::move(order.avoid_slot));
    out.scenario = identity_;
    out.timeout = scenario_->explore.leaf_timeout;
    step.orders.push_back(std::move(out));
  }
  step.dropped = std::move(actions.dropped);
  step.cases = std::move(actions.cases);
  step.follow_ups = std::move(actions.follow_ups);
  if (!actions.detail.empty()) {
    note_ = actions.detail;
    row_.detail += (row_.detail.empty() ? "" : "; ") + actions.detail;
  }
  if (actions.finished) {
    over_ = true;
    row_.state = actions.state;
    save_row();
  }
  return step;
}

/// A function of the result and of how far the epochs go, never of who came first: explanations are drawn from what is
/// kept.
bool CampaignRun::keep_trace(const Result& result) const {
  if (result.verdict != scenarios::Verdict::pass || result.purpose != Purpose::explore) return true;
  const auto address = scenarios::parse_address(result.address);
  // Baselines and single faults are the neighbours that findings are explained with.
  if (!address || address->epoch <= 1) return true;
  return campaign_.progress().known < keep_all_below;
}

void CampaignRun::explain_finding(Finding& finding) {
  const auto failing = load_trace(finding.failing_execution);
  if (failing.empty()) {
    finding.explanation = {"No trace of the failing execution is at hand; replay " + finding.leaf.text() +
                           " to see it."};
    return;
  }
  try {
    finding.explanation = explain(*scenario_, finding, failing, load_trace(finding.passing_execution));
  } catch (const std::exception& error) {
    finding.explanation = {std::string("The failure could not be explained: ") + error.what()};
  }
}

std::vector<protocols::Event> CampaignRun::load_trace(const std::string& execution) {
  if (execution.empty()) return {};
  const auto result = ledger_->result(execution);
  if (!result || !*result || (*result)->trace.empty()) return {};
  const auto bytes = ledger_->load_blob((*result)->trace);
  if (!bytes) return {};
  auto events = protocols::decode_chunks(*bytes);
  return events ? std::move(*events) : std::vector<protocols::Event>();
}

CampaignRun::Step CampaignRun::fail(const Error& error) {
  over_ = true;
  note_ = "stopped, and can be resumed by the same command: " + error.text();
  return {};
}

void CampaignRun::save_row() {
  const auto saved = ledger_->save_campaign(row_);
  if (!saved) fail(saved.error());
}

actors::Progress CampaignRun::progress() const {
  const auto now = campaign_.progress();
  actors::Progress out;
  out.phase = now.phase;
  out.done = now.done;
  out.known = now.known;
  out.executions = now.executions;
  out.failing = now.failing;
  out.findings = now.findings;
  out.note = note_;
  out.finished = over_;
  return out;
}

}  // namespace leafcutter::coordinator
