// What Leafcutter says to bad input, to --help, and to a pipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "support.hpp"

namespace {

using acceptance::build_folder;
using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter;
using testing::HasSubstr;
using testing::Not;

TEST(BadInput, NamesFileLineAndColumnAndRunsNothing) {
  const Folder folder;
  const auto scenario = folder.copy_scenario("outbox", "needs: [broker]", "need: [broker]");
  const auto outcome = leafcutter({"run", scenario, "--out", folder / "out"}, folder.path());
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, testing::ContainsRegex("scenario\\.yaml:[0-9]+:5: "));
  EXPECT_THAT(outcome.err, HasSubstr("need"));
  EXPECT_THAT(outcome.err, HasSubstr("needs")) << "the nearest key that exists";
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(BadInput, TellsAllMistakesAtOnce) {
  const Folder folder;
  folder.write("scenario.yaml", "leafcutter: 1\nname: x\nservice: {}\nworkload:\n  - settle: { quiet: soon }\n");
  const auto outcome = leafcutter({"run", "."}, folder.path());
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("scenario.yaml:3:1"));
  EXPECT_THAT(outcome.err, HasSubstr("scenario.yaml:5:"));
}

TEST(BadInput, AnEmptyFolderAndAMissingFile) {
  const Folder folder;
  for (const auto* path : {".", "nowhere.yaml"}) {
    const auto outcome = leafcutter({"run", path}, folder.path());
    EXPECT_EQ(outcome.exit, 2) << path;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(std::string(path) == "." ? "scenario.yaml" : "nowhere.yaml"));
  }
}

TEST(BadInput, AVariantThatNobodyDeclares) {
  const Folder folder;
  const auto outcome =
      leafcutter({"run", (build_folder() / "library/outbox").string(), "--variant", "fixd"}, folder.path());
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("fixed"));
}

TEST(BadInput, OptionsAndAddresses) {
  const Folder folder;
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"rum"},
                                                       {"run"},
                                                       {"run", "x", "--slots", "0"},
                                                       {"run", "x", "--format", "xml"},
                                                       {"replay", "1/2"},
                                                       {"replay", "feedbeef/0/0"},
                                                       {"report"},
                                                       {"node"},
                                                       {"node", "--join", "nowhere"},
                                                       {"node", "--join", "192.0.2.1:4730"}};
  for (const auto& arguments : wrong) {
    const auto outcome = leafcutter(arguments, folder.path(), std::chrono::seconds(20));
    EXPECT_EQ(outcome.exit, 2) << testing::PrintToString(arguments) << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, Not(testing::IsEmpty())) << testing::PrintToString(arguments);
  }
}

TEST(Help, IsEnoughToWorkFrom) {
  const Folder folder;
  const auto help = leafcutter({"--help"}, folder.path());
  EXPECT_EQ(help.exit, 0);
  for (const auto* command : {"run", "plan", "replay", "report", "doctor", "coordinator", "node", "faults", "schema"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + command));
    const auto own = leafcutter({command, "--help"}, folder.path());
    EXPECT_EQ(own.exit, 0) << command;
    EXPECT_THAT(own.out, HasSubstr(command));
  }
  EXPECT_THAT(help.out, HasSubstr("130"));
  for (const auto* option : {"--seed", "--slots", "--variant", "--out", "--format"})
    EXPECT_THAT(leafcutter({"run", "--help"}, folder.path()).out, HasSubstr(option));
}

TEST(Doctor, SaysWhatItSaw) {
  const Folder folder;
  const auto outcome = leafcutter({"doctor"}, folder.path());
  EXPECT_EQ(outcome.exit, 0) << outcome.out;
  for (const auto* capability : {"user-namespace", "network-namespace", "syscall-notify"})
    EXPECT_THAT(outcome.out, HasSubstr(capability));
}

TEST(Reference, FaultsAndSchemaAreTheOnesThatWereShipped) {
  const Folder folder;
  const auto read = [](const std::string& name) {
    std::ifstream file(acceptance::source_folder() / "docs" / name);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  EXPECT_EQ(leafcutter({"faults"}, folder.path()).out, read("faults.md"));
  const auto schema = Json::parse(leafcutter({"schema"}, folder.path()).out, nullptr, false);
  EXPECT_EQ(schema, Json::parse(read("scenario.schema.json"), nullptr, false));
  EXPECT_TRUE(schema.is_object());
}

TEST(Pipe, GetsPlainLines) {
  const Folder folder;
  const auto scenario = folder.copy_scenario("outbox", "leaves: 400", "leaves: 20");
  const auto outcome = leafcutter({"run", scenario, "--out", folder / "out"}, folder.path());
  EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\r")));
  EXPECT_THAT(outcome.err, HasSubstr("leaves"));
}

TEST(Plan, SaysWhatItsLeavesDependOnOutside) {
  const Folder folder;
  folder.write("s.yaml",
               "leafcutter: 1\nname: out\nservices:\n  shop: { run: [/bin/true] }\n"
               "egress:\n  - { from: shop, to: localhost, port: 6379 }\nworkload:\n  - settle: {}\n");
  const auto outcome = leafcutter({"plan", folder / "s.yaml"}, folder.path());
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("leaves depend on what is outside of them\n│  ├─ shop -> localhost:6379\n"));
}

TEST(Plan, ShowsTheSpaceWithoutRunningIt) {
  const Folder folder;
  const auto outcome = leafcutter({"plan", (build_folder() / "library/outbox").string()}, folder.path());
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("lose-response"));
  const auto bounded =
      leafcutter({"plan", (build_folder() / "library/outbox").string(), "--max-leaves", "10"}, folder.path());
  EXPECT_EQ(bounded.exit, 2);
}

}  // namespace
