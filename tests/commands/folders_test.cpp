#include "commands/folders.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/text.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::commands {
namespace {

namespace fs = std::filesystem;

class FoldersTest : public testing::Test {
 protected:
  tests::Folder folder_;
  const std::string& root_ = folder_.path();
};

TEST_F(FoldersTest, AreOursAlone) {
  const auto folders = make_folders(root_ + "/out", "local");
  ASSERT_TRUE(folders.ok()) << folders.error().text();
  struct stat info {};
  ASSERT_EQ(::stat(folders->run.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(FoldersTest, RemoveWhatAKilledProcessLeft) {
  const auto first = make_folders(root_ + "/out", "local");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(base::write_file_atomically(first->run + "/socket", "").ok());
  ASSERT_TRUE(make_folders(root_ + "/out", "local").ok());
  EXPECT_FALSE(fs::exists(first->run + "/socket"));
}

TEST_F(FoldersTest, KeepSocketPathsShort) {
  const auto folders = make_folders(root_ + "/" + std::string(120, 'x'), "local");
  ASSERT_TRUE(folders.ok()) << folders.error().text();
  EXPECT_LT(folders->run.size() + std::string("/intake").size(), 100u);
  fs::remove_all(folders->run);
}

TEST_F(FoldersTest, AreRemovedByWhoKeepsNothingInThem) {
  const auto folders = make_folders(root_ + "/out", "replay-1");
  ASSERT_TRUE(folders.ok());
  ASSERT_TRUE(base::write_file_atomically(folders->run + "/socket", "").ok());
  { const FoldersRemoval removal(*folders); }
  EXPECT_FALSE(fs::exists(root_ + "/out/run"));
  EXPECT_FALSE(fs::exists(root_ + "/out/spool"));
  EXPECT_TRUE(fs::exists(root_ + "/out"));
}

TEST_F(FoldersTest, OfOthersStay) {
  const auto others = make_folders(root_ + "/out", "local");
  const auto folders = make_folders(root_ + "/out", "replay-1");
  ASSERT_TRUE(others.ok());
  ASSERT_TRUE(folders.ok());
  { const FoldersRemoval removal(*folders); }
  EXPECT_FALSE(fs::exists(folders->run));
  EXPECT_FALSE(fs::exists(folders->spool));
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
