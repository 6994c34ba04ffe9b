#include "coordinator/minimize/minimize.hpp"

#include <algorithm>
#include <stdexcept>

#include "coordinator/minimize/simplify.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Plan;

constexpr std::size_t few = 3;         // up to here every proper subset is tried
constexpr unsigned most_halvings = 6;  // a 64th of what was asked for: shorter tells nobody more

Plan with(const Plan& plan, const std::vector<std::size_t>& kept) {
  auto smaller = plan;
  smaller.faults.clear();
  for (const auto index : kept) smaller.faults.push_back(plan.faults[index]);
  return smaller;
}

Plan without(const Plan& plan, std::size_t index) {
  auto smaller = plan;
  smaller.faults.erase(smaller.faults.begin() + static_cast<std::ptrdiff_t>(index));
  return smaller;
}

Plan replaced(const Plan& plan, std::size_t index, const scenarios::Fault& fault) {
  auto other = plan;
  other.faults[index] = fault;
  return other;
}

// Subsets of `size` faults, in lexicographic order of their indexes; at most 3 choose 1 of them.
std::vector<Plan> subsets(const Plan& plan, std::size_t size) {
  std::vector<Plan> all;
  const auto count = plan.faults.size();
  for (std::size_t bits = (std::size_t{1} << count) - 1; bits > 0;
       --bits) {  // high bit = first fault, so the order holds
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < count; ++i)
      if (bits >> (count - 1 - i) & 1) kept.push_back(i);
    if (kept.size() == size) all.push_back(with(plan, kept));
  }
  return all;
}

// One round of ddmin: each of `parts` parts alone, then each left out.
std::vector<Plan> parts_and_complements(const Plan& plan, std::size_t parts) {
  std::vector<Plan> alone, rest;
  const auto count = plan.faults.size();
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<std::size_t> in, out;
    for (std::size_t i = 0; i < count; ++i) (i * parts / count == part ? in : out).push_back(i);
    alone.push_back(with(plan, in));
    rest.push_back(with(plan, out));
  }
  if (parts > 2) alone.insert(alone.end(), rest.begin(), rest.end());  // of two halves, each is the other's complement
  return alone;
}

std::vector<Plan> removals(const Plan& plan) {
  std::vector<Plan> all;
  for (std::size_t i = 0; plan.faults.size() > 1 && i < plan.faults.size(); ++i) all.push_back(without(plan, i));
  return all;
}

}  // namespace

Minimizer::Minimizer(Plan plan, std::size_t attempts)
    : best_(std::move(plan)), attempts_(attempts), halvings_(best_.faults.size(), 0) {
  tried_[scenarios::digest(best_)] = Trial::fails;
}

void Minimizer::know(const Plan& plan, Trial trial) { tried_.emplace(scenarios::digest(plan), trial); }

const Trial* Minimizer::outcome(const Plan& plan) const {
  const auto found = tried_.find(scenarios::digest(plan));
  return found == tried_.end() ? nullptr : &found->second;
}

const std::vector<Plan>& Minimizer::next() {
  settle();
  return round_;
}

bool Minimizer::done() {
  settle();
  return round_.empty();
}

void Minimizer::tell(const std::vector<Trial>& outcomes) {
  if (outcomes.size() != round_.size())
    throw std::invalid_argument("Minimizer::tell: one outcome for each plan of next()");
  for (std::size_t i = 0; i < round_.size(); ++i) tried_[scenarios::digest(round_[i])] = outcomes[i];
  executions_ += round_.size();
  round_.clear();
  settle();
}

// Goes on until an outcome is needed that is not known, or nothing is left to try.
void Minimizer::settle() {
  while (round_.empty() && stage_ != Stage::done) {
    const auto all = candidates();
    std::vector<Plan> needed;
    for (const auto& plan : all)
      if (!outcome(plan) && std::find(needed.begin(), needed.end(), plan) == needed.end()) needed.push_back(plan);
    if (needed.empty()) {
      if (!commit(all)) exhausted();
      continue;
    }
    const auto left = attempts_ - std::min(attempts_, executions_);
    if (needed.size() > left) needed.resize(left);
    if (needed.empty()) {
      if (!commit(all)) stage_ = Stage::done;
      continue;
    }
    round_ = std::move(needed);
  }
}

// What the stage would try now, the most wanted first.
std::vector<Plan> Minimizer::candidates() const {
  std::vector<Plan> all;
  switch (stage_) {
    case Stage::reduce:
      if (best_.faults.size() > few) return parts_and_complements(best_, granularity_);
      return size_ < best_.faults.size() ? subsets(best_, size_) : all;
    case Stage::kinds:
      for (std::size_t i = 0; i < best_.faults.size(); ++i)
        for (const auto& fault : simpler_kinds(best_.faults[i])) all.push_back(replaced(best_, i, fault));
      for (std::size_t i = 0; i < best_.faults.size(); ++i)
        if (const auto fault = narrowed(best_.faults[i])) all.push_back(replaced(best_, i, *fault));
      return all;
    case Stage::durations:
      for (std::size_t i = 0; i < best_.faults.size(); ++i)
        if (halvings_[i] < most_halvings)
          if (const auto fault = half_as_long(best_.faults[i])) all.push_back(replaced(best_, i, *fault));
      return all;
    case Stage::check: return removals(best_);
    case Stage::done: break;
  }
  return all;
}

// Takes the first of `tried` that fails, if one does.
bool Minimizer::commit(const std::vector<Plan>& tried) {
  const auto failing = std::find_if(tried.begin(), tried.end(), [&](const Plan& plan) {
    const auto* known = outcome(plan);
    return known && *known == Trial::fails;
  });
  if (failing == tried.end()) return false;
  const auto before = best_;
  best_ = *failing;
  if (best_.faults.size() == before.faults.size()) {
    for (std::size_t i = 0; i < best_.faults.size(); ++i)
      if (stage_ == Stage::durations && best_.faults[i] != before.faults[i]) ++halvings_[i];
    return true;
  }
  // Fewer faults. A part alone starts over with halves; a complement keeps the size of the parts (ddmin).
  const bool complement = stage_ == Stage::reduce && before.faults.size() > few &&
                          static_cast<std::size_t>(failing - tried.begin()) >= granularity_;
  granularity_ = std::min(complement ? std::max<std::size_t>(granularity_ - 1, 2) : 2, best_.faults.size());
  size_ = 1;
  halvings_.assign(best_.faults.size(), 0);
  stage_ = Stage::reduce;
  return true;
}

// Nothing of this round fails: finer parts, larger subsets, or the next stage.
void Minimizer::exhausted() {
  switch (stage_) {
    case Stage::reduce:
      if (best_.faults.size() > few && granularity_ < best_.faults.size())
        granularity_ = std::min(granularity_ * 2, best_.faults.size());
      else if (best_.faults.size() <= few && size_ + 1 < best_.faults.size())
        ++size_;
      else
        stage_ = Stage::kinds;
      break;
    case Stage::kinds: stage_ = Stage::durations; break;
    case Stage::durations: stage_ = Stage::check; break;
    // Simpler faults may need each other less: if a removal fails now, commit() starts over.
    case Stage::check: stage_ = Stage::done; break;
    case Stage::done: break;
  }
}

bool Minimizer::one_minimal() const {
  const auto all = removals(best_);
  return std::all_of(all.begin(), all.end(), [&](const Plan& plan) {
    const auto* known = outcome(plan);
    return known && *known == Trial::passes;
  });
}

}  // namespace leafcutter::coordinator
