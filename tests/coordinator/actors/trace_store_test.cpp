#include "coordinator/actors/trace_store.hpp"

#include <gtest/gtest.h>

#include "tests/actors/stream_peers.hpp"

using namespace leafcutter;
using namespace leafcutter::coordinator;
using tests::Folder;
using tests::some_events;

namespace {

std::string chunk(std::uint64_t first, std::uint64_t count) {
  return protocols::encode_chunk(some_events(first, count));
}

}  // namespace

TEST(TraceStore, PutsATraceTogether) {
  const Folder folder;
  TraceStore store({1u << 20, 1u << 20, folder.path()});
  store.expect("x");
  EXPECT_EQ(store.store({"x", 0, 2, false}, chunk(0, 2))->ack.next, 2u);
  EXPECT_EQ(store.store({"x", 0, 2, false}, chunk(0, 2))->ack.next, 2u) << "a duplicate";
  EXPECT_EQ(store.store({"x", 4, 2, false}, chunk(4, 2))->ack.next, 2u) << "a gap";
  EXPECT_EQ(store.store({"x", 1, 3, false}, chunk(1, 3))->ack.next, 4u) << "a tail";
  const auto end = store.store({"x", 4, 2, true}, chunk(4, 2));
  EXPECT_TRUE(end->finished);
  EXPECT_TRUE(end->ack.complete);
  const auto trace = store.take("x");
  EXPECT_EQ(trace->events, 6u);
  EXPECT_TRUE(trace->complete);
  EXPECT_EQ(*protocols::decode_chunks(trace->chunks), some_events(0, 6));
  EXPECT_EQ(store.memory(), 0u);
  EXPECT_TRUE(store.store({"x", 4, 2, true}, chunk(4, 2))->ack.complete) << "its sender did not hear the first time";
}

TEST(TraceStore, WhatNobodyExpectsIsCompleteAtOnce) {
  const Folder folder;
  TraceStore store({1u << 20, 1u << 20, folder.path()});
  const auto taken = store.store({"old", 0, 2, true}, chunk(0, 2));
  EXPECT_TRUE(taken->ack.complete);
  EXPECT_FALSE(taken->finished);
  store.expect("x");
  store.forget("x");
  EXPECT_FALSE(store.store({"x", 0, 2, true}, chunk(0, 2))->finished);
}

TEST(TraceStore, AStreamThatItsNodeClosedIsNotComplete) {
  const Folder folder;
  TraceStore store({1u << 20, 1u << 20, folder.path()});
  store.expect("x");
  ASSERT_TRUE(store.store({"x", 0, 2, false}, chunk(0, 2)).ok());
  EXPECT_TRUE(store.store({"x", 2, 0, true}, "")->finished);
  const auto trace = store.take("x");
  EXPECT_FALSE(trace->complete);
  EXPECT_EQ(protocols::decode_chunks(trace->chunks)->size(), 2u);
  store.expect("y");
  EXPECT_TRUE(store.store({"y", 0, 0, true}, "")->finished) << "a leaf that never said anything";
  EXPECT_EQ(store.take("y")->events, 0u);
}

TEST(TraceStore, GoesToDiskBeyondItsMemory) {
  const Folder folder;
  TraceStore store({4000, 1u << 20, folder.path()});
  for (const char* name : {"a", "b", "c"}) store.expect(name);
  for (std::uint64_t i = 0; i < 200; ++i) {
    for (const char* name : {"a", "b", "c"}) {
      ASSERT_TRUE(store.store({name, i, 1, i == 199}, chunk(i, 1)).ok());
      ASSERT_LE(store.memory(), 4000u);
    }
  }
  for (const char* name : {"a", "b", "c"}) {
    const auto trace = store.take(name);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(*protocols::decode_chunks(trace->chunks), some_events(0, 200)) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the files have no names";
}

TEST(TraceStore, OneTraceIsBounded) {
  const Folder folder;
  TraceStore store({1u << 20, 1000, folder.path()});
  store.expect("x");
  for (std::uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(store.store({"x", i, 1, i == 49}, chunk(i, 1)).ok());
  const auto trace = store.take("x");
  EXPECT_FALSE(trace->complete);
  EXPECT_LE(trace->chunks.size(), 1000u);
  EXPECT_TRUE(protocols::decode_chunks(trace->chunks).ok()) << "what there is can be read";
}

TEST(TraceStore, ADiskThatRefusesIsBackPressure) {
  TraceStore store({100, 1u << 20, "/nonexistent"});
  store.expect("x");
  const auto refused = store.store({"x", 0, 50, false}, chunk(0, 50));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::io);
  EXPECT_EQ(store.memory(), 0u) << "and nothing of it is kept";
}
