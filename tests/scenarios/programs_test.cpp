// What the loader looks for on disk: programs, folders, the scenario of a folder; and what a scenario's identity
// depends on.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "scenarios/loader.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::scenarios {
namespace {

namespace fs = std::filesystem;

class Programs : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text, mode_t mode = 0644) {
    ::chmod(own_.write(name, text).c_str(), mode);
  }

  std::string said(const LoadResult& result) const {
    std::string out;
    for (auto error : result.errors) {
      error.where.file = fs::path(error.where.file).filename();
      auto text = error.text() + "\n";
      for (auto at = text.find(folder_.string()); at != std::string::npos; at = text.find(folder_.string()))
        text.replace(at, folder_.string().size(), "FOLDER");
      out += text;
    }
    return out;
  }

  static std::string document(const std::string& service) {
    return "leafcutter: 1\nname: n\nservices:\n  shop: " + service + "\nworkload:\n  - settle: {}\n";
  }

  tests::Folder own_;
  const fs::path folder_ = own_.path();
};

TEST_F(Programs, AreLookedForBesideTheScenarioAndOnThePath) {
  write("bin/shop", "#!/bin/sh\n", 0755);
  write("bin/text", "no program\n");
  write("s.yaml", document("{ run: [bin/shop], prepare: [[sh, -c, true], [/bin/sh]] }"));
  const auto good = load_file((folder_ / "s.yaml").string());
  ASSERT_TRUE(good.scenario.has_value()) << said(good);
  EXPECT_EQ(good.scenario->services[0].run[0], (folder_ / "bin/shop").string());
  EXPECT_EQ(good.scenario->services[0].prepare[0][0], "sh");

  write(
      "s.yaml",
      document("{ run: [bin/shpo], prepare: [[bin/text], [bin], [no-such-program-anywhere]], data: { copy: seed } }"));
  const auto bad = load_file((folder_ / "s.yaml").string());
  EXPECT_EQ(said(bad),
            "s.yaml:4:17: there is no program \"bin/shpo\" (looked for FOLDER/bin/shpo)\n"
            "s.yaml:4:39: \"bin/text\" is not an executable file (FOLDER/bin/text)\n"
            "s.yaml:4:51: there is no program \"bin\" on the PATH; a program beside the scenario is written with a "
            "slash: \"./bin\"\n"
            "s.yaml:4:58: there is no program \"no-such-program-anywhere\" on the PATH; a program beside the scenario "
            "is written with a slash: "
            "\"./no-such-program-anywhere\"\n"
            "s.yaml:4:100: there is no folder \"seed\" (looked for FOLDER/seed)\n");
  LoadOptions unchecked;
  unchecked.check_programs = false;
  EXPECT_TRUE(load_file((folder_ / "s.yaml").string(), unchecked).scenario.has_value());
}

TEST_F(Programs, AFolderStandsForItsScenario) {
  EXPECT_NE(said(load_file(folder_.string())).find("the folder holds no scenario"), std::string::npos);
  write("notes.yaml", "name: no scenario\n");
  write("one.yaml", document("{ run: [sh] }"));
  const auto only = load_file(folder_.string());
  ASSERT_TRUE(only.scenario.has_value()) << said(only);
  EXPECT_EQ(only.scenario->file, (folder_ / "one.yaml").string());
  EXPECT_EQ(only.scenario->folder, folder_.string());
  write("two.yaml", document("{ run: [sh] }"));
  EXPECT_NE(said(load_file(folder_.string()))
                .find("the folder holds several scenarios, name one of them: FOLDER/one.yaml and FOLDER/two.yaml"),
            std::string::npos);
  write("scenario.yaml", document("{ run: [sh, -c, exit] }"));
  EXPECT_EQ(load_file(folder_.string()).scenario->file, (folder_ / "scenario.yaml").string());
  EXPECT_NE(said(load_file((folder_ / "none.yaml").string())).find("No such file"), std::string::npos);
}

TEST_F(Programs, IdentityIsTheTextTheVariantAndTheFilesThatAreNamed) {
  write("bin/shop", "#!/bin/sh\n", 0755);
  write("conf/shop.conf", "one\n");
  write("seed/data", "seed\n");
  write("unrelated", "x\n");
  const auto text = document(
      "{ run: [bin/shop, conf/shop.conf, \"${scenario}/more.conf\"], data: { copy: seed }, variants: { v: { "
      "add-arguments: [--v] } } }");
  write("more.conf", "more\n");
  write("s.yaml", text);
  const auto id = [&](const std::string& variant = "") {
    LoadOptions options;
    options.variant = variant;
    const auto result = load_file((folder_ / "s.yaml").string(), options);
    EXPECT_TRUE(result.scenario.has_value()) << said(result);
    return result.scenario ? identity(*result.scenario) : "";
  };
  const auto first = id();
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(id(), first);
  EXPECT_NE(id("v"), first);
  write("unrelated", "y\n");
  EXPECT_EQ(id(), first);
  for (const auto* file : {"bin/shop", "conf/shop.conf", "more.conf", "seed/data", "seed/sub/new"}) {
    const auto before = id();
    write(file, "#!/bin/sh\n# changed\n", 0755);
    EXPECT_NE(id(), before) << file;
  }
  const auto before = id();
  write("s.yaml", text + "# a comment\n");
  EXPECT_NE(id(), before);
}

TEST_F(Programs, IdentityDoesNotDependOnWhereTheFolderIs) {
  write("here/bin/shop", "#!/bin/sh\n", 0755);
  write("here/s.yaml", document("{ run: [bin/shop] }"));
  fs::copy(folder_ / "here", folder_ / "there", fs::copy_options::recursive);
  const auto here = load_file((folder_ / "here/s.yaml").string());
  const auto there = load_file((folder_ / "there/s.yaml").string());
  ASSERT_TRUE(here.scenario && there.scenario);
  EXPECT_EQ(identity(*here.scenario), identity(*there.scenario));
}

}  // namespace
}  // namespace leafcutter::scenarios
