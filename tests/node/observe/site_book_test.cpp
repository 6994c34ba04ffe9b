#include "node/observe/site_book.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/event_kinds.hpp"
#include "tests/node/observe/call_facts.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

const Site write_log{"shop", "write", "data:orders.log"};
const Site write_other{"shop", "write", "data:other"};

scenarios::Plan second_write_fails() {
  scenarios::Plan plan;
  plan.faults = {{"errno", write_log, 2, {{"error", "EIO"}}}};
  return plan;
}

class SiteBookTest : public testing::Test {
 protected:
  std::vector<Event> events_;
  Recorder recorder_{[] { return std::chrono::nanoseconds(0); },
                     [this](Event event) { events_.push_back(std::move(event)); }};
  int count(const std::string& kind) const {
    return static_cast<int>(
        std::count_if(events_.begin(), events_.end(), [&](const Event& e) { return e.kind == kind; }));
  }
};

TEST_F(SiteBookTest, StrikesAtTheOccurrenceAndNowhereElse) {
  SiteBook book(second_write_fails(), recorder_);
  book.arm();
  EXPECT_TRUE(book.visit(write_log).strikes.empty());
  EXPECT_TRUE(book.visit(write_other).strikes.empty());
  EXPECT_TRUE(book.visit(write_other).strikes.empty()) << "another site's second visit is not this site's";
  const auto visit = book.visit(write_log);
  EXPECT_EQ(visit.occurrence, 2u);
  ASSERT_EQ(visit.strikes.size(), 1u);
  EXPECT_EQ(visit.strikes[0].fault.kind, "errno");
  EXPECT_TRUE(book.visit(write_log).strikes.empty());
}

TEST_F(SiteBookTest, KeepsTheLifecycleInTheTrace) {
  SiteBook book(second_write_fails(), recorder_);
  book.arm();
  EXPECT_TRUE(book.pending("shop"));
  book.fired(0, {{"errno", 5}});
  book.fired(0, {{"errno", 5}});
  book.undone(0, "the call returned");
  book.undone(0, "again");
  EXPECT_FALSE(book.pending("shop"));
  EXPECT_EQ(count(events::fault_armed), 1);
  EXPECT_EQ(count(events::fault_fired), 1);
  EXPECT_EQ(count(events::fault_undone), 1);
  EXPECT_EQ(events_[1].lane, "shop");
  EXPECT_EQ(events_[1].attrs["evidence"]["errno"], 5);
}

TEST_F(SiteBookTest, AStrikeThatNobodyFeltIsNone) {
  SiteBook book(second_write_fails(), recorder_);
  EXPECT_FALSE(book.fired_if(0, [] { return false; }, {{events::syscall, {}}}, {{"errno", 5}}));
  book.undone(0, "the call returned");
  EXPECT_FALSE(book.has_fired(0));
  EXPECT_TRUE(events_.empty());
  EXPECT_TRUE(book.fired_if(0, [] { return true; }, {{events::syscall, {}}}, {{"errno", 5}}));
  EXPECT_TRUE(book.fired_if(0, [] { return true; }, {}, {{"errno", 6}}));
  book.undone(0, "the call returned");
  ASSERT_EQ(events_.size(), 3u);
  EXPECT_EQ(events_[0].kind, events::syscall);
  EXPECT_EQ(events_[1].attrs["evidence"]["errno"], 5);
  EXPECT_EQ(events_[2].attrs["strikes"], 2);
}

TEST_F(SiteBookTest, NeverSaysUndoneOfWhatDidNotFire) {
  SiteBook book(second_write_fails(), recorder_);
  book.arm();
  book.undone(0, "early");
  book.finish();
  EXPECT_EQ(count(events::fault_fired), 0);
  EXPECT_EQ(count(events::fault_undone), 0);
}

TEST_F(SiteBookTest, UndoesAtTheEndWhatIsStillInEffect) {
  SiteBook book(second_write_fails(), recorder_);
  book.fired(0, Value::object());
  book.finish();
  EXPECT_EQ(count(events::fault_undone), 1);
}

TEST_F(SiteBookTest, AnAmountBeginsOnceAndIsUsedAndGivenBack) {
  SiteBook book(second_write_fails(), recorder_);
  EXPECT_FALSE(book.left(0).has_value());
  book.give_back(0, 5);
  EXPECT_FALSE(book.left(0).has_value()) << "it has not begun";
  book.begin(0, 10);
  book.use(0, 4);
  book.begin(0, 10);
  EXPECT_EQ(book.left(0), 6u) << "a restarted service does not begin it again";
  book.give_back(0, 1);
  book.use(0, 100);
  EXPECT_EQ(book.left(0), 0u);
}

/// What a rule selects, and the ordinals it strikes at, do not depend on what other threads and other rules do.
TEST_F(SiteBookTest, ADrawBelongsToItsRuleAndItsOrdinal) {
  const auto chance = [](std::uint64_t seed) {
    scenarios::Aim aim;
    aim.per_million = 500'000;
    aim.seed = seed;
    return Fault{"errno", {"shop", "write", ""}, 1, {{"error", "EIO"}}, aim};
  };
  const auto struck = [&](std::vector<Fault> faults, std::size_t index, int others) {
    SiteBook book({std::move(faults), {}, {}}, recorder_);
    std::string pattern;
    for (int i = 0; i < 64; ++i) {
      for (int other = 0; other < others; ++other) book.visit({"bank", "write", "data:x"}, call_on("/d/x"), "");
      bool hit = false;
      for (const auto& strike : book.visit(write_log, call_on("/d/x"), "").strikes) hit |= strike.index == index;
      pattern += hit ? 'x' : '.';
    }
    return pattern;
  };
  const auto alone = struck({chance(7)}, 0, 0);
  EXPECT_EQ(struck({chance(9), chance(7)}, 1, 3), alone) << "another rule and another lane draw from their own streams";
  EXPECT_NE(struck({chance(9), chance(7)}, 0, 0), alone);
  const auto hits = std::count(alone.begin(), alone.end(), 'x');
  EXPECT_GT(hits, 16);
  EXPECT_LT(hits, 48);
}

/// Two rules on one call stand beside each other; neither takes the other's place, and taking one away changes nothing
/// for the other.
TEST_F(SiteBookTest, RulesOnTheSameCallDoNotReplaceEachOther) {
  scenarios::Aim all, logs;
  logs.path = "*.log";
  const Fault first{"delay", {"shop", "write", ""}, 1, {{"for", "1ms"}}, all};
  const Fault second{"errno", {"shop", "write", ""}, 1, {{"error", "EIO"}}, logs};
  const auto indices = [](const SiteBook::Visit& visit) {
    std::vector<std::string> kinds;
    for (const auto& strike : visit.strikes) kinds.push_back(strike.fault.kind);
    return kinds;
  };
  SiteBook book({{first, second}, {}, {}}, recorder_);
  EXPECT_EQ(indices(book.visit(write_log, call_on("/d/orders.log"), "/d")),
            (std::vector<std::string>{"delay", "errno"}));
  EXPECT_EQ(indices(book.visit(write_other, call_on("/d/other"), "/d")), (std::vector<std::string>{"delay"}));
}

TEST_F(SiteBookTest, ReportsEverySiteWithItsCount) {
  SiteBook book({}, recorder_);
  book.visit(write_other);
  book.visit(write_log);
  book.visit(write_log);
  book.finish();
  ASSERT_EQ(events_.back().kind, events::sites);
  EXPECT_EQ(events_.back().attrs["sites"],
            Value::array({{"shop", "write", "data:orders.log", 2}, {"shop", "write", "data:other", 1}}));
}

}  // namespace
}  // namespace leafcutter::node
