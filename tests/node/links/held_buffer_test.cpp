#include "node/links/held_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/random.hpp"

namespace leafcutter::node {
namespace {

std::size_t put(HeldBuffer& buffer, std::string_view bytes) {
  const auto room = buffer.room();
  const auto count = std::min(room.size(), bytes.size());
  std::copy_n(bytes.begin(), count, room.begin());
  buffer.arrived(count);
  return count;
}

TEST(HeldBuffer, LetsOutOnlyWhatIsAllowed) {
  HeldBuffer buffer(8);
  EXPECT_EQ(put(buffer, "abcdef"), 6u);
  EXPECT_EQ(buffer.leaving(), "");
  buffer.seen(4);
  EXPECT_EQ(buffer.held(), 4u);
  EXPECT_EQ(buffer.unseen(), "ef");
  buffer.allow();
  EXPECT_EQ(buffer.leaving(), "abcd");
  buffer.left(3);
  EXPECT_EQ(buffer.total(), 3u);
  EXPECT_EQ(buffer.total_when_seen_left(), 4u);
  EXPECT_EQ(put(buffer, "ghijklm"), 2u);
  EXPECT_EQ(put(buffer, "ijklm"), 3u);
  EXPECT_TRUE(buffer.full());
  EXPECT_EQ(buffer.leaving(), "d");
  EXPECT_EQ(buffer.unseen(), "efghijk");
}

TEST(HeldBuffer, WithdrawsWhatIsHeldAndNothingElse) {
  HeldBuffer buffer(16);
  put(buffer, "abcdefgh");
  buffer.seen(2);
  buffer.allow();
  buffer.seen(3);
  buffer.drop_held();
  EXPECT_EQ(buffer.leaving(), "ab");
  EXPECT_EQ(buffer.unseen(), "fgh");
  buffer.allow_everything();
  EXPECT_EQ(buffer.leaving(), "abfgh");
}

TEST(HeldBuffer, KeepsTheOrderOfBytesThroughAnySequenceOfSteps) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    base::Stream draws(seed, "steps", 0);
    HeldBuffer buffer(32);
    std::string in, out;
    unsigned char next = 0;
    for (int step = 0; step < 300; ++step) {
      std::string bytes(draws.below(20), '\0');
      for (auto& byte : bytes) byte = static_cast<char>(next++);
      const auto taken = put(buffer, bytes);
      next = static_cast<unsigned char>(next - (bytes.size() - taken));
      in += bytes.substr(0, taken);
      buffer.seen(draws.below(buffer.unseen().size() + 1));
      if (draws.below(2) == 0) buffer.allow();
      const auto leaving = buffer.leaving().substr(0, draws.below(buffer.leaving().size() + 1));
      out += leaving;
      buffer.left(leaving.size());
      ASSERT_LE(buffer.size(), 32u);
      ASSERT_EQ(buffer.total(), out.size());
    }
    buffer.allow_everything();
    out += buffer.leaving();
    ASSERT_EQ(out, in) << "seed " << seed;
  }
}

}  // namespace
}  // namespace leafcutter::node
