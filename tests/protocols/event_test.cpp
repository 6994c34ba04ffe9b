#include "protocols/event.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <limits>
#include <random>

using namespace leafcutter::protocols;
using namespace std::chrono_literals;
using leafcutter::base::ErrorCode;
using testing::HasSubstr;

namespace {

/// Values of every type, nested; the generator is seeded, so a failure comes again.
Value random_value(std::mt19937_64& rng, int depth) {
  switch (rng() % (depth > 0 ? 9 : 7)) {
    case 0: return nullptr;
    case 1: return rng() % 2 == 0;
    case 2: return rng() >> (rng() % 64);
    case 3: return -static_cast<std::int64_t>(rng() >> (1 + rng() % 63));
    case 4: return static_cast<double>(static_cast<std::int64_t>(rng())) / 1024.0;
    case 5: return std::string(rng() % 40, static_cast<char>('a' + rng() % 26));
    case 6: return Value::binary(std::vector<std::uint8_t>(rng() % 20, static_cast<std::uint8_t>(rng())));
    case 7: {
      Value array = Value::array();
      for (auto n = rng() % 5; n > 0; --n) array.push_back(random_value(rng, depth - 1));
      return array;
    }
    default: {
      Value object = Value::object();
      for (auto n = rng() % 5; n > 0; --n) object["k" + std::to_string(rng() % 100)] = random_value(rng, depth - 1);
      return object;
    }
  }
}

Event random_event(std::mt19937_64& rng, std::uint64_t seq) {
  Event event;
  event.lane = rng() % 2 ? "shop" : "shop -> broker";
  event.seq = seq;
  event.clock = {{event.lane, seq}, {"workload", rng() % 1000}};
  event.at = std::chrono::nanoseconds(rng() >> 1);
  event.kind = "request";
  event.attrs["body"] = random_value(rng, 3);
  if (rng() % 4 == 0) event.unknown = {{"colour", random_value(rng, 2)}};
  return event;
}

std::vector<Event> random_events(std::mt19937_64& rng, std::size_t count) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < count; ++i) events.push_back(random_event(rng, i + 1));
  return events;
}

std::string frame(std::string_view raw) {
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), 3));
  return out;
}

Value event_map() {
  return {{"v", 1},        {"lane", "shop"},          {"seq", 1}, {"clock", {{"shop", 1}}}, {"at", 5},
          {"kind", "log"}, {"attrs", Value::object()}};
}

}  // namespace

TEST(Value, SurvivesARoundTripWhateverItsType) {
  std::mt19937_64 rng(7);
  for (int round = 0; round < 2000; ++round) {
    const auto value = random_value(rng, 5);
    const auto back = unpack(pack(value));
    ASSERT_TRUE(back.ok()) << "round " << round << ": " << back.error().message;
    ASSERT_EQ(*back, value) << "round " << round;
  }
}

TEST(Value, KeepsTheExtremesOfNumbers) {
  const Value value = {std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::int64_t>::min(), -1, 0,
                       1e300};
  EXPECT_EQ(*unpack(pack(value)), value);
}

TEST(Value, IsPackedTheSameWhateverOrderItsKeysCameIn) {
  Value one, other;
  one["a"] = 1, one["b"] = 2;
  other["b"] = 2, other["a"] = 1;
  EXPECT_EQ(pack(one), pack(other));
}

TEST(Value, AnAnnouncedSizeAllocatesNothing) {
  for (const std::string& bytes : {std::string("\xdd\xff\xff\xff\xff", 5), std::string("\xdf\xff\xff\xff\xff", 5),
                                   std::string("\xdb\xff\xff\xff\xff", 5), std::string("\xc6\xff\xff\xff\xff", 5)}) {
    const auto value = unpack(bytes);
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.error().code, ErrorCode::protocol);
  }
}

TEST(Value, DeepNestingIsRefusedAndShallowIsNot) {
  const auto deepest = unpack(std::string(64, '\x91') + '\x01');
  EXPECT_TRUE(deepest.ok()) << deepest.error().message;
  const auto deeper = unpack(std::string(65, '\x91') + '\x01');
  ASSERT_FALSE(deeper.ok());
  EXPECT_THAT(deeper.error().message, HasSubstr("nested too deeply"));
}

TEST(Value, WhatIsNotOursIsRefused) {
  EXPECT_THAT(unpack("\xd4\x01\x02").error().message, HasSubstr("extension"));
  EXPECT_THAT(unpack("\x81\x01\x02").error().message, HasSubstr("key that is not text"));
  EXPECT_THAT(unpack(std::string("\x82\xa1k\x01\xa1k\x02")).error().message, HasSubstr("twice"));
  EXPECT_THAT(unpack("\x01\x02").error().message, HasSubstr("follow"));
  EXPECT_FALSE(unpack("").ok());
  EXPECT_FALSE(unpack("\xc1").ok());
}

TEST(Chunk, SurvivesARoundTripAndSoDoesAConcatenation) {
  std::mt19937_64 rng(11);
  for (std::size_t count : {0u, 1u, 2u, 50u, 500u}) {
    const auto first = random_events(rng, count);
    const auto second = random_events(rng, 3);
    auto both = first;
    both.insert(both.end(), second.begin(), second.end());
    EXPECT_EQ(*decode_chunks(encode_chunk(first)), first);
    EXPECT_EQ(*decode_chunks(encode_chunk(first) + encode_chunk(second)), both);
  }
}

TEST(Chunk, NoBytesAreNoEvents) { EXPECT_TRUE(decode_chunks("")->empty()); }

TEST(Chunk, FieldsOfANewerSchemaSurvive) {
  auto map = event_map();
  map["v"] = 3;
  map["span"] = {{"id", "x"}, {"parents", {1, 2}}};
  auto events = decode_chunks(frame(pack(map)));
  ASSERT_TRUE(events.ok()) << events.error().message;
  EXPECT_EQ(events->at(0).unknown["span"]["id"], "x");
  const auto again = decode_chunks(encode_chunk(*events));
  EXPECT_EQ(*again, *events);
  EXPECT_EQ(again->at(0).unknown["v"], 3);
  EXPECT_EQ(again->at(0).kind, "log");
}

TEST(Chunk, OfOurOwnSchemaHasNothingUnknown) {
  EXPECT_TRUE(decode_chunks(frame(pack(event_map())))->at(0).unknown.empty());
}

TEST(Chunk, EveryFieldIsRequiredAndTyped) {
  const auto whole = event_map();
  for (const auto& [name, value] : whole.items()) {
    auto missing = event_map();
    missing.erase(name);
    const auto without = decode_chunks(frame(pack(missing)));
    ASSERT_FALSE(without.ok()) << name;
    EXPECT_THAT(without.error().message, HasSubstr("`" + name + "`"));
    auto wrong = event_map();
    wrong[name] = Value::array();
    const auto mistyped = decode_chunks(frame(pack(wrong)));
    ASSERT_FALSE(mistyped.ok()) << name;
    EXPECT_THAT(mistyped.error().message, HasSubstr("`" + name + "`"));
  }
  auto negative = event_map();
  negative["seq"] = -1;
  EXPECT_FALSE(decode_chunks(frame(pack(negative))).ok());
  auto clock = event_map();
  clock["clock"]["shop"] = "one";
  EXPECT_THAT(decode_chunks(frame(pack(clock))).error().message, HasSubstr("clock.shop"));
}

TEST(Chunk, EveryTruncationIsAnErrorNeverFewerEvents) {
  std::mt19937_64 rng(13);
  const auto whole = encode_chunk(random_events(rng, 20));
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto decoded = decode_chunks(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(decoded.ok()) << size << " of " << whole.size() << " bytes";
    ASSERT_EQ(decoded.error().code, ErrorCode::protocol);
  }
}

TEST(Chunk, NoMutationPassesUnseen) {
  std::mt19937_64 rng(17);
  const auto events = random_events(rng, 20);
  const auto whole = encode_chunk(events);
  for (int round = 0; round < 5000; ++round) {
    auto bytes = whole;
    bytes[rng() % bytes.size()] ^= static_cast<char>(1 + rng() % 255);
    const auto decoded = decode_chunks(bytes);
    // The frame's checksum covers the content; a header bit without meaning may change nothing.
    if (decoded.ok()) {
      ASSERT_EQ(*decoded, events) << "round " << round;
    }
  }
}

TEST(Chunk, MutatedMsgpackNeverDoesHarm) {
  std::mt19937_64 rng(19);
  std::string raw;
  for (int i = 0; i < 5; ++i) raw += pack(event_map());
  std::size_t refused = 0;
  for (int round = 0; round < 5000; ++round) {
    auto bytes = raw;
    for (auto n = 1 + rng() % 4; n > 0; --n) bytes[rng() % bytes.size()] = static_cast<char>(rng());
    if (!decode_chunks(frame(bytes)).ok()) ++refused;
  }
  EXPECT_GT(refused, 1000u);
}

TEST(Chunk, RandomBytesAreNotAChunk) {
  std::mt19937_64 rng(23);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(1 + rng() % 200, '\0');
    for (auto& c : bytes) c = static_cast<char>(rng());
    ASSERT_FALSE(decode_chunks(bytes).ok());
    (void)unpack(bytes);
  }
}

TEST(Chunk, AFrameThatExpandsTooFarIsRefusedUnread) {
  const auto bomb = frame(std::string(17u << 20, '\xc0'));
  ASSERT_LT(bomb.size(), 4096u);
  const auto decoded = decode_chunks(bomb);
  ASSERT_FALSE(decoded.ok());
  EXPECT_THAT(decoded.error().message, HasSubstr("at most 16777216"));
}

TEST(Chunk, TooManyEventsAreRefused) {
  std::mt19937_64 rng(29);
  const auto chunk = encode_chunk(random_events(rng, 11));
  EXPECT_TRUE(decode_chunks(chunk, {16u << 20, 11}).ok());
  EXPECT_THAT(decode_chunks(chunk, {16u << 20, 10}).error().message, HasSubstr("more than 10 events"));
}

TEST(Chunk, ALargeOneIsSplitSoThatDefaultLimitsReadIt) {
  std::vector<Event> events(40);
  std::mt19937_64 rng(31);
  for (std::size_t i = 0; i < events.size(); ++i) {
    events[i].lane = "shop";
    events[i].seq = i + 1;
    events[i].kind = "log";
    events[i].attrs["line"] = std::string(1u << 20, static_cast<char>('a' + i % 26));
  }
  const auto decoded = decode_chunks(encode_chunk(events));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(*decoded, events);
}
