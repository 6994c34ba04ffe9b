// The generated pages in docs/ are what the program would generate now.
#include <gtest/gtest.h>

#include "scenarios/event_kinds.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/schema.hpp"
#include "tests/support/kept.hpp"

namespace leafcutter::scenarios {
namespace {

using tests::expect_page;

TEST(Pages, TheReferenceIsCurrent) { expect_page("scenario-reference.md", reference_page()); }

TEST(Pages, TheSchemaIsCurrent) { expect_page("scenario.schema.json", json_schema().dump(2) + "\n"); }

TEST(Pages, TheReferenceHasEveryKeyAndEvent) {
  const auto page = reference_page();
  for (const auto& shape : shapes()) {
    EXPECT_NE(page.find("## " + shape.title + "\n"), std::string::npos) << shape.title;
    for (const auto& key : shape.keys) {
      EXPECT_NE(page.find("| `" + key.name + "` |"), std::string::npos) << key.name;
      EXPECT_FALSE(key.about.empty()) << shape.name << "." << key.name;
    }
  }
  for (const auto& kind : event_kinds())
    EXPECT_EQ(page.find("| `" + kind.name + "` | " + kind.lane) != std::string::npos, kind.selectable) << kind.name;
}

}  // namespace
}  // namespace leafcutter::scenarios
