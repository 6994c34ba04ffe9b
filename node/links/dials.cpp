#include "node/links/dials.hpp"

#include <algorithm>

#include "node/links/connection_events.hpp"
#include "node/links/strikes.hpp"
#include "scenarios/link_aim.hpp"

namespace leafcutter::node {

bool Dials::decide(const scenarios::Plan& plan, const scenarios::Link& link) {
  return !link.is_datagrams() && std::any_of(plan.faults.begin(), plan.faults.end(), [&](const Fault& fault) {
    return fault.kind == refuse_kind && fault.site.lane == link.id() && !scenarios::never_strikes(fault);
  });
}

void Dials::lead(const scenarios::Link& link, const std::string& address) {
  callers_.insert(link.from);
  ways_.emplace(std::pair(link.from, address), Way{&link, link.id()});
}

bool Dials::refuses(const std::string& caller, const std::string& address) {
  const auto found = ways_.find({caller, address});
  if (found == ways_.end()) return false;
  const auto& way = found->second;
  activity_.touch();
  const std::lock_guard lock(mutex_);
  auto visit = sites_.visit(connect_site(way.lane), SiteBook::LinkFacts{});
  const auto strikes = link_strikes(visit);
  if (strikes.final && strikes.final->end == LinkStrikes::End::refuse) {
    refused(way, visit.occurrence, strikes.final->index);
    return true;
  }
  auto& waiting = under_way_[way.lane];
  if (waiting.size() >= most_under_way) waiting.pop_front();
  waiting.push_back(std::move(visit));
  return false;
}

void Dials::refused(const Way& way, std::uint32_t connection, std::size_t fault) {
  sites_.fired(fault, {{"conn", connection}, {"bytes_forwarded", 0}, {"seen_as", "connect() failed: ECONNREFUSED"}});
  // What the caller does from now on happened after it.
  recorder_.deliver(way.link->from, recorder_.now(way.lane));
  record_opening(recorder_, *way.link, way.lane, connection, false);
  sites_.undone(fault, "the connection was refused; later ones are let through");
  sites_.forget_connection(way.lane, connection);
  record_end(recorder_, *way.link, way.lane, {.connection = connection, .cause = "fault:refuse"});
}

SiteBook::Visit Dials::arrived(const std::string& lane) {
  const std::lock_guard lock(mutex_);
  const auto found = under_way_.find(lane);
  if (found == under_way_.end() || found->second.empty())
    return sites_.visit(connect_site(lane), SiteBook::LinkFacts{});
  auto visit = std::move(found->second.front());
  found->second.pop_front();
  return visit;
}

}  // namespace leafcutter::node
