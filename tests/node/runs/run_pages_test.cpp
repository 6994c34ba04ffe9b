// The generated pages in docs/ are what the tables say now. LEAFCUTTER_UPDATE=1 rewrites them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text.hpp"
#include "node/runs/effects.hpp"
#include "node/runs/vocabulary.hpp"
#include "tests/support/checkout.hpp"

namespace leafcutter::node::runs {
namespace {

void expect_page(const std::string& name, const std::string& generated) {
  const auto path = tests::checkout() + "/docs/" + name;
  if (std::getenv("LEAFCUTTER_UPDATE") != nullptr) {
    ASSERT_TRUE(base::write_file_atomically(path, generated).ok()) << path;
  }
  const auto stored = base::read_file(path);
  ASSERT_TRUE(stored.ok()) << stored.error().text();
  EXPECT_TRUE(*stored == generated) << path << " is old: run this test with LEAFCUTTER_UPDATE=1";
}

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
