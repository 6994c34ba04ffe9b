#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "mutate.hpp"
#include "targets.hpp"

namespace {

using leafcutter::base::Stream;

const std::uint8_t* bytes_of(const std::string& text) { return reinterpret_cast<const std::uint8_t*>(text.data()); }

std::string printable(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    char text[8];
    std::snprintf(text, sizeof text, c >= ' ' && c <= '~' && c != '\\' ? "%c" : "\\x%02x",
                  static_cast<unsigned char>(c));
    out += text;
  }
  return out;
}

class Fuzz : public testing::TestWithParam<fuzz::Target> {};

TEST_P(Fuzz, GoodInputIsRead) {
  for (const auto& good : GetParam().corpus())
    EXPECT_EQ(GetParam().run(bytes_of(good), good.size()), 0) << printable(good);
}

/// LEAFCUTTER_FUZZ_RUNS and LEAFCUTTER_FUZZ_SEED look further. No input may take long: readers of bytes from outside
/// are bounded.
TEST_P(Fuzz, MutationsAreReadOrRefused) {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  const auto runs = number("LEAFCUTTER_FUZZ_RUNS", 3000), seed = number("LEAFCUTTER_FUZZ_SEED", 1);
  const auto corpus = GetParam().corpus();
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    Stream random(seed, GetParam().name, i);
    const auto input = fuzz::mutate(corpus, random);
    const auto begin = std::chrono::steady_clock::now();
    try {
      refused += GetParam().run(bytes_of(input), input.size()) != 0 ? 1 : 0;
    } catch (const std::exception& broken) {
      FAIL() << broken.what() << "\nseed " << seed << ", input " << i << ": " << printable(input);
    }
    ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5))
        << "input " << i << ": " << printable(input);
  }
  EXPECT_GT(refused, runs / 50) << "the mutations hardly ever do damage";
  EXPECT_LT(refused, runs) << "the mutations never leave anything readable";
}

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz, testing::ValuesIn(fuzz::targets()),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(Mutate, TheSameSeedGivesTheSameInput) {
  const std::vector<std::string> corpus = {"one two three", "four"};
  Stream a(7, "x", 3), b(7, "x", 3), c(7, "x", 4);
  const auto first = fuzz::mutate(corpus, a);
  EXPECT_EQ(first, fuzz::mutate(corpus, b));
  EXPECT_NE(first, fuzz::mutate(corpus, c));
}

}  // namespace
