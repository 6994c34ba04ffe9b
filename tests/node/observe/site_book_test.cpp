#include "node/observe/site_book.hpp"

#include <gtest/gtest.h>

#include "scenarios/event_kinds.hpp"

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
