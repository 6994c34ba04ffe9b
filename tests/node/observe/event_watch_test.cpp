#include "node/observe/event_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "tests/node/observe/call_facts.hpp"

namespace leafcutter::node {
namespace {

using scenarios::Aim;

/// The leaf's arrangement: every event goes through the watch while it is recorded.
class EventWatchTest : public testing::Test {
 protected:
  void begin(std::vector<Fault> faults) {
    const scenarios::Plan plan{std::move(faults), {}, {}};
    auto watch = EventWatch::create(plan);
    ASSERT_TRUE(watch) << watch.error().text();
    watch_.emplace(std::move(*watch));
    book_.emplace(plan, recorder_);
  }
  bool strikes() { return !book_->visit({"shop", "write", "data:a"}, call_on("/data/a"), "/data").strikes.empty(); }
  static Fault waiting(const std::string& after) {
    Aim aim;
    aim.after = after;
    return {"errno", {"shop", "write", ""}, 1, {{"error", "EIO"}}, aim};
  }
  static Fault held(const std::string& until) {
    return {"hold", {"shop", "write", "data:a"}, 1, {{"at-most", "1h"}, {"until", until}}};
  }

  std::optional<EventWatch> watch_;
  std::optional<SiteBook> book_;
  Recorder recorder_{[] { return std::chrono::nanoseconds(0); },
                     [this](const Event& event) { watch_->see(event, *book_); }};
};

TEST_F(EventWatchTest, ARuleStrikesOnlyAfterItsEvent) {
  begin({waiting("reply from=shop status=201")});
  EXPECT_FALSE(strikes());
  recorder_.record("a -> shop", "reply", {{"from", "shop"}, {"status", 500}});
  recorder_.record("shop", "log", {{"from", "shop"}, {"status", 201}});
  EXPECT_FALSE(strikes()) << "another status, and another kind of event";
  recorder_.record("a -> shop", "reply", {{"from", "shop"}, {"status", 201}});
  EXPECT_TRUE(strikes());
  EXPECT_TRUE(watch_->idle()) << "it waits no more";
}

TEST_F(EventWatchTest, CallsBeforeTheEventDoNotCount) {
  auto fault = waiting("ready service=shop");
  fault.aim->occurrences = {scenarios::Occurrences::Which::nth, 2};
  begin({fault});
  EXPECT_FALSE(strikes());
  EXPECT_FALSE(strikes());
  recorder_.record("shop", "ready", {});
  EXPECT_FALSE(strikes()) << "the first one after the event";
  EXPECT_TRUE(strikes());
}

TEST_F(EventWatchTest, EachOfTwoRulesWaitsForItsOwnEvent) {
  begin({waiting("ready service=shop"), waiting("ready service=bank")});
  recorder_.record("bank", "ready", {});
  const auto visit = book_->visit({"shop", "write", "data:a"}, call_on("/data/a"), "");
  ASSERT_EQ(visit.strikes.size(), 1u);
  EXPECT_EQ(visit.strikes[0].index, 1u);
}

TEST_F(EventWatchTest, EveryEventOfItsKindReleasesAHold) {
  begin({held("exit service=bank")});
  int woken = 0;
  const auto which = book_->wake_at_release([&] { ++woken; });
  recorder_.record("shop", "exit", {});
  EXPECT_EQ(book_->releases(0), 0u);
  recorder_.record("bank", "exit", {});
  recorder_.record("bank", "exit", {});
  EXPECT_EQ(book_->releases(0), 2u);
  EXPECT_EQ(woken, 2);
  book_->forget_wake(which);
  recorder_.record("bank", "exit", {});
  EXPECT_EQ(book_->releases(0), 3u);
  EXPECT_EQ(woken, 2);
  EXPECT_FALSE(watch_->idle());
}

TEST_F(EventWatchTest, APatternThatIsNoneIsAnError) {
  const auto watch = EventWatch::create({{waiting("rply from=shop")}, {}, {}});
  ASSERT_FALSE(watch);
  EXPECT_THAT(watch.error().text(), testing::HasSubstr("rply"));
}

TEST_F(EventWatchTest, APlanWithoutEventsWatchesNothing) {
  begin({{"errno", {"shop", "write", "data:a"}, 1, {{"error", "EIO"}}}});
  EXPECT_TRUE(watch_->idle());
  EXPECT_TRUE(book_->visit({"shop", "write", "data:a"}).strikes.size() == 1);
}

}  // namespace
}  // namespace leafcutter::node
