#include "coordinator/campaign/campaign.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "coordinator/campaign/findings.hpp"
#include "coordinator/campaign/grouping.hpp"
#include "coordinator/campaign/run_book.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Address;
using scenarios::Verdict;

/// Members of a group that are tried in turn when the first cannot be confirmed.
constexpr std::size_t most_representatives = 3;

Scenario seeded(Scenario scenario, std::uint64_t seed) {
  scenario.explore.seed = seed;
  return scenario;
}

std::string leaf_run(const Address& address) { return address.text() + "#"; }

LeafOutcome outcome_of(const Result& result) { return {result.verdict, result.reason, result.sites, result.fired}; }

}  // namespace

struct Campaign::State {
  /// A failure group and what was concluded about it.
  struct Case {
    bool handed_out = false;
    std::optional<Conclusion> conclusion;
  };

  State(Scenario s, std::string i, std::uint64_t seed)
      : scenario(seeded(std::move(s), seed)), identity(std::move(i)), name(campaign_name(scenario, identity)) {}

  // --- what was given ---
  const Scenario scenario;
  const std::string identity, name;
  std::map<std::uint32_t, EpochHeader> stored_epochs;

  // --- where it stands ---
  RunBook book;                             ///< of explored leaves
  std::set<std::string> follow_ups;         ///< executions under way for cases
  std::uint64_t followed_up = 0;            ///< results of such
  std::vector<EpochHeader> epochs;          ///< the last one is being explored, unless `explored`
  std::uint64_t unresolved = 0;             ///< leaves of the last epoch
  std::uint64_t resolved = 0, failing = 0;  ///< leaves of all
  bool explored = false;
  std::string end = "complete", detail;
  FailureGroups groups;
  std::map<std::string, Case> cases;        ///< by the group's provisional signature
  bool dirty = false;                       ///< groups or conclusions changed since findings were merged
  std::map<std::string, Finding> findings;  ///< by signature, as handed out

  // --- steps ---
  Actions advance();
  void open_epoch(EpochHeader header, Actions& actions);
  void close_epoch(Actions& actions);
  void close_baseline(Actions& actions);
  void finish_exploring(const std::string& state, const std::string& why);
  void finish_within_budget();
  void cut_short(const std::string& why);
  void conclude_baselines();
  void collect_failures();
  void hand_out_cases(Actions& actions);
  void hand_out_findings(Actions& actions);
  void count(const Result& result);

  // --- readings ---
  std::vector<const Result*> results_of(const EpochHeader& epoch) const;
  void add_evidence(std::vector<CaseFile>& files) const;
  std::uint64_t budget_left() const;
  bool open_cases() const;
};

std::vector<const Result*> Campaign::State::results_of(const EpochHeader& epoch) const {
  std::vector<const Result*> results;
  for (std::uint64_t i = 0; i < epoch.leaves; ++i) results.push_back(book.find(leaf_run({name, epoch.number, i})));
  return results;
}

std::uint64_t Campaign::State::budget_left() const {
  auto left = scenario.explore.max_leaves;
  for (const auto& epoch : epochs) left -= std::min(left, epoch.leaves);
  return left;
}

void Campaign::State::count(const Result& result) {
  ++resolved;
  if (result.verdict == Verdict::fail) ++failing;
}

void Campaign::State::open_epoch(EpochHeader header, Actions& actions) {
  if (const auto stored = stored_epochs.find(header.number); stored != stored_epochs.end())
    header = stored->second;
  else
    actions.new_epochs.push_back(header);
  epochs.push_back(std::move(header));
  const auto& epoch = epochs.back();
  unresolved = 0;
  for (std::uint64_t i = 0; i < epoch.leaves; ++i) {
    const Address address{name, epoch.number, i};
    if (const auto* known = book.ask({leaf_run(address), address, Purpose::explore, plan_of(epoch, i), ""}))
      count(*known);
    else
      ++unresolved;
  }
}

// Failures of the last epoch, whose outcome is settled now.
void Campaign::State::collect_failures() {
  std::vector<Failure> failures;
  const auto results = results_of(epochs.back());
  for (std::uint64_t i = 0; i < results.size(); ++i)
    if (results[i] != nullptr)
      for (const auto& property : violated(*results[i]))
        failures.push_back({{name, epochs.back().number, i}, property, plan_of(epochs.back(), i)});
  if (groups.add(std::move(failures))) dirty = true;
  for (const auto& [provisional, group] : groups.all()) cases.try_emplace(provisional);
}

void Campaign::State::finish_exploring(const std::string& state, const std::string& why) {
  explored = true;
  end = state;
  detail = why;
}

void Campaign::State::finish_within_budget() {
  std::uint64_t cut = 0;
  for (const auto& epoch : epochs)
    if (const auto found = epoch.skipped.find(std::string(coordinator::name(PairSkip::budget)));
        found != epoch.skipped.end())
      cut += found->second;
  if (cut == 0) return finish_exploring("complete", "");
  finish_exploring("cut", "the budget of " + std::to_string(scenario.explore.max_leaves) + " leaves left " +
                              std::to_string(cut) + (cut == 1 ? " plan" : " plans") + " unexplored");
}

// The last epoch ends with what it has.
void Campaign::State::cut_short(const std::string& why) {
  if (!epochs.empty()) {
    collect_failures();
    if (epochs.back().kind == EpochKind::baseline) conclude_baselines();
  }
  finish_exploring("cut", why);
}

void Campaign::State::conclude_baselines() {
  auto results = results_of(epochs.back());
  std::erase(results, nullptr);
  for (const auto& [provisional, group] : groups.all())
    cases[provisional].conclusion = conclude_baseline(group, results);
}

void Campaign::State::close_baseline(Actions& actions) {
  conclude_baselines();
  const auto results = results_of(epochs.back());
  if (!groups.all().empty())
    return finish_exploring("complete", "the services fail without any fault, so that nothing was injected");
  std::vector<LeafOutcome> outcomes;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& result = *results[i];
    if (result.verdict != Verdict::pass)
      return finish_exploring("cut", "the fault-free leaf " + Address{name, 0, i}.text() + " came to " +
                                         std::string(scenarios::name(result.verdict)) + " (" +
                                         std::string(scenarios::name(result.reason)) + ")" +
                                         (result.detail.empty() ? "" : ": " + result.detail));
    outcomes.push_back(outcome_of(result));
  }
  open_epoch(singles_epoch(scenario, epochs.back(), outcomes, budget_left()), actions);
}

void Campaign::State::close_epoch(Actions& actions) {
  collect_failures();
  switch (epochs.back().kind) {
    case EpochKind::baseline: return close_baseline(actions);
    case EpochKind::singles: {
      if (scenario.explore.at_once < 2) return finish_within_budget();
      std::vector<std::optional<LeafOutcome>> outcomes;
      for (const auto* result : results_of(epochs.back())) outcomes.push_back(outcome_of(*result));
      return open_epoch(pairs_epoch(scenario, epochs.back(), outcomes, budget_left()), actions);
    }
    case EpochKind::pairs: return finish_within_budget();
  }
}

// Explored leaves of a failure's epoch and before that strike nowhere but where the failing plan does: its parts, its
// neighbours of another kind, the baseline. Later epochs are left out, so that it does not matter how far they have
// come.
void Campaign::State::add_evidence(std::vector<CaseFile>& files) const {
  const auto strikes_within = [](const Fault& fault, const Plan& plan) {
    return std::any_of(plan.faults.begin(), plan.faults.end(), [&](const Fault& f) {
      return f.site == fault.site && f.occurrence == fault.occurrence && f.aim == fault.aim;
    });
  };
  for (const auto& epoch : epochs)
    for (std::uint64_t i = 0; i < epoch.leaves; ++i) {
      const auto* result = book.find(leaf_run({name, epoch.number, i}));
      if (result == nullptr) continue;
      const auto plan = plan_of(epoch, i);
      for (auto& file : files)
        for (auto& suspect : file.suspects)
          if (epoch.number <= suspect.failure.address.epoch &&
              std::all_of(plan.faults.begin(), plan.faults.end(),
                          [&](const Fault& fault) { return strikes_within(fault, suspect.failure.plan); }))
            suspect.explored.push_back({plan, *result});
    }
}

void Campaign::State::hand_out_cases(Actions& actions) {
  std::vector<CaseFile> files;
  for (auto& [provisional, item] : cases) {
    if (item.conclusion || item.handed_out) continue;
    item.handed_out = true;
    const auto& group = groups.all().at(provisional);
    auto& file = files.emplace_back();
    file.name = provisional;
    for (std::size_t i = 0; i < std::min(group.candidates, most_representatives); ++i)
      file.suspects.push_back({group.members[i], *book.find(leaf_run(group.members[i].address)), {}});
  }
  if (files.empty()) return;
  add_evidence(files);
  for (auto& file : files) actions.cases.push_back(std::make_shared<const CaseFile>(std::move(file)));
}

bool Campaign::State::open_cases() const {
  return std::any_of(cases.begin(), cases.end(), [](const auto& entry) { return !entry.second.conclusion; });
}

void Campaign::State::hand_out_findings(Actions& actions) {
  if (!dirty) return;
  dirty = false;
  std::vector<ConcludedGroup> concluded;
  for (const auto& [provisional, item] : cases)
    if (item.conclusion) concluded.push_back({&groups.all().at(provisional), &*item.conclusion});
  for (auto& [of, finding] : merge(concluded)) {
    const auto [place, fresh] = findings.try_emplace(of, finding);
    if (!fresh && same_finding(place->second, finding)) continue;
    place->second = finding;
    actions.findings.push_back(std::move(finding));
  }
}

Actions Campaign::State::advance() {
  Actions actions;
  while (!explored && unresolved == 0) close_epoch(actions);
  hand_out_cases(actions);
  hand_out_findings(actions);
  actions.orders = book.orders();
  actions.finished = explored && !open_cases();
  if (actions.finished) {
    actions.state = end;
    actions.detail = detail;
  }
  return actions;
}

Campaign::Campaign(Scenario scenario, std::string identity, std::uint64_t seed)
    : state_(std::make_unique<State>(std::move(scenario), std::move(identity), seed)) {}
Campaign::~Campaign() = default;
Campaign::Campaign(Campaign&&) noexcept = default;
Campaign& Campaign::operator=(Campaign&&) noexcept = default;

const std::string& Campaign::name() const { return state_->name; }
const Scenario& Campaign::scenario() const { return state_->scenario; }
const std::vector<EpochHeader>& Campaign::epochs() const { return state_->epochs; }

void Campaign::restore(std::vector<EpochHeader> epochs, const std::vector<Result>& results,
                       const std::vector<Finding>& findings) {
  for (auto& epoch : epochs) state_->stored_epochs.insert_or_assign(epoch.number, std::move(epoch));
  for (const auto& result : results) {
    if (result.purpose == Purpose::explore)
      state_->book.remember(result);
    else
      ++state_->followed_up;
  }
  for (const auto& finding : findings) state_->findings.insert_or_assign(finding.signature, finding);
}

Actions Campaign::start() {
  Actions opening;
  state_->open_epoch(baseline_epoch(state_->scenario, state_->identity), opening);
  auto actions = state_->advance();
  actions.new_epochs.insert(actions.new_epochs.begin(), opening.new_epochs.begin(), opening.new_epochs.end());
  return actions;
}

bool Campaign::wants(const std::string& execution) const {
  return state_->book.wants(execution) || state_->follow_ups.contains(execution);
}

Actions Campaign::accepted(const Result& result) {
  auto& state = *state_;
  if (state.follow_ups.erase(result.execution) > 0) {
    ++state.followed_up;
    Actions actions;
    actions.follow_ups.push_back(result);
    return actions;
  }
  if (state.book.take(result)) {
    const auto run = parse_execution(result.execution)->run;
    const auto* standing = state.book.find(run);
    if (standing != nullptr && run.ends_with('#')) {
      state.count(*standing);
      --state.unresolved;
    }
  }
  return state.advance();
}

Actions Campaign::inquired(const Inquired& answer) {
  auto& state = *state_;
  for (const auto& order : answer.orders) state.follow_ups.insert(order.execution);
  for (const auto& [provisional, conclusion] : answer.concluded) {
    const auto item = state.cases.find(provisional);
    if (item == state.cases.end() || item->second.conclusion) continue;
    item->second.conclusion = conclusion;
    state.dirty = true;
  }
  auto actions = state.advance();
  actions.orders.insert(actions.orders.begin(), answer.orders.begin(), answer.orders.end());
  return actions;
}

Actions Campaign::stop_exploring(const std::string& reason) {
  auto& state = *state_;
  std::vector<std::string> dropped;
  if (!state.explored) {
    dropped = state.book.drop(Purpose::explore);
    state.cut_short(reason);
  }
  auto actions = state.advance();
  actions.dropped = std::move(dropped);
  return actions;
}

CampaignProgress Campaign::progress() const {
  const auto& state = *state_;
  CampaignProgress progress;
  for (const auto& epoch : state.epochs) progress.known += epoch.leaves;
  progress.done = state.resolved;
  progress.executions = state.book.taken() + state.followed_up;
  progress.failing = state.failing;
  progress.findings = state.findings.size();
  if (state.explored)
    progress.phase = state.open_cases() ? "confirm" : "done";
  else if (state.epochs.empty())
    progress.phase = "baseline";
  else
    switch (state.epochs.back().kind) {
      case EpochKind::baseline: progress.phase = "baseline"; break;
      case EpochKind::singles: progress.phase = "singles"; break;
      case EpochKind::pairs: progress.phase = "pairs"; break;
    }
  return progress;
}

std::map<Address, LeafOutcome> Campaign::outcomes() const {
  std::map<Address, LeafOutcome> outcomes;
  for (const auto& epoch : state_->epochs) {
    const auto results = state_->results_of(epoch);
    for (std::uint64_t i = 0; i < results.size(); ++i)
      if (results[i] != nullptr) outcomes.emplace(Address{state_->name, epoch.number, i}, outcome_of(*results[i]));
  }
  return outcomes;
}

std::vector<Result> Campaign::resolved() const {
  std::vector<Result> standing;
  for (const auto& epoch : state_->epochs)
    for (const auto* result : state_->results_of(epoch))
      if (result != nullptr) standing.push_back(*result);
  return standing;
}

std::vector<Finding> Campaign::findings() const {
  std::vector<Finding> list;
  for (const auto& [of, finding] : state_->findings) list.push_back(finding);
  return list;
}

}  // namespace leafcutter::coordinator
