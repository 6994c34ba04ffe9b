#include "node/proxy/draws.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace leafcutter::node::proxy {
namespace {

using namespace std::chrono_literals;

DrawKey key(std::uint64_t seed = 1, std::uint64_t connection = 1, std::string_view fault = "f") {
  return {seed, "link", connection, Direction::to_upstream, fault};
}

std::vector<Duration> drawn(const Distribution& distribution, int count, DrawKey from = key()) {
  Draws draws(from, "value");
  std::vector<Duration> all;
  for (int i = 0; i < count; ++i) all.push_back(draws.duration(distribution));
  return all;
}

double mean_ms(const std::vector<Duration>& all) {
  double sum = 0;
  for (const auto one : all) sum += std::chrono::duration<double, std::milli>(one).count();
  return sum / static_cast<double>(all.size());
}

TEST(Draws, FixedIsWhatItSays) {
  for (const auto one : drawn(FixedTime{7ms}, 10)) EXPECT_EQ(one, 7ms);
}

TEST(Draws, UniformStaysWithinItsEndsAndReachesThem) {
  Duration least = 1h, most{0};
  for (const auto one : drawn(UniformTime{3ns, 5ns}, 1000)) {
    least = std::min(least, one);
    most = std::max(most, one);
  }
  EXPECT_EQ(least, 3ns);
  EXPECT_EQ(most, 5ns);
  EXPECT_NEAR(mean_ms(drawn(UniformTime{10ms, 20ms}, 20'000)), 15, 0.1);
}

TEST(Draws, NormalIsTruncatedAtZeroByDrawingAgain) {
  // Mean 0: what is left is the half-normal distribution, whose mean is deviation * sqrt(2/pi). Clamping would give
  // half.
  const auto half = drawn(NormalTime{0ms, 10ms}, 20'000);
  for (const auto one : half) ASSERT_GE(one.count(), 0);
  EXPECT_NEAR(mean_ms(half), 10 * std::sqrt(2 / M_PI), 0.2);
  EXPECT_NEAR(mean_ms(drawn(NormalTime{100ms, 5ms}, 20'000)), 100, 0.2);
  for (const auto one : drawn(NormalTime{4ms, 0ms}, 5)) EXPECT_EQ(one, 4ms);
}

TEST(Draws, ParetoBeginsAtItsScaleAndHasItsMean) {
  const auto all = drawn(ParetoTime{3, 10ms}, 50'000);
  for (const auto one : all) ASSERT_GE(one, 10ms);
  EXPECT_NEAR(mean_ms(all), 15, 0.3);  // shape * scale / (shape - 1)
  EXPECT_NEAR(mean_ms(drawn(ParetoNormalTime{{3, 10ms}, {100ms, 1ms}}, 50'000)), 115, 0.5);
}

TEST(Draws, AnEndlessTailIsCutAndNeverNegative) {
  for (const auto one : drawn(ParetoTime{0.01, 1h}, 2000)) {
    ASSERT_GE(one, 1h - 1us);
    ASSERT_LE(one, longest_fault_time);
  }
}

TEST(Draws, AreAFunctionOfTheKeyAlone) {
  const Distribution distribution = UniformTime{0ms, 1h};
  const auto first = drawn(distribution, 20);
  EXPECT_EQ(first, drawn(distribution, 20));
  EXPECT_NE(first, drawn(distribution, 20, key(2)));
  EXPECT_NE(first, drawn(distribution, 20, key(1, 2)));
  EXPECT_NE(first, drawn(distribution, 20, key(1, 1, "g")));
  auto other = key();
  other.direction = Direction::to_client;
  EXPECT_NE(first, drawn(distribution, 20, other));
  other = key();
  other.link = "another";
  EXPECT_NE(first, drawn(distribution, 20, other));
}

TEST(Draws, ProbabilityHasItsRateAndItsEndsAreCertain) {
  Draws draws(key(), "select");
  int hits = 0;
  for (int i = 0; i < 20'000; ++i) hits += draws.happens(0.3);
  EXPECT_NEAR(hits, 6000, 200);
  Draws fresh(key(), "select"), same(key(), "select");
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(fresh.happens(0));
    EXPECT_TRUE(fresh.happens(1));
  }
  EXPECT_EQ(fresh.raw(), same.raw()) << "certain outcomes draw nothing";
}

}  // namespace
}  // namespace leafcutter::node::proxy
