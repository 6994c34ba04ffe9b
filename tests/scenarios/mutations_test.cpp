// Whatever happens to a good document: loading it ends, with a scenario or with mistakes that have a place in it.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "base/text.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::scenarios {
namespace {

std::string mutated(std::string text, const std::string& other, base::Stream& random) {
  const auto changes = 1 + random.below(4);
  for (std::uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const auto at = random.below(text.size());
    const auto size = 1 + random.below(20);
    switch (random.below(7)) {
      case 0: text[at] = static_cast<char>(random.below(256)); break;
      case 1: text.erase(at, size); break;
      case 2: text.insert(at, text.substr(random.below(text.size()), size)); break;
      case 3: text.insert(at, other.substr(random.below(other.size()), size)); break;
      case 4: text.insert(at, 1, "[]{}:,#&*!|>'\"%@`-? \n\t$\\"[random.below(24)]); break;
      case 5: {  // a whole line elsewhere
        const auto from = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at);
        const auto line = text.substr(from, std::min(text.find('\n', from + 1), text.size()) - from);
        text.erase(from, line.size());
        text.insert(random.below(text.size() + 1), line);
        break;
      }
      default: {  // a token replaced by another kind of value
        const char* values[] = {"~",   "[]",  "{}",    "-1",       "99999999999999999999", "\"\"", "${", "1e999",
                                "2xx", "/(/", "0..-1", "[[[[]]]]", "{ a: { b: c } }"};
        text.replace(at, std::min<std::size_t>(size, text.size() - at), values[random.below(13)]);
      }
    }
  }
  return text;
}

TEST(Mutations, OfGoodDocumentsNeverCrashTheLoader) {
  const auto folder = std::string(LEAFCUTTER_SOURCE_DIR) + "/tests/scenarios/data/";
  const std::string documents[] = {*base::read_file(folder + "outbox.yaml"),
                                   *base::read_file(folder + "everything.yaml")};
  LoadOptions options;
  options.check_programs = false;
  std::size_t accepted = 0;
  std::size_t refused = 0;
  constexpr std::uint64_t runs = 1500;
  for (std::uint64_t run = 0; run < runs; ++run) {
    base::Stream random(7, "mutations", run);
    const auto text = mutated(documents[run % 2], documents[(run + 1) % 2], random);
    options.variant = run % 5 == 0 ? "fixed" : "";
    const auto result = load_text(text, "s.yaml", options);
    ASSERT_NE(result.scenario.has_value(), !result.errors.empty()) << run << "\n" << text;
    const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 2;
    for (const auto& error : result.errors) {
      ASSERT_EQ(error.code, base::ErrorCode::bad_input) << run << ": " << error.text();
      ASSERT_FALSE(error.message.empty());
      ASSERT_LE(error.where.line, lines) << run << ": " << error.text();
    }
    ++(result.scenario ? accepted : refused);
  }
  // Both sides are exercised: a loader that refuses all, or none, would pass the rest.
  EXPECT_GT(accepted, runs / 50);
  EXPECT_GT(refused, runs / 4);
}

}  // namespace
}  // namespace leafcutter::scenarios
