// The generated pages in docs/ are what the tables say now.
#include <gtest/gtest.h>

#include "node/runs/effects.hpp"
#include "node/runs/vocabulary.hpp"
#include "tests/support/kept.hpp"

namespace leafcutter::node::runs {
namespace {

using tests::expect_page;

TEST(RunPages, TheReferenceIsCurrent) { expect_page("run-reference.md", run_reference_page()); }

TEST(RunPages, TheSchemaIsCurrent) { expect_page("run.schema.json", run_json_schema().dump(2) + "\n"); }

TEST(RunPages, TheReferenceHasEveryKeyAndKind) {
  const auto page = run_reference_page();
  for (const auto& shape : run_vocabulary(2).shapes) {
    EXPECT_NE(page.find("## " + shape.title + "\n"), std::string::npos) << shape.title;
    for (const auto& key : shape.keys) {
      EXPECT_NE(page.find("| `" + key.name + "` |"), std::string::npos) << key.name;
      EXPECT_FALSE(key.about.empty()) << shape.name << "." << key.name;
    }
  }
  for (const auto& kind : effect_kinds())
    EXPECT_NE(page.find("\n| `" + kind.name + "` |"), std::string::npos) << kind.name;
}

}  // namespace
}  // namespace leafcutter::node::runs
