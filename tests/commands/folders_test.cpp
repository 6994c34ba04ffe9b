#include "commands/folders.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <functional>

#include "base/text.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::commands {
namespace {

namespace fs = std::filesystem;

/// Runs `make` in a process that is killed when it has made its folders and a file in each; what they were.
Folders left_by_killed(const std::function<base::Expected<Folders>()>& make) {
  std::array<int, 2> ready{};
  if (::pipe2(ready.data(), O_CLOEXEC) != 0) return {};
  const auto child = ::fork();
  if (child == 0) {
    const auto folders = make();
    const auto line = folders ? folders->run + "\n" + folders->spool + "\n" : std::string("\n\n");
    if (folders)
      for (const auto& folder : {folders->run, folders->spool}) (void)base::write_file_atomically(folder + "/left", "");
    (void)!::write(ready[1], line.data(), line.size());
    ::pause();
  }
  ::close(ready[1]);
  std::string said;
  std::array<char, 4096> buffer{};
  while (std::count(said.begin(), said.end(), '\n') < 2) {
    const auto n = ::read(ready[0], buffer.data(), buffer.size());
    if (n <= 0) break;
    said.append(buffer.data(), static_cast<std::size_t>(n));
  }
  ::close(ready[0]);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto first = said.find('\n');
  return {"", said.substr(0, first), said.substr(first + 1, said.size() - first - 2), nullptr};
}

class FoldersTest : public testing::Test {
 protected:
  tests::Folder folder_;
  const std::string& root_ = folder_.path();
  const std::string far_ = root_ + "/" + std::string(120, 'x');  ///< too long for a socket's path
};

TEST_F(FoldersTest, AreOursAlone) {
  const auto folders = make_folders(root_ + "/out", "local");
  ASSERT_TRUE(folders.ok()) << folders.error().text();
  struct stat info {};
  ASSERT_EQ(::stat(folders->run.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(FoldersTest, OfAKilledProcessAreTakenOver) {
  const auto left = left_by_killed([&] { return make_folders(root_ + "/out", "local"); });
  ASSERT_TRUE(fs::exists(left.run + "/left"));
  const auto folders = make_folders(root_ + "/out", "local");
  ASSERT_TRUE(folders.ok()) << folders.error().text();
  EXPECT_EQ(folders->run, left.run);
  EXPECT_FALSE(fs::exists(left.run + "/left"));
  EXPECT_TRUE(fs::exists(left.spool + "/left")) << "its events are still to be sent";
}

TEST_F(FoldersTest, OfALivingProcessAreNotTouched) {
  const auto first = make_folders(root_ + "/out", "local");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(base::write_file_atomically(first->run + "/socket", "").ok());
  const auto second = make_folders(root_ + "/out", "local");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, base::ErrorCode::conflict);
  EXPECT_EQ(second.error().message, "process " + std::to_string(::getpid()) + " works in " + first->run +
                                        "; wait for it, stop it, or give another folder");
  EXPECT_TRUE(fs::exists(first->run + "/socket"));
}

TEST_F(FoldersTest, KeepSocketPathsShort) {
  std::string run;
  {
    const auto folders = make_folders(far_, "local");
    ASSERT_TRUE(folders.ok()) << folders.error().text();
    run = folders->run;
    EXPECT_LT(run.size() + std::string("/intake").size(), 100u);
    EXPECT_TRUE(fs::exists(run));
  }
  EXPECT_FALSE(fs::exists(run)) << "nobody would look for it there";
}

TEST_F(FoldersTest, OfKilledProcessesAreSweptByAnyOther) {
  const auto short_one = left_by_killed([&] { return make_folders(far_, "local"); });
  const auto passing = left_by_killed([&] { return make_folders(root_ + "/out", "replay", Keep::nothing); });
  const auto node = left_by_killed([&] { return make_folders(root_ + "/out", "node-1"); });
  const auto living = make_folders(root_ + "/out", "replay", Keep::nothing);
  ASSERT_TRUE(living.ok());
  for (const auto& folder : {short_one.run, passing.run, passing.spool}) {
    ASSERT_NE(folder, "");
    EXPECT_FALSE(fs::exists(folder)) << folder;
  }
  EXPECT_FALSE(fs::exists(node.run));
  EXPECT_TRUE(fs::exists(node.spool + "/left")) << "its events are still to be sent";
  ASSERT_TRUE(make_folders(root_ + "/out", "local").ok());
  EXPECT_TRUE(fs::exists(living->run));
  EXPECT_TRUE(fs::exists(living->spool));
}

TEST_F(FoldersTest, AreRemovedByWhoKeepsNothingInThem) {
  std::string run;
  {
    const auto folders = make_folders(root_ + "/out", "replay", Keep::nothing);
    ASSERT_TRUE(folders.ok());
    run = folders->run;
    ASSERT_TRUE(base::write_file_atomically(run + "/socket", "").ok());
  }
  EXPECT_FALSE(fs::exists(root_ + "/out/run")) << run;
  EXPECT_FALSE(fs::exists(root_ + "/out/spool"));
  EXPECT_TRUE(fs::exists(root_ + "/out"));
}

TEST_F(FoldersTest, OfOthersStay) {
  const auto others = make_folders(root_ + "/out", "local");
  ASSERT_TRUE(others.ok());
  std::string run, spool;
  {
    const auto folders = make_folders(root_ + "/out", "replay", Keep::nothing);
    ASSERT_TRUE(folders.ok());
    run = folders->run;
    spool = folders->spool;
  }
  EXPECT_FALSE(fs::exists(run));
  EXPECT_FALSE(fs::exists(spool));
  EXPECT_TRUE(fs::exists(others->run));
  EXPECT_TRUE(fs::exists(others->spool));
}

TEST_F(FoldersTest, SayWhyTheyCannotBeMade) {
  ASSERT_TRUE(base::write_file_atomically(root_ + "/file", "").ok());
  const auto folders = make_folders(root_ + "/file/out", "local");
  ASSERT_FALSE(folders.ok());
  EXPECT_NE(folders.error().message.find("cannot make the folder"), std::string::npos);
}

}  // namespace
}  // namespace leafcutter::commands
