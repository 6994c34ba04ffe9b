#include <gtest/gtest.h>

#include "base/random.hpp"
#include "coordinator/minimize/minimize.hpp"

namespace leafcutter::coordinator {
namespace {

using State = Confirmation::State;

State after(unsigned fails, unsigned passes) {
  Confirmation c;
  for (unsigned i = 0; i < fails; ++i) c.add(true);
  for (unsigned i = 0; i < passes; ++i) c.add(false);
  EXPECT_EQ(c.fails(), fails);
  EXPECT_EQ(c.runs(), fails + passes);
  return c.state();
}

TEST(Confirmation, TakesTwoFailuresOrSevenPasses) {
  EXPECT_EQ(after(0, 0), State::undecided);
  EXPECT_EQ(after(1, 0), State::undecided);
  EXPECT_EQ(after(2, 0), State::confirmed);
  EXPECT_EQ(after(0, 6), State::undecided);
  EXPECT_EQ(after(0, 7), State::rejected);
  EXPECT_EQ(after(2, 2), State::confirmed);  // 644 - 134
  EXPECT_EQ(after(2, 3), State::undecided);
  EXPECT_EQ(after(1, 11), State::undecided);
  EXPECT_EQ(after(1, 12), State::rejected);  // 322 - 804
}

// The errors it promises, estimated by running it: a plan that always fails is never rejected; one that fails in 1 of
// 50 runs is confirmed in about 1 of 100 cases.
TEST(Confirmation, ErrsAsRarelyAsItPromises) {
  base::Stream stream(11, "sprt", 0);
  const auto confirmed_of = [&](std::uint64_t percent) {
    unsigned confirmed = 0;
    for (int trial = 0; trial < 4000; ++trial) {
      Confirmation c;
      while (c.state() == State::undecided && c.runs() < 200) c.add(stream.below(100) < percent);
      confirmed += c.state() == State::confirmed;
    }
    return confirmed;
  };
  EXPECT_EQ(confirmed_of(100), 4000u);
  EXPECT_GT(confirmed_of(50), 3920u);
  EXPECT_LT(confirmed_of(2), 80u);
  EXPECT_EQ(confirmed_of(0), 0u);
}

}  // namespace
}  // namespace leafcutter::coordinator
