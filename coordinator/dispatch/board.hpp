// Who works on what, and until when: queues with strict priorities, fenced leases with an expiry, and what becomes of
// both when nodes fall silent or go away. Values and functions; the time is passed in. Execution is at least once: an
// order is leased again when its lease ends without a trace; acceptance is exactly once: the first attempt whose report
// and trace are both there resolves the order. Every attempt has a name of its own, so that two attempts never mix
// their events.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.hpp"

namespace leafcutter::coordinator {

/// A point on some monotonic clock.
using Instant = std::chrono::nanoseconds;

/// Queues are emptied in this order: what a finding waits for goes before the search.
enum class Priority { confirm, control, minimize, explore };
Priority priority_of(std::string_view purpose);

/// The campaign of an address or of an execution.
std::string_view campaign_of(std::string_view address);

class Board {
 public:
  struct Options {
    std::chrono::nanoseconds lease_time{std::chrono::seconds(20)};
    std::chrono::nanoseconds trace_time{std::chrono::seconds(60)};  ///< how long a reported execution's trace may take
    unsigned leases_at_most = 5;                                    ///< an order that was lost so often is given up
    std::uint32_t prefetch = 1;  ///< orders beyond a node's slots, while there is plenty
    std::uint64_t first = 1;     ///< sessions and fences count from here; higher in every life of the coordinator
  };

  /// What became of orders whose leases ended without a result.
  struct Returned {
    std::vector<std::string> withdrawn;       ///< attempts that will not be accepted any more
    std::vector<actors::LeafOrder> given_up;  ///< lost too often; named as they were enqueued
    std::size_t requeued = 0;
  };

  enum class Word {
    accepted,   ///< the order is unresolved: its trace is awaited
    duplicate,  ///< the order was resolved by another attempt
    stale,      ///< an old session, or nothing that was leased: recorded, not obeyed
  };

  struct Standing {
    std::size_t queued = 0, leased = 0, awaiting_trace = 0;
    std::uint32_t nodes = 0, slots = 0;
  };

  explicit Board(Options options);

  // --- nodes ---

  /// Opens a session for the node; the older session of the same name, if any, is lost.
  std::uint64_t admit(const actors::NodeInfo& node, Instant now, Returned& lost);
  bool has_session(std::uint64_t session) const { return nodes_.contains(session); }

  /// The node's leases get their full time again, up to a cap; false: no such session.
  bool renew(std::uint64_t session, Instant now);

  /// The node has `free` idle slots.
  bool want(std::uint64_t session, std::uint32_t free, Instant now);

  Returned node_lost(std::uint64_t session);

  // --- work ---

  /// `order.execution` is unique among unresolved orders; false: it is there already.
  bool enqueue(actors::LeafOrder order);

  /// Work for one node: guided self-scheduling (Polychronopoulos and Kuck, 1987), ceil(remaining / (2 slots)), at least
  /// one, at most what its free slots (and the prefetch, while there is plenty) can take.
  std::optional<actors::Lease> grant(std::uint64_t session, std::uint32_t free, Instant now);

  /// Work for every node that has asked and has room, in session order.
  std::vector<actors::Lease> grants(Instant now);

  Word report(const actors::LeafReport& report, Instant now);

  /// Report and trace of the attempt are there. The order, as it was enqueued; or nothing, when another attempt
  /// resolved it or it was withdrawn.
  std::optional<actors::LeafOrder> resolve(const std::string& attempt);

  /// The order of an attempt, resolved or not.
  const actors::LeafOrder* order_of(const std::string& attempt) const;

  Returned expire(Instant now);

  /// Nobody waits for the order any more: it is not run if it is still queued; true if so.
  bool withdraw(const std::string& order);

  /// Forgets a campaign's orders. The fences to cancel, by session, are added to `fences`.
  Returned cancel(std::string_view campaign, std::vector<std::pair<std::uint64_t, std::uint64_t>>& fences);

  Standing standing(Instant now) const;

 private:
  enum class State { leased, expired, reported };
  struct Node {
    std::string name;
    std::uint32_t slots = 0, free = 0;
    bool asked = false;  ///< before its first word it does not know its session, and would not take a lease
    Instant seen{};
  };
  struct Attempt {
    std::string order;
    std::uint64_t session = 0, fence = 0;
    State state = State::leased;
    Instant expires{}, at_most{};
  };
  struct Job {
    actors::LeafOrder order;
    unsigned leases = 0;
    bool queued = false, resolved = false;
  };
  using Attempts = std::map<std::string, Attempt>;

  bool alive(const Node& node, Instant now) const { return now - node.seen <= options_.lease_time; }
  std::uint32_t slots(Instant now) const;
  std::size_t queued() const;
  std::size_t running(std::uint64_t session) const;
  bool may_run(const actors::LeafOrder& order, const Node& node, Instant now) const;
  std::optional<std::string> pop(const Node& node, Instant now, std::string_view campaign);
  bool has_live_attempt(const std::string& order) const;
  void give_back(const std::string& order, Returned& out);
  std::deque<std::string>& queue_of(const Job& job);
  void unqueue(Job& job);
  void forget_if_over(const std::string& order);

  Options options_;
  std::uint64_t next_session_, next_fence_;
  std::array<std::deque<std::string>, 4> queues_;
  std::map<std::string, Job> jobs_;      ///< by execution as enqueued
  Attempts attempts_;                    ///< by the attempt's own name
  std::map<std::uint64_t, Node> nodes_;  ///< by session
};

}  // namespace leafcutter::coordinator
