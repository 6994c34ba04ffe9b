// Every command line in the documentation is run. In README.md and docs/, the lines of a ```sh block that begin with `$
// ` are commands; `# exit N` after one says that it ends with N instead of 0. The lines of one page are run in order,
// in a folder that looks like a checkout after deploy/run, with `leafcutter` on the PATH.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "support.hpp"

namespace {

namespace fs = std::filesystem;
using acceptance::Folder;
using acceptance::Program;

struct Command {
  std::size_t line = 0;
  std::string text;
  int exit = 0;
};

std::vector<Command> commands_of(const std::string& page) {
  static const std::regex exit_note("#.*\\bexit ([0-9]+)");
  std::vector<Command> commands;
  std::istringstream lines(page);
  bool inside = false;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.rfind("```", 0) == 0) inside = !inside && line == "```sh";
    if (!inside || line.rfind("$ ", 0) != 0) continue;
    Command command{number, line.substr(2), 0};
    std::smatch note;
    if (std::regex_search(line, note, exit_note)) command.exit = std::stoi(note[1]);
    commands.push_back(command);
  }
  return commands;
}

/// These build everything anew, and run this test: CI runs them itself.
bool is_run_by_ci(const std::string& command) {
  return command.rfind("deploy/", 0) == 0 || command.rfind("cmake ", 0) == 0 || command.rfind("ctest ", 0) == 0 ||
         command.rfind(".ci/", 0) == 0;
}

std::string script_of(const std::vector<Command>& commands) {
  std::string script = "export PATH=\"$PWD/build/release:$PATH\"\n";
  for (const auto& command : commands) {
    if (is_run_by_ci(command.text)) continue;
    const auto line = std::to_string(command.line), expected = std::to_string(command.exit);
    script += command.text + "\ncode=$?; test $code = " + expected + " || { echo \"line " + line +
              ": exit $code instead of " + expected + "\" >&2; exit 1; }\n";
  }
  return script;
}

class Docs : public testing::TestWithParam<std::string> {};

TEST_P(Docs, CommandsWork) {
  std::ifstream file(acceptance::source_folder() / GetParam());
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(page.empty());
  const auto commands = commands_of(page);
  const Folder folder;
  fs::create_directories(folder.path() / "build/release");
  fs::create_symlink(acceptance::build_folder() / "leafcutter", folder.path() / "build/release/leafcutter");
  fs::create_directory_symlink(acceptance::build_folder() / "tests", folder.path() / "build/release/tests");
  fs::copy(acceptance::build_folder() / "library", folder.path() / "build/release/library",
           fs::copy_options::recursive);
  for (const auto* name : {"docs", "scenarios", "deploy"})
    fs::create_directory_symlink(acceptance::source_folder() / name, folder.path() / name);
  folder.write("page.sh", script_of(commands));
  const auto outcome = Program({"bash", folder / "page.sh"}, folder.path()).wait(std::chrono::seconds(500));
  EXPECT_EQ(outcome.exit, 0) << outcome.err << outcome.out;
}

std::vector<std::string> pages() {
  const auto root = acceptance::source_folder();
  std::vector<std::string> names = {"README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") names.push_back(fs::relative(entry.path(), root).string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Pages, Docs, testing::ValuesIn(pages()), [](const auto& page) {
  std::string name = page.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST(DocsReader, FindsCommandsAndTheirExitCodes) {
  const auto commands =
      commands_of("text\n$ no\n```sh\n$ one\noutput\n$ two  # exit 3\n```\n$ no\n```yaml\n$ no\n```\n");
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[0].line, 4U);
  EXPECT_EQ(commands[0].text, "one");
  EXPECT_EQ(commands[1].exit, 3);
}

TEST(DocsReader, ACommandThatFailsIsSeen) {
  const Folder folder;
  folder.write("page.sh", script_of(commands_of("```sh\n$ true\n$ false\n```\n")));
  const auto outcome = Program({"bash", folder / "page.sh"}, folder.path()).wait(std::chrono::seconds(20));
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_NE(outcome.err.find("line 3: exit 1 instead of 0"), std::string::npos);
}

}  // namespace
