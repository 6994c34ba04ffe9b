#include "node/runs/journal_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/text.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::node::runs {
namespace {

class JournalFileTest : public testing::Test {
 protected:
  tests::Folder own_;
  const std::filesystem::path folder_ = own_.path();
};

TEST_F(JournalFileTest, TheFirstLineComesFirstWhateverWasAppendedBefore) {
  const auto path = (folder_ / "j").string();
  auto file = JournalFile::create(path);
  ASSERT_TRUE(file.ok());
  (*file)->append("early\n");
  (*file)->flush();
  EXPECT_EQ(*base::read_file(path), "");
  (*file)->begin("first\n");
  (*file)->append("later\n");
  (*file)->flush();
  EXPECT_EQ(*base::read_file(path), "first\nearly\nlater\n");
  EXPECT_TRUE((*file)->close().ok());
}

TEST_F(JournalFileTest, OneThatWasNeverBegunIsTakenAway) {
  const auto path = (folder_ / "j").string();
  {
    auto file = JournalFile::create(path);
    ASSERT_TRUE(file.ok());
    (*file)->append("early\n");
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(JournalFileTest, AFileThatIsThereIsLeftAlone) {
  const auto path = (folder_ / "j").string();
  ASSERT_TRUE(base::write_file_atomically(path, "mine").ok());
  const auto file = JournalFile::create(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, base::ErrorCode::bad_input);
  EXPECT_EQ(*base::read_file(path), "mine");
  EXPECT_FALSE(JournalFile::create((folder_ / "no/such/folder").string()).ok());
}

TEST_F(JournalFileTest, WhatCannotBeWrittenIsSaidAtTheEnd) {
  const auto path = (folder_ / "j").string();
  auto file = JournalFile::create(path);
  ASSERT_TRUE(file.ok());
  (*file)->begin("first\n");
  (*file)->flush();
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{64, before.rlim_max};
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 10; ++i) (*file)->append("0123456789012345678\n"), (*file)->flush();
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  (*file)->append("after the gap\n");
  const auto closed = (*file)->close();
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().code, base::ErrorCode::io);
  EXPECT_NE(closed.error().message.find(path), std::string::npos);
  // Nothing follows a gap.
  EXPECT_EQ(base::read_file(path)->find("after"), std::string::npos);
}

}  // namespace
}  // namespace leafcutter::node::runs
