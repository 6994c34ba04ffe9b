#include "node/observe/recorder.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace leafcutter::node {
namespace {

class RecorderTest : public testing::Test {
 protected:
  std::vector<Event> events_;
  std::int64_t now_ = 0;
  Recorder recorder_{[this] { return std::chrono::nanoseconds(++now_); },
                     [this](Event event) { events_.push_back(std::move(event)); }};
};

TEST_F(RecorderTest, NumbersEachLaneByItself) {
  recorder_.record("a", "x", {});
  recorder_.record("b", "x", {});
  recorder_.record("a", "y", {{"k", 1}});
  ASSERT_EQ(events_.size(), 3u);
  EXPECT_EQ(events_[1].seq, 1u);
  EXPECT_EQ(events_[2].seq, 2u);
  EXPECT_EQ(events_[2].attrs["k"], 1);
  EXPECT_LT(events_[0].at, events_[2].at);
}

TEST_F(RecorderTest, WhatDidNotHappenIsNotRecorded) {
  EXPECT_FALSE(recorder_.record_if("a", [] { return false; }, {{"x", {}}, {"y", {}}}));
  EXPECT_TRUE(events_.empty());
  EXPECT_TRUE(recorder_.record_if("a", [] { return true; }, {{"x", {}}, {"y", {}}}));
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[0].kind, "x");
  EXPECT_EQ(events_[0].seq, 1u);
  EXPECT_EQ(events_[1].seq, 2u);
  EXPECT_EQ(recorder_.recorded(), 2u);
}

/// Whoever saw it happen records after it, however quick.
TEST_F(RecorderTest, WhatFollowsFromAFactIsRecordedAfterIt) {
  std::thread follower;
  recorder_.record_if("a",
                      [&] {
                        follower = std::thread([&] { recorder_.record("b", "effect", {}); });
                        std::this_thread::yield();
                        return true;
                      },
                      {{"cause", {}}});
  follower.join();
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[0].kind, "cause");
}

TEST_F(RecorderTest, OrdersByMessagesAndByNothingElse) {
  const auto sent = recorder_.record("a", "send", {});
  recorder_.record("b", "before", {});
  recorder_.deliver("b", sent);
  recorder_.record("b", "after", {});
  EXPECT_FALSE(events_[1].clock.contains("a")) << "nothing had reached b yet";
  EXPECT_EQ(events_[2].clock.at("a"), 1u);
  recorder_.record("c", "apart", {});
  EXPECT_EQ(events_[3].clock.size(), 1u) << "c is concurrent to all of it";
}

TEST_F(RecorderTest, TakesCausesWithTheEvent) {
  const auto a = recorder_.record("a", "x", {});
  const auto b = recorder_.record("b", "x", {}, {a});
  EXPECT_EQ(b.at("a"), 1u);
  EXPECT_EQ(recorder_.now("b"), b);
}

TEST(RecorderThreads, LoseNoEventAndRepeatNoNumber) {
  std::vector<Event> events;
  Recorder recorder([] { return std::chrono::nanoseconds(0); },
                    [&](Event event) { events.push_back(std::move(event)); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) recorder.record("lane", "x", {});
    });
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(events.size(), 2000u);
  for (std::size_t i = 0; i < events.size(); ++i) ASSERT_EQ(events[i].seq, i + 1);
}

}  // namespace
}  // namespace leafcutter::node
