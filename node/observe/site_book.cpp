#include "node/observe/site_book.hpp"

#include <algorithm>
#include <utility>

#include "scenarios/event_kinds.hpp"
#include "scenarios/link_aim.hpp"

namespace leafcutter::node {

namespace events = scenarios::events;

SiteBook::SiteBook(scenarios::Plan plan, Recorder& recorder)
    : plan_(std::move(plan)), recorder_(recorder), rules_(plan_.faults.size()) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const auto& fault = plan_.faults[i];
    rules_[i].waits = fault.aim && !fault.aim->after.empty();
    rules_[i].repeats = scenarios::strikes_repeatedly(fault);
  }
}

void SiteBook::arm() {
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const auto& fault = plan_.faults[i];
    recorder_.record(
        "leaf", events::fault_armed,
        {{"fault", i}, {"kind", fault.kind}, {"site", fault.site.text()}, {"occurrence", fault.occurrence}});
  }
}

bool SiteBook::strikes_at(std::size_t index, std::uint32_t occurrence) const {
  const auto& fault = plan_.faults[index];
  return rules_[index].repeats ? occurrence >= fault.occurrence : occurrence == fault.occurrence;
}

bool SiteBook::selects(const Fault& fault, const Site& site, const scenarios::CallFacts& facts,
                       std::string_view data_folder) const {
  if (fault.site.lane != site.lane || fault.site.operation != site.operation) return false;
  // A rule that says neither which objects nor which path is about what a family means by itself: the sites.
  if (site.resource.empty() && fault.aim->object.empty() && fault.aim->path.empty() && fault.aim->peer.empty())
    return false;
  return fault.aim->selects(facts, data_folder);
}

SiteBook::Visit SiteBook::visit(const Site& site) {
  const std::lock_guard lock(mutex_);
  Visit visit;
  visit.occurrence = ++counts_[site];
  for (std::size_t i = 0; i < plan_.faults.size(); ++i)
    if (const auto& fault = plan_.faults[i]; !fault.aim && fault.site == site && strikes_at(i, visit.occurrence))
      visit.strikes.push_back({i, fault});
  return visit;
}

std::uint64_t SiteBook::ordinal_of(Rule& rule, std::uint64_t connection) {
  const auto [found, is_new] = rule.ordinals.try_emplace(connection, 0);
  if (is_new) found->second = ++rule.selected;
  return found->second;
}

SiteBook::Visit SiteBook::visit(const Site& site, const LinkFacts& facts) {
  const std::lock_guard lock(mutex_);
  Visit visit;
  visit.occurrence = ++counts_[site];
  const auto connection = facts.message == 0 ? visit.occurrence : facts.connection;
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const auto& fault = plan_.faults[i];
    if (!fault.aim) {
      if (fault.site == site && strikes_at(i, visit.occurrence)) visit.strikes.push_back({i, fault});
      continue;
    }
    if (fault.site.lane != site.lane || rules_[i].waits) continue;
    const auto& aim = *fault.aim;
    if (!aim.occurrences.include(ordinal_of(rules_[i], connection)) || fault.site.operation != site.operation) continue;
    if (facts.message == 0 ? scenarios::drawn_ways(fault, connection).any()
                           : (!aim.message || aim.message->holds(facts.message)) &&
                                 scenarios::drawn_message(fault, connection, facts.message))
      visit.strikes.push_back({i, fault});
  }
  return visit;
}

std::optional<SiteBook::Strike> SiteBook::visit_open(std::size_t index, std::uint64_t connection) {
  const std::lock_guard lock(mutex_);
  auto& rule = rules_.at(index);
  const auto& fault = plan_.faults.at(index);
  if (rule.waits || rule.ordinals.contains(connection)) return std::nullopt;
  if (!fault.aim->occurrences.include(ordinal_of(rule, connection)) || !scenarios::drawn_ways(fault, connection).any())
    return std::nullopt;
  return Strike{index, fault};
}

void SiteBook::forget_connection(const std::string& lane, std::uint64_t connection) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < plan_.faults.size(); ++i)
    if (plan_.faults[i].site.lane == lane) rules_[i].ordinals.erase(connection);
}

SiteBook::Visit SiteBook::visit(const Site& site, const scenarios::CallFacts& facts, std::string_view data_folder) {
  const std::lock_guard lock(mutex_);
  Visit visit;
  if (!site.resource.empty()) visit.occurrence = ++counts_[site];
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const auto& fault = plan_.faults[i];
    if (!fault.aim) {
      if (fault.site == site && strikes_at(i, visit.occurrence)) visit.strikes.push_back({i, fault});
      continue;
    }
    auto& rule = rules_[i];
    if (rule.waits || !selects(fault, site, facts, data_folder)) continue;
    const auto ordinal = ++rule.selected;
    if (fault.aim->occurrences.include(ordinal) && fault.aim->drawn(ordinal)) visit.strikes.push_back({i, fault});
  }
  return visit;
}

SiteBook::Standing SiteBook::standing(const Site& site, const scenarios::CallFacts* facts,
                                      std::string_view data_folder) {
  const std::lock_guard lock(mutex_);
  Standing standing;
  if (const auto counted = counts_.find(site); counted != counts_.end()) standing.count_ = &counted->second;
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const auto& fault = plan_.faults[i];
    if (fault.aim ? facts != nullptr && selects(fault, site, *facts, data_folder) : fault.site == site)
      standing.chosen_.push_back({i});
  }
  return standing;
}

bool SiteBook::pass(Standing& standing, std::uint32_t shown) {
  const std::lock_guard lock(mutex_);
  if (standing.count_ != nullptr && *standing.count_ < shown) return false;
  for (auto& [fault, counted] : standing.chosen_) {
    counted = false;
    const auto& aim = plan_.faults[fault].aim;
    if (!aim) {
      if (strikes_at(fault, *standing.count_ + 1)) return false;
      continue;
    }
    if (rules_[fault].waits) continue;
    const auto ordinal = rules_[fault].selected + 1;
    if (aim->occurrences.include(ordinal) && aim->drawn(ordinal)) return false;
    counted = true;
  }
  if (standing.count_ != nullptr) ++*standing.count_;
  for (const auto& [fault, counted] : standing.chosen_) rules_[fault].selected += counted ? 1 : 0;
  return true;
}

void SiteBook::take_back(const Standing& standing) {
  const std::lock_guard lock(mutex_);
  if (standing.count_ != nullptr) --*standing.count_;
  for (const auto& [fault, counted] : standing.chosen_) rules_[fault].selected -= counted ? 1 : 0;
}

void SiteBook::seen(std::size_t index) {
  const std::lock_guard lock(mutex_);
  rules_.at(index).waits = false;
  for (const auto& [which, wake] : wakes_) wake();
}

bool SiteBook::waits(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return rules_.at(index).waits;
}

void SiteBook::release(std::size_t index) {
  const std::lock_guard lock(mutex_);
  ++rules_.at(index).releases;
  for (const auto& [which, wake] : wakes_) wake();
}

std::uint64_t SiteBook::releases(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return rules_.at(index).releases;
}

std::uint64_t SiteBook::wake_at_release(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wakes_.emplace(next_wake_, std::move(wake));
  return next_wake_++;
}

void SiteBook::forget_wake(std::uint64_t which) {
  const std::lock_guard lock(mutex_);
  wakes_.erase(which);
}

void SiteBook::begin(std::size_t index, std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  auto& left = rules_.at(index).left;
  if (!left) left = amount;
}

std::optional<std::uint64_t> SiteBook::left(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return rules_.at(index).left;
}

void SiteBook::use(std::size_t index, std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  if (auto& left = rules_.at(index).left) *left -= std::min(*left, amount);
}

void SiteBook::give_back(std::size_t index, std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  if (auto& left = rules_.at(index).left) *left += amount;
}

void SiteBook::fired(std::size_t index, Value evidence) {
  {
    const std::lock_guard lock(mutex_);
    if (++rules_.at(index).strikes > 1) return;
  }
  recorder_.record(plan_.faults.at(index).site.lane, events::fault_fired, fired_attrs(index, std::move(evidence)));
}

bool SiteBook::fired_if(std::size_t index, const std::function<bool()>& happened, std::vector<Recorder::Fact> facts,
                        Value evidence) {
  if (!has_fired(index)) facts.push_back({events::fault_fired, fired_attrs(index, std::move(evidence))});
  if (!recorder_.record_if(plan_.faults.at(index).site.lane, happened, std::move(facts))) return false;
  const std::lock_guard lock(mutex_);
  ++rules_.at(index).strikes;
  return true;
}

Value SiteBook::fired_attrs(std::size_t index, Value evidence) const {
  const auto& fault = plan_.faults.at(index);
  return {{"fault", index},
          {"kind", fault.kind},
          {"site", fault.site.text()},
          {"occurrence", fault.occurrence},
          {"evidence", std::move(evidence)}};
}

bool SiteBook::has_fired(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return rules_.at(index).strikes > 0;
}

void SiteBook::undone(std::size_t index, const std::string& how) {
  {
    const std::lock_guard lock(mutex_);
    if (rules_.at(index).repeats) return;
  }
  conclude(index, how);
}

void SiteBook::conclude(std::size_t index, const std::string& how) {
  std::uint64_t strikes = 0;
  {
    const std::lock_guard lock(mutex_);
    auto& rule = rules_.at(index);
    if (rule.strikes == 0 || std::exchange(rule.undone, true)) return;
    strikes = rule.strikes;
  }
  const auto& fault = plan_.faults.at(index);
  Value attrs = {{"fault", index}, {"kind", fault.kind}, {"how", how}};
  if (strikes > 1) attrs["strikes"] = strikes;
  recorder_.record(fault.site.lane, events::fault_undone, std::move(attrs));
}

void SiteBook::finish() {
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) conclude(i, "the leaf and everything in it ended");
  auto sites = Value::array();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [site, count] : counts_) sites.push_back({site.lane, site.operation, site.resource, count});
  }
  recorder_.record("leaf", events::sites, {{"sites", std::move(sites)}});
}

bool SiteBook::pending(const std::string& lane) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < plan_.faults.size(); ++i)
    if (plan_.faults[i].site.lane == lane && !(rules_[i].strikes > 0 && rules_[i].undone)) return true;
  return false;
}

}  // namespace leafcutter::node
