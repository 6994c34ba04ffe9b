// The leaf's end of the event stream: at least once, in order, bounded, never in the way.
#include <gtest/gtest.h>

#include "harness.hpp"
#include "node/leaf/outbox.hpp"

namespace leafcutter::node::testing {
namespace {

Event event(std::uint64_t seq, const std::string& kind = "log") {
  Event out;
  out.lane = "shop";
  out.seq = seq;
  out.kind = kind;
  return out;
}

auto soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

TEST(Outbox, DeliversEverythingInOrder) {
  const Folder folder;
  FakeCourier courier(folder.path());
  Outbox outbox(courier.endpoint(), "x#1");
  for (std::uint64_t i = 1; i <= 5000; ++i) outbox.push(event(i));
  outbox.push(event(5001, "leaf.end"));
  outbox.push(event(5002));  // after the end nothing counts
  ASSERT_TRUE(outbox.finish(soon()));
  const auto events = courier.events("x#1");
  ASSERT_EQ(events.size(), 5001u);
  for (std::size_t i = 0; i < events.size(); ++i) ASSERT_EQ(events[i].seq, i + 1);
  EXPECT_EQ(outbox.dropped(), 0u);
}

TEST(Outbox, AFewEventsDoNotWaitForMore) {
  const Folder folder;
  FakeCourier courier(folder.path());
  Outbox outbox(courier.endpoint(), "x#1");
  outbox.push(event(1));
  EXPECT_TRUE(eventually([&] { return courier.events("x#1").size() == 1; }, std::chrono::seconds(2)));
}

TEST(Outbox, SendsAgainWhatIsNotAcknowledged) {
  const Folder folder;
  FakeCourier courier(folder.path());
  courier.mute(true);
  Outbox outbox(courier.endpoint(), "x#1");
  outbox.push(event(1));
  ASSERT_TRUE(eventually([&] { return courier.duplicates() > 0; }, std::chrono::seconds(5)));
  courier.mute(false);
  outbox.push(event(2, "leaf.end"));
  ASSERT_TRUE(outbox.finish(soon()));
  EXPECT_EQ(courier.events("x#1").size(), 2u);
}

TEST(Outbox, NobodyListeningDoesNotBlockAndIsCounted) {
  const Folder folder;
  Outbox::Limits limits;
  limits.held = 100;
  Outbox outbox("ipc://" + folder.path() + "/nobody", "x#1", limits);
  for (std::uint64_t i = 1; i <= 150; ++i) outbox.push(event(i));
  EXPECT_EQ(outbox.dropped(), 50u);
  outbox.push(event(151, "leaf.end"));
  EXPECT_EQ(outbox.dropped(), 50u);
  EXPECT_FALSE(outbox.finish(std::chrono::steady_clock::now() + std::chrono::milliseconds(50)));
}

TEST(Outbox, ACourierThatComesLateGetsEverything) {
  const Folder folder;
  Outbox outbox("ipc://" + folder.path() + "/events.sock", "x#1");
  for (std::uint64_t i = 1; i <= 200; ++i) outbox.push(event(i));
  outbox.push(event(201, "leaf.end"));
  EXPECT_FALSE(outbox.finish(std::chrono::steady_clock::now() + std::chrono::milliseconds(20)));
  FakeCourier courier(folder.path());
  ASSERT_TRUE(outbox.finish(soon()));
  EXPECT_EQ(courier.events("x#1").size(), 201u);
}

}  // namespace
}  // namespace leafcutter::node::testing
