#include "coordinator/campaign/inquiry.hpp"

#include <algorithm>

namespace leafcutter::coordinator {
namespace {

constexpr unsigned at_a_time = 2;
constexpr std::size_t digest_digits = 10;

Plan faultless(const Plan& plan) {
  auto control = plan;
  control.faults.clear();
  return control;
}

std::string hex(const Plan& plan) { return scenarios::digest(plan).substr(0, digest_digits); }

}  // namespace

unsigned reruns_for(unsigned runs, unsigned fails) {
  constexpr unsigned most = 6;
  const std::uint64_t passes = runs - fails;
  std::uint64_t all = runs, absent = passes;
  unsigned n = 1;
  for (; n < most && absent * 20 > all; ++n) {
    absent *= passes;
    all *= runs;
  }
  return n;
}

Inquiry::Inquiry(Failure failure, const Result& leaf, std::vector<Evidence> explored)
    : failure_(std::move(failure)),
      avoid_slot_(leaf.node),
      explored_(std::move(explored)),
      original_{"c", failure_.plan, {}, 0, 0, 0},
      minimizer_(failure_.plan) {
  tried_.push_back({failure_.plan, &leaf});
}

bool Inquiry::step(RunBook& book) {
  while (!conclusion_) {
    const bool goes_on = stage_ == Stage::confirm    ? confirm(book)
                         : stage_ == Stage::minimize ? minimize(book)
                                                     : verify(book);
    if (!goes_on) return false;
  }
  return true;
}

const Result* Inquiry::ask(RunBook& book, const std::string& what, Purpose purpose, const Plan& plan) {
  return book.ask({failure_.address.text() + "#" + what, failure_.address, purpose, plan, avoid_slot_});
}

Trial Inquiry::judged(const Result& result) const {
  const auto properties = violated(result);
  if (std::find(properties.begin(), properties.end(), failure_.property) != properties.end()) return Trial::fails;
  const bool judged_in_full = result.verdict == scenarios::Verdict::pass || result.verdict == scenarios::Verdict::fail;
  return judged_in_full ? Trial::passes : Trial::unresolved;
}

// Runs come in rounds; all of a round count, so that neither arrival nor the number of slots decides how many did.
Inquiry::Progress Inquiry::advance(RunBook& book, Series& series) {
  for (;;) {
    if (series.counted < series.asked) {
      std::vector<const Result*> round;
      for (auto n = series.counted + 1; n <= series.asked; ++n)
        round.push_back(ask(book, series.run_prefix + std::to_string(n), Purpose::confirm, series.plan));
      if (std::find(round.begin(), round.end(), nullptr) != round.end()) return Progress::waits;
      for (const auto* result : round) {
        tried_.push_back({series.plan, result});
        const auto outcome = judged(*result);
        if (outcome == Trial::unresolved)
          ++series.unresolved;
        else
          series.test.add(outcome == Trial::fails);
      }
      series.counted = series.asked;
    }
    const bool enough = series.asked >= most_runs || series.unresolved >= most_unresolved;
    if (series.test.state() != Confirmation::State::undecided || enough) return Progress::decided;
    series.asked += at_a_time;
  }
}

bool Inquiry::confirm(RunBook& book) {
  const auto* control = ask(book, "k1", Purpose::control, faultless(failure_.plan));
  if (advance(book, original_) == Progress::waits || control == nullptr) return false;
  tried_.push_back({faultless(failure_.plan), control});
  control_passed_ = control->verdict == scenarios::Verdict::pass;
  if (original_.test.state() != Confirmation::State::confirmed || !control_passed_) {
    conclude(original_, false);
    return true;
  }
  reruns_ = reruns_for(original_.test.runs(), original_.test.fails());
  inform();
  stage_ = Stage::minimize;
  return true;
}

// What exploring showed already. One pass says little about a failure that comes and goes.
void Inquiry::inform() {
  for (const auto& [plan, result] : explored_) {
    const auto outcome = judged(*result);
    if (outcome == Trial::fails || (outcome == Trial::passes && reruns_ == 1)) minimizer_.know(plan, outcome);
  }
}

std::optional<Trial> Inquiry::trial(RunBook& book, const Plan& plan) {
  std::vector<const Result*> results;
  for (unsigned n = 1; n <= reruns_; ++n)
    results.push_back(ask(book, "m" + hex(plan) + "-" + std::to_string(n), Purpose::minimize, plan));
  if (std::find(results.begin(), results.end(), nullptr) != results.end()) return std::nullopt;
  auto outcome = Trial::passes;
  for (const auto* result : results) {
    const auto one = judged(*result);
    if (one == Trial::fails || (one == Trial::unresolved && outcome == Trial::passes)) outcome = one;
    if (outcome == Trial::fails) break;
  }
  return outcome;
}

bool Inquiry::minimize(RunBook& book) {
  const auto plans = minimizer_.next();
  std::vector<Trial> outcomes;
  bool waits = false;
  for (const auto& plan : plans) {
    if (const auto outcome = trial(book, plan))
      outcomes.push_back(*outcome);
    else
      waits = true;
  }
  if (waits) return false;
  for (const auto& plan : plans)
    for (unsigned n = 1; n <= reruns_; ++n)
      tried_.push_back({plan, ask(book, "m" + hex(plan) + "-" + std::to_string(n), Purpose::minimize, plan)});
  if (!plans.empty()) {
    minimizer_.tell(outcomes);
    return true;
  }
  if (minimizer_.best() == failure_.plan) {
    conclude(original_, true);
    return true;
  }
  minimal_ = {"v" + hex(minimizer_.best()) + "-", minimizer_.best(), {}, 0, 0, 0};
  stage_ = Stage::verify;
  return true;
}

// The smaller plan was seen to fail, but that is how it was chosen: it has to stand on its own.
bool Inquiry::verify(RunBook& book) {
  if (advance(book, minimal_) == Progress::waits) return false;
  conclude(minimal_.test.state() == Confirmation::State::confirmed ? minimal_ : original_, true);
  return true;
}

void Inquiry::conclude(const Series& series, bool confirmed) {
  Conclusion c;
  c.property = failure_.property;
  c.leaf = failure_.address;
  c.plan = series.plan;
  c.one_minimal = confirmed && series.plan == minimizer_.best() && minimizer_.one_minimal();
  c.control_passed = control_passed_;
  c.confirmed = confirmed;
  c.runs = series.test.runs();
  c.fails = series.test.fails();
  auto evidence = tried_;
  evidence.insert(evidence.end(), explored_.begin(), explored_.end());
  const Evidence* failing = nullptr;
  for (const auto& one : evidence)
    if (one.plan == series.plan && judged(*one.result) == Trial::fails)
      if (failing == nullptr || (failing->result->trace.empty() && !one.result->trace.empty())) failing = &one;
  if (failing != nullptr) {
    c.failing_execution = failing->result->execution;
    for (const auto& violation : failing->result->violations)
      if (violation.property == failure_.property && c.message.empty()) c.message = violation.message;
    if (c.message.empty()) c.message = failing->result->detail;
  }
  if (const auto* passing = nearest_passing(series.plan, evidence)) c.passing_execution = passing->result->execution;
  conclusion_ = std::move(c);
}

}  // namespace leafcutter::coordinator
