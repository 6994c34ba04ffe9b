#include "coordinator/dispatch/board.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace leafcutter;
using namespace leafcutter::coordinator;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::SizeIs;
using testing::UnorderedElementsAre;

namespace {

constexpr Instant start = 1h;

actors::NodeInfo node(const std::string& name, std::uint32_t slots) {
  actors::NodeInfo info;
  info.name = name;
  info.slots = slots;
  return info;
}

actors::LeafOrder order(const std::string& execution, const std::string& purpose = "explore",
                        const std::string& avoid = {}) {
  actors::LeafOrder out;
  out.execution = execution;
  out.address = execution.substr(0, execution.find('#'));
  out.purpose = purpose;
  out.avoid_slot = avoid;
  out.timeout = 10s;
  return out;
}

actors::LeafReport report(const actors::Lease& lease, const std::string& attempt) {
  actors::LeafReport out;
  out.session = lease.session;
  out.fence = lease.fence;
  out.execution = attempt;
  out.clean = true;
  return out;
}

std::vector<std::string> names(const std::optional<actors::Lease>& lease) {
  std::vector<std::string> out;
  if (lease) {
    for (const auto& each : lease->orders) out.push_back(each.execution.substr(0, each.execution.find('@')));
  }
  return out;
}

/// Orders a fresh board, one node "n" with `slots`.
struct OneNode {
  explicit OneNode(std::uint32_t slots, Board::Options options = {}) : board(options) {
    session = board.admit(node("n", slots), start, lost);
  }
  void enqueue(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(board.enqueue(order("c/0/" + std::to_string(i) + "#0")));
  }
  Board board;
  Board::Returned lost;
  std::uint64_t session = 0;
};

}  // namespace

TEST(Board, HandsOutGuidedShares) {
  OneNode one(4);
  one.enqueue(100);
  EXPECT_THAT(one.board.grant(one.session, 4, start)->orders, SizeIs(5))
      << "free slots and the prefetch bound a share of 13";
  OneNode other(4);
  other.enqueue(9);
  EXPECT_THAT(other.board.grant(other.session, 4, start)->orders, SizeIs(2)) << "ceil(9 / (2 * 4))";
  OneNode last(4);
  last.enqueue(1);
  EXPECT_THAT(last.board.grant(last.session, 4, start)->orders, SizeIs(1));
  EXPECT_FALSE(last.board.grant(last.session, 3, start)) << "nothing is left";
}

TEST(Board, NeverHandsOutMoreThanANodeCanHold) {
  OneNode one(2);
  one.enqueue(50);
  std::size_t held = 0;
  for (int i = 0; i < 10; ++i) {
    if (const auto lease = one.board.grant(one.session, 2, start)) held += lease->orders.size();
  }
  EXPECT_EQ(held, 3u) << "two slots and a prefetch of one";
}

TEST(Board, HoldsNothingBackForABusyNodeWhenLittleIsLeft) {
  OneNode one(2);
  one.enqueue(3);
  ASSERT_THAT(one.board.grant(one.session, 1, start)->orders, SizeIs(1));
  ASSERT_THAT(one.board.grant(one.session, 1, start)->orders, SizeIs(1));
  EXPECT_FALSE(one.board.grant(one.session, 0, start)) << "the third waits for whichever slot is free first";
}

TEST(Board, HandsNothingToANodeBeforeItsFirstWord) {
  OneNode one(1);
  one.enqueue(50);
  EXPECT_TRUE(one.board.grants(start).empty()) << "it may not know yet that it is admitted";
  one.board.want(one.session, 1, start);
  EXPECT_FALSE(one.board.grants(start).empty());
}

TEST(Board, ServesConfirmationsBeforeControlsBeforeMinimizationBeforeExploration) {
  OneNode one(1);
  one.board.enqueue(order("c/0/0#0"));
  one.board.enqueue(order("c/0/0#m1", "minimize"));
  one.board.enqueue(order("c/0/0#k1", "control"));
  one.board.enqueue(order("c/0/0#c1", "confirm"));
  std::vector<std::string> served;
  while (auto lease = one.board.grant(one.session, 1, start)) {
    for (const auto& name : names(lease)) served.push_back(name);
    for (const auto& each : lease->orders) {
      ASSERT_EQ(one.board.report(report(*lease, each.execution), start), Board::Word::accepted);
      ASSERT_TRUE(one.board.resolve(each.execution));
    }
  }
  EXPECT_THAT(served, ElementsAre("c/0/0#c1", "c/0/0#k1", "c/0/0#m1", "c/0/0#0"));
}

TEST(Board, ALeaseHoldsOneCampaignOnly) {
  OneNode one(4);
  one.board.enqueue(order("a/0/0#0"));
  one.board.enqueue(order("b/0/0#0"));
  one.board.enqueue(order("a/0/1#0"));
  for (int i = 2; i < 20; ++i) one.board.enqueue(order("a/0/" + std::to_string(i) + "#0"));
  EXPECT_THAT(names(one.board.grant(one.session, 3, start)), ElementsAre("a/0/0#0", "a/0/1#0", "a/0/2#0"));
  EXPECT_THAT(names(one.board.grant(one.session, 1, start)), ElementsAre("b/0/0#0"));
}

TEST(Board, AnOrderIsQueuedOnce) {
  OneNode one(1);
  EXPECT_TRUE(one.board.enqueue(order("c/0/0#0")));
  EXPECT_FALSE(one.board.enqueue(order("c/0/0#0")));
  EXPECT_EQ(one.board.standing(start).queued, 1u);
}

TEST(Board, AReportAndATraceResolveAnOrderOnce) {
  OneNode one(1);
  one.enqueue(1);
  const auto lease = one.board.grant(one.session, 1, start);
  const auto attempt = lease->orders[0].execution;
  EXPECT_EQ(one.board.report(report(*lease, attempt), start), Board::Word::accepted);
  EXPECT_EQ(one.board.report(report(*lease, attempt), start), Board::Word::accepted)
      << "a repeated word changes nothing";
  EXPECT_EQ(one.board.resolve(attempt)->execution, "c/0/0#0");
  EXPECT_FALSE(one.board.resolve(attempt));
  EXPECT_EQ(one.board.report(report(*lease, attempt), start), Board::Word::stale);
}

TEST(Board, ExpiryLeasesAgainUnderAHigherFence) {
  OneNode one(1);
  const auto other = one.board.admit(node("m", 1), start, one.lost);
  one.enqueue(1);
  const auto first = one.board.grant(one.session, 1, start);
  EXPECT_EQ(one.board.expire(start + 19s).requeued, 0u);
  EXPECT_EQ(one.board.expire(start + 20s).requeued, 1u);
  ASSERT_TRUE(one.board.want(other, 1, start + 20s));
  const auto second = one.board.grant(other, 1, start + 20s);
  ASSERT_TRUE(second);
  EXPECT_GT(second->fence, first->fence);
  EXPECT_NE(second->orders[0].execution, first->orders[0].execution) << "two attempts must not mix their events";
}

TEST(Board, RenewingKeepsALeaseButNotForEver) {
  OneNode one(1);
  one.enqueue(1);
  ASSERT_TRUE(one.board.grant(one.session, 1, start));
  Instant now = start;
  std::size_t requeued = 0;
  for (int i = 0; i < 60 && requeued == 0; ++i) {
    now += 5s;
    ASSERT_TRUE(one.board.renew(one.session, now));
    requeued = one.board.expire(now).requeued;
  }
  EXPECT_EQ(requeued, 1u);
  EXPECT_GE(now - start, 60s) << "renewals carried it well beyond one lease time";
  EXPECT_LE(now - start, 110s) << "20 s + 2 rounds of 10 s and their slack";
}

TEST(Board, ALateResultCountsAsLongAsNobodyElseCameFirst) {
  OneNode one(1);
  one.enqueue(1);
  const auto lease = one.board.grant(one.session, 1, start);
  EXPECT_EQ(one.board.expire(start + 30s).requeued, 1u);
  const auto attempt = lease->orders[0].execution;
  EXPECT_EQ(one.board.report(report(*lease, attempt), start + 31s), Board::Word::accepted);
  EXPECT_EQ(one.board.standing(start + 31s).queued, 0u) << "it need not be run again";
  EXPECT_TRUE(one.board.resolve(attempt));
}

TEST(Board, ALateResultIsADuplicateOnceAnotherAttemptResolvedTheOrder) {
  OneNode one(1);
  const auto other = one.board.admit(node("m", 1), start, one.lost);
  one.enqueue(1);
  const auto first = one.board.grant(one.session, 1, start);
  one.board.expire(start + 30s);
  const auto second = one.board.grant(other, 1, start + 30s);
  ASSERT_EQ(one.board.report(report(*second, second->orders[0].execution), start + 31s), Board::Word::accepted);
  ASSERT_TRUE(one.board.resolve(second->orders[0].execution));
  const auto late = first->orders[0].execution;
  EXPECT_EQ(one.board.report(report(*first, late), start + 32s), Board::Word::duplicate);
  EXPECT_EQ(one.board.order_of(late)->execution, "c/0/0#0") << "so that the second result can be compared";
  EXPECT_FALSE(one.board.resolve(late));
  EXPECT_EQ(one.board.order_of(late), nullptr);
}

TEST(Board, AWrongFenceOrSessionIsNotObeyed) {
  OneNode one(1);
  one.enqueue(1);
  const auto lease = one.board.grant(one.session, 1, start);
  auto wrong = report(*lease, lease->orders[0].execution);
  wrong.fence += 1;
  EXPECT_EQ(one.board.report(wrong, start), Board::Word::stale);
  wrong = report(*lease, lease->orders[0].execution);
  wrong.session += 1;
  EXPECT_EQ(one.board.report(wrong, start), Board::Word::stale);
  EXPECT_EQ(one.board.report(report(*lease, "c/0/0#0@0"), start), Board::Word::stale);
  EXPECT_EQ(one.board.report(report(*lease, lease->orders[0].execution), start), Board::Word::accepted);
}

TEST(Board, ALostNodesWorkIsLeasedAgainFirst) {
  OneNode one(1);
  one.enqueue(3);
  const auto lease = one.board.grant(one.session, 1, start);
  const auto lost = one.board.node_lost(one.session);
  EXPECT_THAT(lost.withdrawn, ElementsAre(lease->orders[0].execution, lease->orders[1].execution));
  EXPECT_EQ(one.board.report(report(*lease, lease->orders[0].execution), start), Board::Word::stale);
  EXPECT_FALSE(one.board.renew(one.session, start));
  EXPECT_FALSE(one.board.want(one.session, 1, start));
  const auto again = one.board.admit(node("n", 1), start, one.lost);
  EXPECT_THAT(names(one.board.grant(again, 1, start)), ElementsAre("c/0/0#0", "c/0/1#0"));
}

TEST(Board, ANodeLostBetweenReportAndTraceLosesTheExecution) {
  OneNode one(1);
  one.enqueue(1);
  const auto lease = one.board.grant(one.session, 1, start);
  one.board.report(report(*lease, lease->orders[0].execution), start);
  EXPECT_EQ(one.board.node_lost(one.session).requeued, 1u);
  EXPECT_FALSE(one.board.resolve(lease->orders[0].execution));
}

TEST(Board, ATraceThatNeverComesIsNotAwaitedForEver) {
  OneNode one(1);
  one.enqueue(1);
  const auto lease = one.board.grant(one.session, 1, start);
  one.board.report(report(*lease, lease->orders[0].execution), start);
  one.board.renew(one.session, start + 59s);
  EXPECT_EQ(one.board.expire(start + 59s).requeued, 0u);
  EXPECT_EQ(one.board.expire(start + 60s).requeued, 1u);
}

TEST(Board, ANewerIncarnationReplacesTheOlder) {
  OneNode one(1);
  one.enqueue(1);
  ASSERT_TRUE(one.board.grant(one.session, 1, start));
  Board::Returned lost;
  const auto session = one.board.admit(node("n", 1), start, lost);
  EXPECT_NE(session, one.session);
  EXPECT_EQ(lost.requeued, 1u);
  EXPECT_FALSE(one.board.has_session(one.session));
}

TEST(Board, AnOrderThatIsLostTooOftenIsGivenUp) {
  Board::Options options;
  options.leases_at_most = 3;
  OneNode one(1, options);
  one.enqueue(1);
  Instant now = start;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(one.board.grant(one.session, 1, now));
    now += 20s;
    const auto returned = one.board.expire(now);
    EXPECT_EQ(returned.requeued, 1u);
    EXPECT_TRUE(returned.given_up.empty());
  }
  ASSERT_TRUE(one.board.grant(one.session, 1, now));
  const auto returned = one.board.expire(now + 20s);
  ASSERT_THAT(returned.given_up, SizeIs(1));
  EXPECT_EQ(returned.given_up[0].execution, "c/0/0#0");
  EXPECT_THAT(returned.withdrawn, SizeIs(3)) << "no earlier attempt may bring it back";
  EXPECT_EQ(one.board.standing(now).queued, 0u);
}

TEST(Board, ASlotIsAvoidedWhereThereIsAnother) {
  OneNode one(1);
  const auto other = one.board.admit(node("m", 1), start, one.lost);
  one.board.enqueue(order("c/0/0#c1", "confirm", "n/1"));
  EXPECT_FALSE(one.board.grant(one.session, 1, start));
  EXPECT_THAT(names(one.board.grant(other, 1, start)), ElementsAre("c/0/0#c1"));
}

TEST(Board, ASlotThatIsToBeAvoidedDoesWhereThereIsNoOther) {
  OneNode alone(1);
  alone.board.enqueue(order("c/0/0#c1", "confirm", "n/1"));
  EXPECT_TRUE(alone.board.grant(alone.session, 1, start));
  OneNode wide(2);
  wide.board.admit(node("m", 1), start, wide.lost);
  wide.board.enqueue(order("c/0/0#c1", "confirm", "n/1"));
  EXPECT_TRUE(wide.board.grant(wide.session, 1, start)) << "a node with two slots picks the other one itself";
}

TEST(Board, ASilentNodeIsNoAlternative) {
  OneNode one(1);
  one.board.admit(node("m", 1), start, one.lost);
  one.board.enqueue(order("c/0/0#c1", "confirm", "n/1"));
  one.board.renew(one.session, start + 21s);
  EXPECT_TRUE(one.board.grant(one.session, 1, start + 21s));
}

TEST(Board, AvoidingOneOrderDoesNotHoldUpTheNext) {
  OneNode one(1);
  one.board.admit(node("m", 1), start, one.lost);
  one.board.enqueue(order("c/0/0#c1", "confirm", "n/1"));
  one.board.enqueue(order("c/0/1#0"));
  EXPECT_THAT(names(one.board.grant(one.session, 1, start)), ElementsAre("c/0/1#0"));
}

TEST(Board, CancellingForgetsOneCampaignAndNamesItsFences) {
  OneNode one(4);
  one.board.enqueue(order("a/0/0#0"));
  one.board.enqueue(order("a/0/1#0"));
  one.board.enqueue(order("b/0/0#0"));
  const auto lease = one.board.grant(one.session, 1, start);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> fences;
  const auto returned = one.board.cancel("a", fences);
  EXPECT_THAT(fences, ElementsAre(std::pair(lease->session, lease->fence)));
  EXPECT_THAT(returned.withdrawn, ElementsAre(lease->orders[0].execution));
  EXPECT_EQ(one.board.report(report(*lease, lease->orders[0].execution), start), Board::Word::stale);
  EXPECT_THAT(names(one.board.grant(one.session, 4, start)), ElementsAre("b/0/0#0"));
}

TEST(Board, AnOrderThatNobodyWaitsForIsWithdrawnWhileItIsQueued) {
  OneNode one(1);
  one.enqueue(2);
  const auto lease = one.board.grant(one.session, 1, start);
  EXPECT_FALSE(one.board.withdraw("c/0/0#0")) << "it runs already";
  EXPECT_TRUE(one.board.withdraw("c/0/1#0"));
  EXPECT_EQ(one.board.standing(start).queued, 0u);
  EXPECT_FALSE(one.board.withdraw("c/0/7#0"));
}

TEST(Board, FencesOfALaterLifeAreHigher) {
  Board::Options options;
  options.first = 1000;
  OneNode one(1, options);
  one.enqueue(1);
  EXPECT_EQ(one.session, 1000u);
  EXPECT_GE(one.board.grant(one.session, 1, start)->fence, 1000u);
}

namespace {

/// A fleet in which everything goes wrong at random: nodes come, freeze, thaw and die; reports and traces are late or
/// lost.
class Fleet {
 public:
  explicit Fleet(std::uint64_t seed, unsigned leases_at_most) : rng_(seed), board_(options(leases_at_most)) {
    for (int i = 0; i < 60; ++i) {
      const auto name = "c/0/" + std::to_string(i) + (i % 7 == 0 ? "#c1" : "#0");
      board_.enqueue(order(name, i % 7 == 0 ? "confirm" : "explore", i % 3 == 0 ? "n0/1" : ""));
      open_.insert(name);
    }
  }

  void step() {
    now_ += std::chrono::milliseconds(rng_() % 3000);
    switch (rng_() % 8) {
      case 0: return join("n" + std::to_string(rng_() % 4));
      case 1: return die();
      case 2: return renew();
      case 3: return take(board_.expire(now_));
      case 4:
      case 5: return work();
      case 6: return hear();
      default: return see();
    }
  }

  /// Everybody behaves from here on.
  void calm() {
    join("n0");
    join("n1");
    for (int i = 0; i < 2000 && !open_.empty(); ++i) {
      now_ += 1s;
      for (const auto session : sessions_) board_.renew(session, now_);
      take(board_.expire(now_));
      work();
      while (!reports_.empty()) hear();
      while (!traces_.empty()) see();
    }
  }

  std::set<std::string> open_;
  std::map<std::string, int> resolved_, given_up_;

 private:
  static Board::Options options(unsigned leases_at_most) {
    Board::Options out;
    out.leases_at_most = leases_at_most;
    return out;
  }
  std::uint64_t pick() { return sessions_[rng_() % sessions_.size()]; }
  void join(const std::string& name) {
    Board::Returned lost;
    sessions_.push_back(board_.admit(node(name, 1 + static_cast<std::uint32_t>(rng_() % 3)), now_, lost));
    take(lost);
  }
  void die() {
    if (!sessions_.empty()) take(board_.node_lost(pick()));
  }
  void renew() {
    if (!sessions_.empty()) board_.renew(pick(), now_);
  }
  void work() {
    for (const auto session : sessions_) board_.want(session, static_cast<std::uint32_t>(rng_() % 4), now_);
    for (const auto& lease : board_.grants(now_)) {
      for (const auto& each : lease.orders) {
        ASSERT_TRUE(attempts_.insert(each.execution).second) << "an attempt's name came twice";
        reports_.push_back(report(lease, each.execution));
      }
    }
  }
  void hear() {
    if (reports_.empty()) return;
    const auto at = reports_.begin() + static_cast<std::ptrdiff_t>(rng_() % reports_.size());
    if (board_.report(*at, now_) == Board::Word::accepted) traces_.push_back(at->execution);
    if (rng_() % 4 != 0) reports_.erase(at);  // else it is said again later
  }
  void see() {
    if (traces_.empty()) return;
    const auto at = traces_.begin() + static_cast<std::ptrdiff_t>(rng_() % traces_.size());
    if (rng_() % 8 != 0) {
      if (const auto done = board_.resolve(*at)) {
        ++resolved_[done->execution];
        open_.erase(done->execution);
      }
    }
    traces_.erase(at);
  }
  void take(const Board::Returned& returned) {
    for (const auto& each : returned.given_up) {
      ++given_up_[each.execution];
      open_.erase(each.execution);
    }
  }

  std::mt19937_64 rng_;
  Board board_;
  Instant now_ = start;
  std::vector<std::uint64_t> sessions_;
  std::vector<actors::LeafReport> reports_;
  std::vector<std::string> traces_;
  std::set<std::string> attempts_;
};

}  // namespace

TEST(Board, EveryOrderIsResolvedExactlyOnceWhateverIsLost) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Fleet fleet(seed, 1'000'000);
    for (int i = 0; i < 400; ++i) fleet.step();
    fleet.calm();
    ASSERT_TRUE(fleet.open_.empty()) << "seed " << seed << ": " << fleet.open_.size()
                                     << " orders were never resolved, such as " << *fleet.open_.begin();
    ASSERT_EQ(fleet.resolved_.size(), 60u) << "seed " << seed;
    for (const auto& [name, times] : fleet.resolved_) ASSERT_EQ(times, 1) << "seed " << seed << ": " << name;
  }
}

TEST(Board, EveryOrderIsResolvedOrGivenUpExactlyOnce) {
  std::size_t given_up = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Fleet fleet(seed, 3);
    for (int i = 0; i < 400; ++i) fleet.step();
    fleet.calm();
    ASSERT_TRUE(fleet.open_.empty()) << "seed " << seed;
    for (const auto& [name, times] : fleet.resolved_) {
      ASSERT_EQ(times, 1) << "seed " << seed << ": " << name;
      ASSERT_FALSE(fleet.given_up_.contains(name)) << "seed " << seed << ": " << name;
    }
    for (const auto& [name, times] : fleet.given_up_) ASSERT_EQ(times, 1) << "seed " << seed << ": " << name;
    ASSERT_EQ(fleet.resolved_.size() + fleet.given_up_.size(), 60u);
    given_up += fleet.given_up_.size();
  }
  EXPECT_GT(given_up, 100u);
}
