// Every mistake with its exact message and place: data/bad_scenarios.txt holds documents, each followed by what must be
// said.
#include <gtest/gtest.h>

#include <set>

#include "scenarios/loader.hpp"
#include "tests/support/kept.hpp"

namespace leafcutter::scenarios {
namespace {

constexpr const char* data_file = "tests/scenarios/data/bad_scenarios.txt";

std::string said(const LoadResult& result) {
  std::string out;
  for (const auto& error : result.errors) out += error.text() + "\n";
  return out;
}

LoadResult load_document(const std::string& document) {
  LoadOptions options;
  options.check_programs = false;
  return load_text(document, "s.yaml", options);
}

TEST(BadScenarios, EachSaysExactlyWhatIsWrongAndWhere) {
  ASSERT_GE(tests::bad_documents(data_file).size(), 60u);
  tests::expect_messages(data_file, [](const auto& one) {
    const auto result = load_document(one.document);
    EXPECT_FALSE(result.scenario.has_value()) << one.name;
    return said(result);
  });
}

TEST(BadScenarios, NamesAreUniqueAndEveryCaseExpectsSomething) {
  std::set<std::string> names;
  for (const auto& one : tests::bad_documents(data_file)) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_NE(one.expected, "") << one.name;
  }
}

TEST(BadScenarios, MessagesComeInTheOrderOfTheirPlaces) {
  for (const auto& one : tests::bad_documents(data_file)) {
    const auto errors = load_document(one.document).errors;
    for (std::size_t i = 1; i < errors.size(); ++i)
      EXPECT_LE(std::pair(errors[i - 1].where.line, errors[i - 1].where.column),
                std::pair(errors[i].where.line, errors[i].where.column))
          << one.name;
  }
}

TEST(BadScenarios, TooLargeOrTooDeepIsRefusedWithoutReadingOn) {
  EXPECT_EQ(said(load_document(std::string(2u << 20, '#'))),
            "s.yaml: the document has 2097152 bytes; at most 1048576 are read\n");
  EXPECT_EQ(said(load_document("leafcutter: " + std::string(100, '[') + std::string(100, ']'))),
            "s.yaml:1:60: the document is nested more than 48 deep\n");
  // An alias bomb: refused at the first alias, so it is never unfolded.
  EXPECT_NE(said(load_document("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"))
                .find("s.yaml:2:8: aliases (*name) are not supported"),
            std::string::npos);
  EXPECT_FALSE(load_document(std::string(100'000, '[')).scenario.has_value());
  EXPECT_FALSE(load_document(std::string(100'000, '{')).scenario.has_value());
}

TEST(BadScenarios, AnUnknownVariantIsNamedWithTheNearestOne) {
  LoadOptions options;
  options.check_programs = false;
  options.variant = "fixd";
  const auto result = load_file(std::string(LEAFCUTTER_SOURCE_DIR) + "/tests/scenarios/data/outbox.yaml", options);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].message, "no service has a variant \"fixd\"; did you mean \"fixed\"?");
}

}  // namespace
}  // namespace leafcutter::scenarios
