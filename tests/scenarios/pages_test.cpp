// The generated pages in docs/ are what the program would generate now. LEAFCUTTER_UPDATE=1 rewrites them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/loader.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::scenarios {
namespace {

void expect_current(const std::string& name, const std::string& generated) {
  const auto path = std::string(LEAFCUTTER_SOURCE_DIR) + "/docs/" + name;
  if (std::getenv("LEAFCUTTER_UPDATE") != nullptr) {
    ASSERT_TRUE(base::write_file_atomically(path, generated).ok()) << path;
  }
  const auto stored = base::read_file(path);
  ASSERT_TRUE(stored.ok()) << stored.error().text();
  EXPECT_TRUE(*stored == generated)
      << path << " is not what the table of keys says now; run this test with LEAFCUTTER_UPDATE=1";
}

TEST(Pages, TheReferenceIsCurrent) { expect_current("scenario-reference.md", reference_page()); }

TEST(Pages, TheSchemaIsCurrent) { expect_current("scenario.schema.json", json_schema().dump(2) + "\n"); }

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
