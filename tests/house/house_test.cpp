#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules.hpp"
#include "tests/support/folder.hpp"

namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

/// A tree with one file in it, gone at the end.
class Planted {
 public:
  Planted(const std::string& file, const std::string& text) { add(file, text); }

  void add(const std::string& file, const std::string& text) { folder_.write(file, text); }

  /// "rule@line" of every breach.
  std::vector<std::string> breaches() const {
    std::vector<std::string> found;
    for (const auto& breach : house::inspect(folder_.path()))
      found.push_back(breach.rule + "@" + std::to_string(breach.line));
    return found;
  }

 private:
  leafcutter::tests::Folder folder_;
};

std::vector<std::string> breaches_of(const std::string& file, const std::string& text) {
  return Planted(file, text).breaches();
}

// Spelt in two parts, so that this file does not break the rules it tests.
const std::string hash_include = std::string("#inc") + "lude ";
const std::string nap = std::string("sleep") + "_for(";

TEST(House, EveryRuleHoldsInTheWholeTree) {
  std::string found;
  for (const auto& breach : house::inspect(LEAFCUTTER_SOURCE_DIR))
    found += breach.file + ":" + std::to_string(breach.line) + ": " + breach.rule + ": " + breach.text + "\n";
  EXPECT_EQ(found, "");
}

TEST(House, TheTreeIsLookedAtAtAll) {
  const fs::path root = LEAFCUTTER_SOURCE_DIR;
  for (const auto* file :
       {"base/error.hpp", "scenarios/model.hpp", "node/leaf/launcher.hpp", "coordinator/judge/judge.hpp"})
    EXPECT_TRUE(fs::exists(root / file)) << file;
}

TEST(Floors, AnIncludeNeverPointsUp) {
  const std::vector<std::string> rooms = {"base",   "http", "protocols",   "config",  "scenarios",
                                          "actors", "node", "coordinator", "commands"};
  // allowed[i][j]: rooms[i] may include rooms[j]
  const std::vector<std::string> allowed = {"1........", "11.......", "1.1......", "1..1.....", "1.111....",
                                            "1.1111...", "1111111..", "111111.1.", "111111111"};
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    for (std::size_t j = 0; j < rooms.size(); ++j) {
      const auto found =
          breaches_of(rooms[i] + "/deep/a.cpp", "// About.\n" + hash_include + "\"" + rooms[j] + "/b.hpp\"\n");
      if (allowed[i][j] == '1')
        EXPECT_THAT(found, IsEmpty()) << rooms[i] << " includes " << rooms[j];
      else
        EXPECT_THAT(found, ElementsAre("floors@2")) << rooms[i] << " includes " << rooms[j];
    }
  }
}

TEST(Floors, AngleBracketsDoNotHideARoom) {
  EXPECT_THAT(breaches_of("node/a.cpp", hash_include + "<coordinator/finding.hpp>\n"), ElementsAre("floors@1"));
  EXPECT_THAT(breaches_of("node/a.cpp", hash_include + "<actors/messages.hpp>\n" + hash_include + "<vector>\n"),
              IsEmpty());
}

TEST(Floors, ARelativeIncludeCouldPointAnywhere) {
  EXPECT_THAT(breaches_of("node/links/a.cpp", hash_include + "\"../../coordinator/finding.hpp\"\n"),
              ElementsAre("floors@1"));
  EXPECT_THAT(breaches_of("node/links/a.cpp", hash_include + "\"proxy.hpp\"\n"), ElementsAre("floors@1"));
}

TEST(Floors, AnExampleKnowsNoRoom) {
  EXPECT_THAT(breaches_of("scenarios/library/x/a.cpp", hash_include + "\"base/error.hpp\"\n"), ElementsAre("floors@1"));
  EXPECT_THAT(breaches_of("scenarios/library/x/a.cpp", hash_include + "\"../common/http.hpp\"\n"), IsEmpty());
}

TEST(NarrowIncludes, AllOfCafIsTooMuch) {
  EXPECT_THAT(breaches_of("actors/a.cpp", hash_include + "<caf/all.hpp>\n" + hash_include + "<caf/io/all.hpp>\n"),
              ElementsAre("narrow includes@1", "narrow includes@2"));
  EXPECT_THAT(breaches_of("tests/actors/a.cpp", hash_include + "<caf/all.hpp>\n"), ElementsAre("narrow includes@1"));
  EXPECT_THAT(breaches_of("actors/a.cpp", hash_include + "<caf/actor_system.hpp>\n"), IsEmpty());
}

TEST(NoSleeping, NeitherInCodeNorInTestsNorInScripts) {
  EXPECT_THAT(breaches_of("node/a.cpp", "\n  std::this_thread::" + nap + "5ms);\n"), ElementsAre("no sleeping@2"));
  EXPECT_THAT(breaches_of("tests/node/a.cpp", std::string("  us") + "leep(5000);\n"), ElementsAre("no sleeping@1"));
  EXPECT_THAT(breaches_of("deploy/run", "#!/bin/sh\nsleep 1\n"), ElementsAre("no sleeping@2"));
  EXPECT_THAT(breaches_of("node/a.cpp", "// never " + nap + ")\n"), IsEmpty());
  EXPECT_THAT(breaches_of("tests/node/a.cpp", "run({\"sleep\", \"60\"});\n"), IsEmpty());
}

TEST(OneDefinition, ATypeHasOneHome) {
  const std::string open = "// What it is for.\nnamespace leafcutter::node {\n",
                    close = "}  // namespace leafcutter::node\n";
  Planted tree("node/a.hpp", open + "struct Box {\n};\n" + close);
  tree.add("node/b.hpp", open + "class Crate {\n};\n" + close);
  EXPECT_THAT(tree.breaches(), IsEmpty());
  tree.add("node/c.cpp", open + "namespace {\nstruct Box {\n};\n}  // namespace\n" + close);
  EXPECT_THAT(tree.breaches(), IsEmpty()) << "without linkage it is another type";
  tree.add("node/d.cpp", open + "class Box final : public Crate {\n};\n" + close);
  EXPECT_THAT(tree.breaches(), ElementsAre("one definition@0"));
}

TEST(Length, AFileFitsInAHead) {
  std::string text = "// About.\n";
  for (std::size_t i = 1; i < house::longest_file; ++i) text += "int x;\n";
  EXPECT_THAT(breaches_of("node/a.hpp", text), IsEmpty());
  EXPECT_THAT(breaches_of("node/a.hpp", text + "int y;\n"), ElementsAre("length@601"));
}

TEST(HeaderComment, AHeaderSaysWhatItIsFor) {
  EXPECT_THAT(breaches_of("node/a.hpp", "#pragma once\n// Late.\n"), ElementsAre("header comment@1"));
  EXPECT_THAT(breaches_of("node/a.hpp", "// What it is for.\n#pragma once\n"), IsEmpty());
  EXPECT_THAT(breaches_of("node/a.cpp", "int x;\n"), IsEmpty());
}

TEST(MachinePaths, NothingKnowsWhereItWasWritten) {
  EXPECT_THAT(breaches_of("docs/a.md",
                          "cd /ho"
                          "me/me/leafcutter\n"),
              ElementsAre("machine paths@1"));
  EXPECT_THAT(breaches_of("deploy/run",
                          "#!/bin/sh\ncd /wo"
                          "rk/main\n"),
              ElementsAre("machine paths@2"));
  EXPECT_THAT(breaches_of("node/a.cpp",
                          "const char* x = \"/ro"
                          "ot/x\";\n"),
              ElementsAre("machine paths@1"));
  EXPECT_THAT(breaches_of("docs/a.md", "see docs/home/a.md and /usr/bin/env, ./work/x\n"), IsEmpty());
}

}  // namespace
