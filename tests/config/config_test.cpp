#include "config/config.hpp"

#include <gtest/gtest.h>

#include "tests/support/folder.hpp"

namespace leafcutter::config {
namespace {

class ConfigFile : public testing::Test {
 protected:
  std::string write(const std::string& text) { return folder_.write("config.yaml", text); }
  /// The error's text without the folder.
  std::string mistake(const std::string& text) {
    const auto loaded = load(write(text), true);
    if (loaded.ok()) return "accepted";
    const auto message = loaded.error().text();
    return message.substr(message.find(".yaml") + 6);
  }

 private:
  tests::Folder folder_;
};

TEST_F(ConfigFile, OverridesTheDefaults) {
  const auto config = load(write("slots: 3\nout: elsewhere\nlease-time: 8s\n"), true);
  ASSERT_TRUE(config.ok()) << config.error().text();
  EXPECT_EQ(config->slots, 3u);
  EXPECT_EQ(config->out, "elsewhere");
  EXPECT_EQ(config->lease_time, std::chrono::seconds(8));
  EXPECT_EQ(config->listen, "127.0.0.1:4730");
}

TEST_F(ConfigFile, MayBeEmptyOrAbsent) {
  EXPECT_TRUE(load(write(""), true).ok());
  EXPECT_TRUE(load("/nonexistent/config.yaml", false).ok());
  EXPECT_FALSE(load("/nonexistent/config.yaml", true).ok());
}

TEST_F(ConfigFile, NamesEveryMistakeWithItsPlace) {
  EXPECT_EQ(mistake("slot: 3\n"), "1:1: unknown key \"slot\"; did you mean \"slots\"?");
  EXPECT_EQ(mistake("out: a\nslots: many\n"), "2:8: \"slots\" is a whole number from 1 to 1024, found \"many\"");
  EXPECT_EQ(mistake("slots: 2\nslots: 3\n"), "2:1: key \"slots\" is given twice");
  EXPECT_EQ(mistake("slots: [2]\n"), "1:8: \"slots\" is a single value");
  EXPECT_EQ(mistake("- slots\n"), "1:1: expected a mapping of settings");
  EXPECT_EQ(mistake("lease-time: 1s\n"), "1:13: \"lease-time\" must be at least 4s: it is renewed every quarter of it");
  EXPECT_NE(mistake("a: [\n").find("not YAML"), std::string::npos);
}

}  // namespace
}  // namespace leafcutter::config
