#include "node/actors/forward_queue.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/actors/stream_peers.hpp"

using namespace leafcutter;
using namespace leafcutter::node;
using namespace std::chrono_literals;
using protocols::Ack;
using protocols::BatchHeader;
using tests::Folder;
using tests::some_events;

namespace {

const ForwardQueue::Instant start{std::chrono::hours(1)};

ForwardQueue::Options options(const Folder& folder) {
  ForwardQueue::Options out;
  out.folder = folder.path();
  return out;
}

std::string chunk(std::uint64_t first, std::uint64_t count) {
  return protocols::encode_chunk(some_events(first, count));
}

/// Everything that may go out now, as headers.
std::vector<BatchHeader> drain(ForwardQueue& queue, ForwardQueue::Instant now) {
  std::vector<BatchHeader> out;
  while (const auto batch = queue.next()) {
    out.push_back(*protocols::decode_batch_header(batch->header));
    queue.sent(now);
  }
  return out;
}

}  // namespace

TEST(ForwardQueue, SendsWhatIsStoredAndForgetsWhatIsComplete) {
  const Folder folder;
  ForwardQueue queue(options(folder));
  EXPECT_EQ(queue.store({"x", 0, 2, false}, chunk(0, 2))->ack.next, 2u);
  EXPECT_TRUE(queue.store({"x", 2, 1, true}, chunk(2, 1))->ack.complete);
  const auto out = drain(queue, start);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_TRUE(out[1].last);
  queue.acknowledged({"x", 2, false}, start);
  EXPECT_EQ(queue.executions(), 1u) << "the file stays whole until all of it is acknowledged";
  queue.acknowledged({"x", 3, true}, start);
  EXPECT_EQ(queue.executions(), 0u);
  EXPECT_EQ(queue.close("x"), 3u) << "its slot may ask later than the coordinator has everything";
  EXPECT_EQ(queue.spooled_bytes(), 0u);
  EXPECT_TRUE(spool_files(folder.path()).empty());
}

TEST(ForwardQueue, GoesBackAfterASilence) {
  const Folder folder;
  ForwardQueue queue(options(folder));
  ASSERT_TRUE(queue.store({"x", 0, 2, false}, chunk(0, 2)).ok());
  ASSERT_TRUE(queue.store({"x", 2, 2, false}, chunk(2, 2)).ok());
  EXPECT_EQ(drain(queue, start).size(), 2u);
  queue.acknowledged({"x", 2, false}, start + 100ms);
  queue.tick(start + 599ms);
  EXPECT_TRUE(queue.in_flight());
  EXPECT_TRUE(drain(queue, start + 599ms).empty());
  queue.tick(start + 600ms);
  const auto again = drain(queue, start + 600ms);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].base, 2u) << "only what is not acknowledged";
}

TEST(ForwardQueue, StartsAgainForAReceiverThatForgotEverything) {
  const Folder folder;
  ForwardQueue queue(options(folder));
  ASSERT_TRUE(queue.store({"x", 0, 2, false}, chunk(0, 2)).ok());
  ASSERT_TRUE(queue.store({"x", 2, 2, false}, chunk(2, 2)).ok());
  drain(queue, start);
  queue.acknowledged({"x", 4, false}, start);
  queue.acknowledged({"x", 0, false}, start + 1ms);
  const auto again = drain(queue, start + 1ms);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].base, 0u);
  queue.acknowledged({"x", 0, false}, start + 2ms);
  EXPECT_TRUE(drain(queue, start + 2ms).empty()) << "the same word again is no reason to send again";
}

TEST(ForwardQueue, AClosedStreamEndsWithAnEmptyLastBatch) {
  const Folder folder;
  ForwardQueue queue(options(folder));
  ASSERT_TRUE(queue.store({"x", 0, 2, false}, chunk(0, 2)).ok());
  EXPECT_EQ(queue.close("x"), 2u);
  EXPECT_EQ(queue.close("x"), 2u);
  EXPECT_EQ(queue.close("unheard of"), 0u);
  const auto out = drain(queue, start);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].count, 0u);
  EXPECT_TRUE(out[1].last);
  queue.acknowledged({"x", 2, false}, start);
  EXPECT_EQ(queue.executions(), 1u) << "the end is not there before the receiver says so";
  queue.tick(start + 1s);
  EXPECT_EQ(drain(queue, start + 1s).size(), 1u);
}

TEST(ForwardQueue, DropsDuplicatesKeepsTailsAndAsksForGaps) {
  const Folder folder;
  ForwardQueue queue(options(folder));
  ASSERT_TRUE(queue.store({"x", 0, 4, false}, chunk(0, 4)).ok());
  EXPECT_FALSE(queue.store({"x", 0, 4, false}, chunk(0, 4))->news);
  const auto gap = queue.store({"x", 5, 1, false}, chunk(5, 1));
  EXPECT_FALSE(gap->news);
  EXPECT_EQ(gap->ack.next, 4u);
  EXPECT_EQ(queue.store({"x", 2, 4, false}, chunk(2, 4))->ack.next, 6u);
  std::vector<protocols::Event> events;
  while (const auto batch = queue.next()) {
    const auto decoded = protocols::decode_chunks(batch->chunk);
    events.insert(events.end(), decoded->begin(), decoded->end());
    queue.sent(start);
  }
  EXPECT_EQ(events, some_events(0, 6));
}

TEST(ForwardQueue, TheEndMayComeWithEventsThatAreThere) {
  const Folder folder;
  ForwardQueue queue(options(folder));
  ASSERT_TRUE(queue.store({"x", 0, 4, false}, chunk(0, 4)).ok());
  const auto end = queue.store({"x", 2, 2, true}, chunk(2, 2));
  EXPECT_TRUE(end->ack.complete);
  EXPECT_TRUE(drain(queue, start).back().last);
}

TEST(ForwardQueue, ADiscardedExecutionIsNotTakenUpAgain) {
  const Folder folder;
  ForwardQueue queue(options(folder));
  ASSERT_TRUE(queue.store({"x", 0, 1, false}, chunk(0, 1)).ok());
  queue.discard("x");
  EXPECT_EQ(queue.executions(), 0u);
  const auto late = queue.store({"x", 0, 1, false}, chunk(0, 1));
  EXPECT_TRUE(late->ack.complete) << "so that its leaf stops sending";
  EXPECT_EQ(queue.executions(), 0u);
}

TEST(ForwardQueue, KeepsToItsWindow) {
  const Folder folder;
  auto bounded = options(folder);
  bounded.window_batches = 3;
  ForwardQueue queue(bounded);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(queue.store({"x", i, 1, false}, chunk(i, 1)).ok());
  EXPECT_EQ(drain(queue, start).size(), 3u);
  queue.acknowledged({"x", 2, false}, start);
  EXPECT_EQ(drain(queue, start).size(), 2u);
}

TEST(ForwardQueue, ServesExecutionsInTurn) {
  const Folder folder;
  ForwardQueue queue(options(folder));
  for (std::uint64_t i = 0; i < 3; ++i) {
    for (const char* name : {"a", "b"}) ASSERT_TRUE(queue.store({name, i, 1, false}, chunk(i, 1)).ok());
  }
  std::string order;
  for (const auto& header : drain(queue, start)) order += header.execution;
  EXPECT_EQ(order, "ababab");
}

TEST(ForwardQueue, TakesUpWhatADeadProcessLeft) {
  const Folder folder;
  {
    ForwardQueue queue(options(folder));
    ASSERT_TRUE(queue.store({"whole", 0, 2, true}, chunk(0, 2)).ok());
    ASSERT_TRUE(queue.store({"cut", 0, 2, false}, chunk(0, 2)).ok());
    drain(queue, start);
    queue.acknowledged({"cut", 2, false}, start);
  }
  ForwardQueue queue(options(folder));
  ASSERT_TRUE(queue.recover().ok());
  EXPECT_EQ(queue.executions(), 2u);
  const auto out = drain(queue, start);
  ASSERT_EQ(out.size(), 3u) << "all of both, and an end for the one whose leaf died with the process";
  EXPECT_TRUE(queue.store({"cut", 2, 1, true}, chunk(2, 1))->ack.complete) << "that leaf cannot be alive";
  queue.acknowledged({"cut", 2, true}, start);
  queue.acknowledged({"whole", 2, true}, start);
  EXPECT_TRUE(spool_files(folder.path()).empty());
}

TEST(ForwardQueue, DeliversEverythingOverAChannelThatLosesAndAReceiverThatForgets) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 rng(seed);
    const Folder folder;
    ForwardQueue queue(options(folder));
    for (std::uint64_t i = 0; i < 20; ++i) {
      for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(queue.store({name, i, 1, i == 19}, chunk(i, 1)).ok());
    }
    std::map<std::string, std::uint64_t> received, finished;
    auto now = start;
    for (int round = 0; round < 20000 && queue.executions() > 0; ++round) {
      now += std::chrono::milliseconds(rng() % 50);
      queue.tick(now);
      if (rng() % 200 == 0) received.clear();  // restarted
      const auto batch = queue.next();
      if (!batch) continue;
      queue.sent(now);
      if (rng() % 5 == 0) continue;  // lost on the way there
      const auto header = *protocols::decode_batch_header(batch->header);
      Ack ack{header.execution, 0, false};
      if (finished.contains(header.execution)) {
        ack.complete = true;
      } else {
        auto& next = received[header.execution];
        if (header.base == next) next = header.base + header.count;
        ack.next = next;
        if (header.last && next == 20) ack.complete = true, ++finished[header.execution];
      }
      if (rng() % 5 != 0) queue.acknowledged(ack, now);  // or lost on the way back
    }
    ASSERT_EQ(queue.executions(), 0u) << "seed " << seed;
    ASSERT_EQ(finished.size(), 3u) << "seed " << seed;
  }
}
