// The enumeration of ordered pairs: which are run, which are not, and why.
#include <algorithm>
#include <set>

#include "base/random.hpp"
#include "coordinator/search/candidates.hpp"
#include "coordinator/search/epochs.hpp"
#include "coordinator/search/shuffle.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Site;
using scenarios::Verdict;
using Index = std::uint32_t;
using Outcomes = std::vector<std::optional<LeafOutcome>>;

class PairsBuilder {
 public:
  PairsBuilder(const Scenario& scenario, const EpochHeader& singles, const Outcomes& outcomes)
      : scenario_(scenario), header_(singles), first_new_(singles.candidates.size()), outcomes_(outcomes) {
    outcomes_.resize(first_new_);
    header_.number = singles.number + 1;
    header_.kind = EpochKind::pairs;
    header_.leaves = 0;
    header_.skipped.clear();
    for (const auto& [site, count] : singles.ever) ever_[site] = std::max(ever_[site], count);
  }

  EpochHeader build(std::uint64_t budget) {
    number_sites();
    for (Index a = 0; a < first_new_; ++a)
      if (outcomes_[a]) second_order_of(a);
    for (Index a = 0; a < first_new_; ++a)
      for (Index b = a + 1; b < first_new_; ++b) either_order(a, b);
    order_and_cut(budget);
    return std::move(header_);
  }

 private:
  // Sites as dense numbers, and each single leaf's counts as a row: the enumeration is quadratic in the candidates.
  void number_sites() {
    std::map<Site, Index> numbers;
    for (const auto& fault : header_.candidates) {
      const auto next = static_cast<Index>(numbers.size());
      site_.push_back(numbers.try_emplace(fault.site, next).first->second);
    }
    counts_.resize(first_new_);
    for (Index a = 0; a < first_new_; ++a) {
      counts_[a].assign(numbers.size(), 0);
      if (!outcomes_[a]) continue;
      for (const auto& [site, count] : outcomes_[a]->sites)
        if (const auto found = numbers.find(site); found != numbers.end()) counts_[a][found->second] = count;
    }
  }

  // The same fault at another visit of its site fails by itself: with a first fault that only brings further visits
  // about, it would fail the same way.
  bool fails_elsewhere(const Fault& fault) const {
    for (Index i = 0; i < first_new_; ++i) {
      const auto& known = header_.candidates[i];
      if (outcomes_[i] && outcomes_[i]->verdict == Verdict::fail && known.kind == fault.kind &&
          known.site == fault.site && known.params == fault.params)
        return true;
    }
    return false;
  }

  // What rules out every pair that begins with `a`, if anything does.
  std::optional<PairSkip> unfit_first(Index a) const {
    const auto& outcome = outcomes_[a];
    if (!outcome) return PairSkip::budget;
    if (outcome->verdict == Verdict::fail) return PairSkip::fails_alone;
    if (outcome->verdict == Verdict::infra || outcome->sites.empty()) return PairSkip::unresolved_alone;
    if (std::any_of(outcome->fired.begin(), outcome->fired.end(), [](bool fired) { return !fired; }))
      return PairSkip::never_fired;
    return std::nullopt;
  }

  std::optional<PairSkip> unfit(Index a, Index b) const {
    if (const auto skip = unfit_first(a)) return skip;
    if (outcomes_[b] && outcomes_[b]->verdict == Verdict::fail) return PairSkip::fails_alone;
    const auto& first = header_.candidates[a];
    const auto& second = header_.candidates[b];
    if (second.aim) return std::nullopt;  // a rule is not bound to a site: nothing says that it cannot be reached
    // Only one fault can have an occurrence to itself.
    const bool same_place = site_[a] == site_[b] && first.occurrence == second.occurrence;
    if (same_place || counts_[a][site_[b]] < second.occurrence) return PairSkip::unreachable_after;
    return std::nullopt;
  }

  void skip(PairSkip why) { ++header_.skipped[std::string(name(why))]; }

  void either_order(Index a, Index b) {
    const auto forth = unfit(a, b), back = unfit(b, a);
    if (!forth) {
      first_order_.emplace_back(a, b);
      skip(back.value_or(PairSkip::symmetric));
    } else {
      skip(*forth);
      if (back)
        skip(*back);
      else
        first_order_.emplace_back(b, a);
    }
  }

  void second_order_of(Index a) {
    const auto why_not = unfit_first(a);
    std::set<Fault, FaultLess> known;
    for (const auto& [site, count] : outcomes_[a]->sites) {
      const auto found = ever_.find(site);
      const auto before = found == ever_.end() ? 0 : found->second;
      const auto last = std::min<std::uint64_t>(count, std::uint64_t{before} + scenario_.explore.occurrences);
      for (const auto& fault : faults_at(scenario_.explore.faults, site, before + 1, static_cast<Index>(last))) {
        if (!known.insert(fault).second) continue;
        if (why_not)
          skip(*why_not);
        else if (fails_elsewhere(fault))
          skip(PairSkip::fails_alone);
        else
          second_order_.emplace_back(a, appended(fault));
      }
    }
  }

  Index appended(const Fault& fault) {
    const auto [place, fresh] = new_.try_emplace(fault, static_cast<Index>(header_.candidates.size()));
    if (fresh) header_.candidates.push_back(fault);
    return place->second;
  }

  void order_and_cut(std::uint64_t budget) {
    std::vector<std::pair<Index, Index>> two_lanes, one_lane;
    for (const auto& [a, b] : first_order_)
      (header_.candidates[a].site.lane != header_.candidates[b].site.lane ? two_lanes : one_lane).emplace_back(a, b);
    // The key of the header with its candidates and reasons, but with no pair in any order yet.
    base::Stream stream(header_.key(), "pairs", 0);
    for (auto* rank : {&second_order_, &two_lanes, &one_lane}) {
      shuffle(*rank, stream);
      header_.pairs.insert(header_.pairs.end(), rank->begin(), rank->end());
    }
    header_.second_order.assign(header_.pairs.size(), false);
    std::fill_n(header_.second_order.begin(), second_order_.size(), true);
    if (header_.pairs.size() > budget) {
      header_.skipped[std::string(name(PairSkip::budget))] += header_.pairs.size() - budget;
      header_.pairs.resize(budget);
      header_.second_order.resize(budget);
    }
    header_.leaves = header_.pairs.size();
  }

  const Scenario& scenario_;
  EpochHeader header_;
  std::size_t first_new_;  // candidates from here on are second-order
  Outcomes outcomes_;
  std::map<Site, std::uint32_t> ever_;
  std::vector<Index> site_;                         // of each candidate
  std::vector<std::vector<std::uint32_t>> counts_;  // [first][site]: visits in the first fault's own leaf
  std::map<Fault, Index, FaultLess> new_;
  std::vector<std::pair<Index, Index>> second_order_, first_order_;
};

}  // namespace

std::string_view name(PairSkip skip) {
  switch (skip) {
    case PairSkip::unreachable_after: return "unreachable_after";
    case PairSkip::symmetric: return "symmetric";
    case PairSkip::budget: return "budget";
    case PairSkip::fails_alone: return "fails_alone";
    case PairSkip::never_fired: return "never_fired";
    case PairSkip::unresolved_alone: return "unresolved_alone";
  }
  return "?";
}

EpochHeader pairs_epoch(const Scenario& scenario, const EpochHeader& singles,
                        const std::vector<std::optional<LeafOutcome>>& outcomes, std::uint64_t budget) {
  return PairsBuilder(scenario, singles, outcomes).build(budget);
}

}  // namespace leafcutter::coordinator
