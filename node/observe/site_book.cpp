#include "node/observe/site_book.hpp"

#include <utility>

#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {

namespace events = scenarios::events;

SiteBook::SiteBook(scenarios::Plan plan, Recorder& recorder) : plan_(std::move(plan)), recorder_(recorder) {}

void SiteBook::arm() {
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const auto& fault = plan_.faults[i];
    recorder_.record(
        "leaf", events::fault_armed,
        {{"fault", i}, {"kind", fault.kind}, {"site", fault.site.text()}, {"occurrence", fault.occurrence}});
  }
}

SiteBook::Visit SiteBook::visit(const Site& site) {
  const std::lock_guard lock(mutex_);
  Visit visit;
  visit.occurrence = ++counts_[site];
  for (std::size_t i = 0; i < plan_.faults.size(); ++i)
    if (plan_.faults[i].site == site && plan_.faults[i].occurrence == visit.occurrence)
      visit.strikes.push_back({i, plan_.faults[i]});
  return visit;
}

void SiteBook::fired(std::size_t index, Value evidence) {
  {
    const std::lock_guard lock(mutex_);
    if (!fired_.insert(index).second) return;
  }
  const auto& fault = plan_.faults.at(index);
  recorder_.record(fault.site.lane, events::fault_fired,
                   {{"fault", index},
                    {"kind", fault.kind},
                    {"site", fault.site.text()},
                    {"occurrence", fault.occurrence},
                    {"evidence", std::move(evidence)}});
}

void SiteBook::undone(std::size_t index, const std::string& how) {
  {
    const std::lock_guard lock(mutex_);
    if (!fired_.contains(index) || !undone_.insert(index).second) return;
  }
  const auto& fault = plan_.faults.at(index);
  recorder_.record(fault.site.lane, events::fault_undone, {{"fault", index}, {"kind", fault.kind}, {"how", how}});
}

void SiteBook::finish() {
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) undone(i, "the leaf and everything in it ended");
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
    if (plan_.faults[i].site.lane == lane && !(fired_.contains(i) && undone_.contains(i))) return true;
  return false;
}

}  // namespace leafcutter::node
