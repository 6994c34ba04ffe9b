#include "base/random.hpp"

#include <gtest/gtest.h>

#include <set>

namespace leafcutter::base {
namespace {

// Known answers of Random123 (philox 4x32 10).
TEST(Philox, AnswersAsRandom123Does) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr auto ones = 0xffffffffu;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(SplitMix, AnswersAsPublished) {
  EXPECT_EQ(split_mix(1234567), 6457827717110365317u);
  EXPECT_EQ(split_mix(1234567 + 0x9E3779B97F4A7C15), 3203168211198807973u);
}

TEST(Fnv1a, AnswersAsPublished) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
}

TEST(Stream, DependsOnKeyNameAndLeafAlone) {
  Stream a(1, "faults", 7), same(1, "faults", 7), other_key(2, "faults", 7), other_name(1, "order", 7),
      other_leaf(1, "faults", 8);
  const auto first = a.next();
  EXPECT_EQ(first, same.next());
  EXPECT_NE(first, other_key.next());
  EXPECT_NE(first, other_name.next());
  EXPECT_NE(first, other_leaf.next());
}

TEST(Stream, StaysBelowItsBoundAndReachesEveryValue) {
  Stream stream(42, "bound", 0);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto value = stream.below(7);
    ASSERT_LT(value, 7u);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 7u);
}

}  // namespace
}  // namespace leafcutter::base
