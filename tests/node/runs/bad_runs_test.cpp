// Every mistake with its exact message and place: data/bad_runs.txt holds documents, each followed by what must be
// said.
#include <gtest/gtest.h>

#include <set>

#include "node/runs/loader.hpp"
#include "tests/support/kept.hpp"

namespace leafcutter::node::runs {
namespace {

constexpr const char* bad_runs_file = "tests/node/runs/data/bad_runs.txt";

std::string messages_of(const std::vector<base::Error>& errors) {
  std::string out;
  for (const auto& error : errors) out += error.text() + "\n";
  return out;
}

TEST(BadRuns, EachSaysExactlyWhatIsWrongAndWhere) {
  ASSERT_GE(tests::bad_documents(bad_runs_file).size(), 30U);
  tests::expect_messages(bad_runs_file, [](const auto& one) {
    const auto result = load_run_text(one.document, "r.yaml");
    EXPECT_FALSE(result.run.has_value()) << one.name;
    EXPECT_FALSE(result.errors.empty()) << one.name;
    return messages_of(result.errors);
  });
}

TEST(BadRuns, NamesAreUniqueAndEveryCaseExpectsAPlace) {
  std::set<std::string> names;
  for (const auto& one : tests::bad_documents(bad_runs_file)) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_TRUE(one.expected.starts_with("r.yaml:")) << one.name;
  }
}

TEST(BadRuns, JsonSaysWhereItIsNone) {
  EXPECT_EQ(messages_of(load_run_text("{\n  \"schema_version\": 1,\n  \"proxies\": [,]\n}", "r.json").errors),
            "r.json:3:15: this is not JSON: syntax error while parsing value - unexpected ','; expected '[', '{', or a "
            "literal\n");
  EXPECT_EQ(
      messages_of(load_run_text("{\n\t\"schema_version\": 1,\n\t\"proxies\": [],\n\t\"phases\": {}}", "r.json").errors),
      "r.json:3:13: proxies is empty\n"
      "r.json:4:12: phases: expected a list of a mapping with name, duration and proxies, found a mapping\n");
}

TEST(BadRuns, TooLargeOrTooDeepIsRefusedWithoutReadingOn) {
  EXPECT_EQ(messages_of(load_run_text(std::string(2U << 20, '#'), "r.yaml").errors),
            "r.yaml: the document has 2097152 bytes; at most 1048576 are read\n");
  EXPECT_FALSE(load_run_text(std::string(100'000, '['), "r.yaml").run.has_value());
  EXPECT_FALSE(load_run_text(std::string(100'000, '['), "r.json").run.has_value());
  // Aliases multiply: what they stand for is counted.
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) bomb += std::string(i == 0 ? "" : ",") + "*" + static_cast<char>(c - 1);
    bomb += "]\n";
  }
  EXPECT_NE(messages_of(load_run_text(bomb, "r.yaml").errors).find("more than 200000 values"), std::string::npos);
  std::string copies = "a: &a [x";
  for (int i = 1; i < 20'000; ++i) copies += ",x";
  copies += "]\nb: [*a";
  for (int i = 1; i < 20; ++i) copies += ",*a";
  EXPECT_NE(messages_of(load_run_text(copies + "]\n", "r.yaml").errors).find("more than 200000 values"),
            std::string::npos);
}

TEST(BadRuns, AFileThatIsNotThereIsNamed) {
  const auto result = load_run_file("no/such/run.yaml");
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].code, base::ErrorCode::bad_input);
  EXPECT_EQ(result.errors[0].text(), "no/such/run.yaml: cannot read no/such/run.yaml: No such file or directory");
}

}  // namespace
}  // namespace leafcutter::node::runs
