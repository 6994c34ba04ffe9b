#include "base/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>

#include "base/unique_fd.hpp"

namespace leafcutter::base {
namespace {

UniqueFd nameless() {
  auto path = testing::TempDir() + "leafcutter-files-XXXXXX";
  UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
  ::unlink(path.c_str());
  return fd;
}

TEST(Files, ReadBackWhatWasWrittenAtAPlace) {
  const auto fd = nameless();
  ASSERT_TRUE(write_at(fd.get(), "one", 0, "x"));
  ASSERT_TRUE(write_at(fd.get(), "two", 5, "x"));
  std::array<char, 3> got{};
  const auto read = read_at(fd.get(), got.data(), got.size(), 5, "x");
  ASSERT_TRUE(read);
  EXPECT_TRUE(*read);
  EXPECT_EQ(std::string(got.begin(), got.end()), "two");
}

TEST(Files, TellWhenTheFileIsShorter) {
  const auto fd = nameless();
  ASSERT_TRUE(write_at(fd.get(), "one", 0, "x"));
  std::array<char, 3> got{};
  const auto read = read_at(fd.get(), got.data(), got.size(), 1, "x");
  ASSERT_TRUE(read);
  EXPECT_FALSE(*read);
}

TEST(Files, NameWhatCouldNotBeDone) {
  std::array<char, 3> got{};
  EXPECT_EQ(read_at(-1, got.data(), got.size(), 0, "a spilled trace").error().message,
            "read a spilled trace: Bad file descriptor");
  EXPECT_EQ(write_at(-1, "one", 0, "a spilled trace").error().message, "write a spilled trace: Bad file descriptor");
}

}  // namespace
}  // namespace leafcutter::base
