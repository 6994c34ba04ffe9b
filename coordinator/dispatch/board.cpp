#include "coordinator/dispatch/board.hpp"

#include <algorithm>

namespace leafcutter::coordinator {

namespace {

using std::chrono::nanoseconds;

/// What a node may add to a leaf's own deadline before it reports: grace, kill and clean-up.
constexpr nanoseconds slack = std::chrono::seconds(30);

/// Longer than any leaf may take; keeps sums of time-outs from overflowing.
constexpr nanoseconds longest_timeout = std::chrono::hours(24);

std::string_view node_of(std::string_view slot) {
  const auto cut = slot.rfind('/');
  return cut == std::string_view::npos ? slot : slot.substr(0, cut);
}

}  // namespace

Priority priority_of(std::string_view purpose) {
  if (purpose == "confirm" || purpose == "replay") return Priority::confirm;
  if (purpose == "control") return Priority::control;
  if (purpose == "minimize") return Priority::minimize;
  return Priority::explore;
}

std::string_view campaign_of(std::string_view address) { return address.substr(0, address.find('/')); }

Board::Board(Options options) : options_(options), next_session_(options.first), next_fence_(options.first) {}

// --- nodes
// ------------------------------------------------------------------------------------------------------------

std::uint64_t Board::admit(const actors::NodeInfo& node, Instant now, Returned& lost) {
  for (const auto& [session, known] : nodes_) {
    if (known.name != node.name) continue;
    lost = node_lost(session);
    break;
  }
  const auto session = next_session_++;
  nodes_[session] = Node{node.name, node.slots, 0, false, now};
  return session;
}

bool Board::renew(std::uint64_t session, Instant now) {
  const auto node = nodes_.find(session);
  if (node == nodes_.end()) return false;
  node->second.seen = now;
  for (auto& [name, attempt] : attempts_) {
    if (attempt.session != session || attempt.state == State::expired) continue;
    attempt.expires = std::min(now + options_.lease_time, attempt.at_most);
  }
  return true;
}

bool Board::want(std::uint64_t session, std::uint32_t free, Instant now) {
  const auto node = nodes_.find(session);
  if (node == nodes_.end()) return false;
  node->second.free = std::min(free, node->second.slots);
  node->second.asked = true;
  node->second.seen = now;
  return true;
}

Board::Returned Board::node_lost(std::uint64_t session) {
  Returned out;
  nodes_.erase(session);
  std::vector<std::string> orders;
  std::erase_if(attempts_, [&](const auto& entry) {
    if (entry.second.session != session) return false;
    out.withdrawn.push_back(entry.first);
    orders.push_back(entry.second.order);
    return true;
  });
  // Each goes to the front, hence backwards.
  for (auto order = orders.rbegin(); order != orders.rend(); ++order) give_back(*order, out);
  return out;
}

// --- work
// -------------------------------------------------------------------------------------------------------------

bool Board::enqueue(actors::LeafOrder order) {
  const auto name = order.execution;
  const auto [job, added] = jobs_.try_emplace(name, Job{std::move(order), 0, true, false});
  if (added) queue_of(job->second).push_back(name);
  return added;
}

std::uint32_t Board::slots(Instant now) const {
  std::uint32_t sum = 0;
  for (const auto& [session, node] : nodes_) {
    if (alive(node, now)) sum += node.slots;
  }
  return sum;
}

std::size_t Board::queued() const {
  std::size_t sum = 0;
  for (const auto& queue : queues_) sum += queue.size();
  return sum;
}

std::size_t Board::running(std::uint64_t session) const {
  return static_cast<std::size_t>(std::count_if(attempts_.begin(), attempts_.end(), [&](const auto& entry) {
    return entry.second.session == session && entry.second.state == State::leased;
  }));
}

bool Board::may_run(const actors::LeafOrder& order, const Node& node, Instant now) const {
  // A node with several slots picks another one itself.
  if (order.avoid_slot.empty() || node_of(order.avoid_slot) != node.name || node.slots > 1) return true;
  return std::none_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    return entry.second.name != node.name && entry.second.slots > 0 && alive(entry.second, now);
  });
}

std::optional<std::string> Board::pop(const Node& node, Instant now, std::string_view campaign) {
  for (auto& queue : queues_) {
    for (auto at = queue.begin(); at != queue.end(); ++at) {
      const auto& job = jobs_.at(*at);
      if (!campaign.empty() && campaign_of(job.order.address) != campaign) continue;
      if (!may_run(job.order, node, now)) continue;
      auto name = *at;
      queue.erase(at);
      return name;
    }
  }
  return std::nullopt;
}

std::optional<actors::Lease> Board::grant(std::uint64_t session, std::uint32_t free, Instant now) {
  const auto found = nodes_.find(session);
  if (found == nodes_.end()) return std::nullopt;
  auto& node = found->second;
  const std::size_t remaining = queued();
  const std::size_t everywhere = std::max<std::size_t>(slots(now), 1);
  const std::size_t busy = running(session);
  // Orders that wait at a node cannot go to another one, so they are handed out ahead only while there is plenty.
  const std::size_t ahead = remaining > everywhere ? options_.prefetch : 0;
  const std::size_t idle = std::min<std::size_t>(free, node.slots - std::min<std::size_t>(busy, node.slots));
  const std::size_t room = std::min<std::size_t>(idle + ahead, node.slots + ahead - std::min(busy, node.slots + ahead));
  const std::size_t share = std::max<std::size_t>((remaining + 2 * everywhere - 1) / (2 * everywhere), 1);
  const std::size_t count = std::min({share, room, remaining});

  actors::Lease lease;
  lease.session = session;
  lease.expires_in = options_.lease_time;
  nanoseconds longest{0};
  std::string campaign;  // one a lease: a fence can be cancelled only as a whole
  while (lease.orders.size() < count) {
    const auto name = pop(node, now, campaign);
    if (!name) break;
    auto& job = jobs_.at(*name);
    campaign = campaign_of(job.order.address);
    job.queued = false;
    ++job.leases;
    lease.orders.push_back(job.order);
    longest = std::max(longest, std::min<nanoseconds>(job.order.timeout, longest_timeout));
  }
  if (lease.orders.empty()) return std::nullopt;
  lease.fence = next_fence_++;
  // However often it is renewed, a lease does not outlive what its executions can take: the node may have lost one.
  const auto rounds =
      static_cast<std::int64_t>(1 + (busy + lease.orders.size()) / std::max<std::size_t>(node.slots, 1));
  const Instant at_most = now + options_.lease_time + rounds * (longest + slack);
  for (auto& order : lease.orders) {
    const auto attempt = order.execution + "@" + std::to_string(lease.fence);
    attempts_[attempt] =
        Attempt{order.execution, session, lease.fence, State::leased, now + options_.lease_time, at_most};
    order.execution = attempt;
  }
  node.free -= std::min<std::uint32_t>(node.free, static_cast<std::uint32_t>(lease.orders.size()));
  return lease;
}

std::vector<actors::Lease> Board::grants(Instant now) {
  std::vector<actors::Lease> leases;
  for (auto& [session, node] : nodes_) {
    if (!node.asked || !alive(node, now)) continue;
    if (auto lease = grant(session, node.free, now)) leases.push_back(std::move(*lease));
  }
  return leases;
}

Board::Word Board::report(const actors::LeafReport& report, Instant now) {
  const auto node = nodes_.find(report.session);
  if (node == nodes_.end()) return Word::stale;
  node->second.seen = now;
  const auto attempt = attempts_.find(report.execution);
  if (attempt == attempts_.end() || attempt->second.session != report.session ||
      attempt->second.fence != report.fence) {
    return Word::stale;
  }
  auto& job = jobs_.at(attempt->second.order);
  if (job.resolved) return Word::duplicate;
  if (attempt->second.state == State::reported) return Word::accepted;
  attempt->second.state = State::reported;
  attempt->second.at_most = now + options_.trace_time;
  attempt->second.expires = std::min(now + options_.lease_time, attempt->second.at_most);
  if (job.queued) {
    // Its lease had expired, but the result is here before anybody else took the order.
    unqueue(job);
  }
  return Word::accepted;
}

std::optional<actors::LeafOrder> Board::resolve(const std::string& name) {
  const auto attempt = attempts_.find(name);
  if (attempt == attempts_.end()) return std::nullopt;
  const auto order = attempt->second.order;
  auto& job = jobs_.at(order);
  std::optional<actors::LeafOrder> resolved;
  if (!job.resolved) {
    resolved = job.order;
    job.resolved = true;
    if (job.queued) unqueue(job);
  }
  attempts_.erase(attempt);
  forget_if_over(order);
  return resolved;
}

const actors::LeafOrder* Board::order_of(const std::string& attempt) const {
  const auto found = attempts_.find(attempt);
  return found == attempts_.end() ? nullptr : &jobs_.at(found->second.order).order;
}

// --- ends of leases
// ---------------------------------------------------------------------------------------------------

std::deque<std::string>& Board::queue_of(const Job& job) {
  return queues_[static_cast<std::size_t>(priority_of(job.order.purpose))];
}

void Board::unqueue(Job& job) {
  auto& queue = queue_of(job);
  queue.erase(std::find(queue.begin(), queue.end(), job.order.execution));
  job.queued = false;
}

bool Board::has_live_attempt(const std::string& order) const {
  return std::any_of(attempts_.begin(), attempts_.end(), [&](const auto& entry) {
    return entry.second.order == order && entry.second.state != State::expired;
  });
}

void Board::forget_if_over(const std::string& order) {
  const auto job = jobs_.find(order);
  if (job == jobs_.end() || !job->second.resolved) return;
  const bool tried =
      std::any_of(attempts_.begin(), attempts_.end(), [&](const auto& entry) { return entry.second.order == order; });
  if (!tried) jobs_.erase(job);
}

void Board::give_back(const std::string& order, Returned& out) {
  const auto found = jobs_.find(order);
  if (found == jobs_.end()) return;
  auto& job = found->second;
  if (job.resolved) return forget_if_over(order);
  if (job.queued || has_live_attempt(order)) return;
  if (job.leases >= options_.leases_at_most) {
    out.given_up.push_back(std::move(job.order));
    std::erase_if(attempts_, [&](const auto& entry) {
      if (entry.second.order != order) return false;
      out.withdrawn.push_back(entry.first);
      return true;
    });
    jobs_.erase(found);
    return;
  }
  // In front: it has waited longest, and the epoch waits for it.
  queue_of(job).push_front(order);
  job.queued = true;
  ++out.requeued;
}

Board::Returned Board::expire(Instant now) {
  Returned out;
  std::vector<std::string> over;
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    auto& attempt = at->second;
    if (attempt.state == State::expired && now >= attempt.at_most && jobs_.at(attempt.order).resolved) {
      // Kept until now so that a late second result could be compared with the first.
      out.withdrawn.push_back(at->first);
      over.push_back(attempt.order);
      at = attempts_.erase(at);
      continue;
    }
    if (attempt.state != State::expired && now >= attempt.expires) {
      attempt.state = State::expired;
      over.push_back(attempt.order);
    }
    ++at;
  }
  for (auto order = over.rbegin(); order != over.rend(); ++order) give_back(*order, out);
  return out;
}

bool Board::withdraw(const std::string& order) {
  const auto job = jobs_.find(order);
  if (job == jobs_.end() || !job->second.queued) return false;
  unqueue(job->second);
  job->second.resolved = true;
  forget_if_over(order);
  return true;
}

Board::Returned Board::cancel(std::string_view campaign, std::vector<std::pair<std::uint64_t, std::uint64_t>>& fences) {
  Returned out;
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    if (campaign_of(at->second.order) != campaign) {
      ++at;
      continue;
    }
    const std::pair fence(at->second.session, at->second.fence);
    if (std::find(fences.begin(), fences.end(), fence) == fences.end()) fences.push_back(fence);
    out.withdrawn.push_back(at->first);
    at = attempts_.erase(at);
  }
  for (auto& queue : queues_) {
    std::erase_if(queue, [&](const std::string& order) { return campaign_of(order) == campaign; });
  }
  std::erase_if(jobs_, [&](const auto& entry) { return campaign_of(entry.first) == campaign; });
  return out;
}

Board::Standing Board::standing(Instant now) const {
  Standing out;
  out.queued = queued();
  for (const auto& [name, attempt] : attempts_) {
    if (attempt.state == State::leased) ++out.leased;
    if (attempt.state == State::reported) ++out.awaiting_trace;
  }
  for (const auto& [session, node] : nodes_) {
    if (alive(node, now)) ++out.nodes;
  }
  out.slots = slots(now);
  return out;
}

}  // namespace leafcutter::coordinator
