// What is durable when, one rule a test: bytes and sizes, failed and lying syncs. Names are in durable_names_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "durable_fixture.hpp"

namespace leafcutter::node::tests {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string page_run(std::size_t count, char fill) { return std::string(count * durable_page_bytes, fill); }

TEST_F(DurableTest, WhatIsThereAtTheStartIsDurable) {
  write("a", "old");
  folder("d");
  write("d/b", page_run(3, 'b'));
  ASSERT_EQ(::symlink("d/b", (scratch / "l").c_str()), 0);
  const auto before = picture(scratch.data());
  start();
  write("a", "new and longer");
  put("d/b", 5000, "x");
  remove("l");
  const auto lost = lose_power();
  EXPECT_EQ(picture(scratch.data()), before);
  EXPECT_EQ(lost.files_changed, 2U);
  EXPECT_THAT(lost.changed, ElementsAre("a", "d/b"));
  EXPECT_THAT(lost.returned, ElementsAre("l"));
}

TEST_F(DurableTest, NothingChangesWhenNothingWasDone) {
  write("a", "old");
  folder("d");
  start();
  const auto before = std::filesystem::last_write_time(scratch / "a");
  const auto lost = lose_power();
  EXPECT_FALSE(lost.changed_anything()) << lost.text();
  EXPECT_EQ(lost.text(), "no files changed, no names lost, no returned, 0 bytes lost");
  EXPECT_EQ(std::filesystem::last_write_time(scratch / "a"), before);
}

TEST_F(DurableTest, ASyncedFileKeepsItsBytesAndAnotherDoesNot) {
  write("a", "old");
  write("b", "old");
  start();
  write("a", "new");
  write("b", "new");
  sync("a");
  const auto lost = lose_power();
  EXPECT_EQ(read("a"), "new");
  EXPECT_EQ(read("b"), "old");
  EXPECT_THAT(lost.changed, ElementsAre("b"));
}

TEST_F(DurableTest, WhatIsWrittenAfterTheSyncIsLost) {
  start();
  write("a", "one");
  sync("a");
  put("a", 3, "two");
  const auto lost = lose_power();
  EXPECT_EQ(read("a"), "one");
  EXPECT_EQ(lost.bytes_lost, 3U);
}

TEST_F(DurableTest, ANewFileIsDurableWithItsNameOnceItIsSynced) {
  start();
  folder("d");
  folder("d/e");
  write("d/e/new", "bytes");
  write("d/other", "bytes");
  sync("d/e/new");
  const auto lost = lose_power();
  EXPECT_EQ(read("d/e/new"), "bytes");
  EXPECT_FALSE(there("d/other"));
  EXPECT_THAT(lost.lost, ElementsAre("d/other"));
  EXPECT_EQ(lost.bytes_lost, 5U);
}

TEST_F(DurableTest, ANewFileThatWasNeverSyncedIsGone) {
  start();
  write("new", "bytes");
  lose_power();
  EXPECT_FALSE(there("new"));
}

TEST_F(DurableTest, ADescriptorServesAsWellAsAPathAndKeepsItsOffset) {
  start();
  const auto fd = open("new", O_APPEND);
  ASSERT_EQ(::write(fd.get(), "bytes", 5), 5);
  ASSERT_EQ(::lseek(fd.get(), 2, SEEK_SET), 2);
  sync(fd.get());
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_CUR), 2);
  const base::UniqueFd only_written(::open((scratch / "second").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(only_written.get(), "more", 4), 4);
  sync(only_written.get());
  sync(scratch / "new");
  lose_power();
  EXPECT_EQ(read("new"), "bytes");
  EXPECT_EQ(read("second"), "more");
}

TEST_F(DurableTest, ADescriptorFollowsItsFileThroughARename) {
  start();
  const auto fd = open("first");
  ASSERT_EQ(::write(fd.get(), "bytes", 5), 5);
  move("first", "second");
  write("first", "another");
  sync(fd.get());
  lose_power();
  EXPECT_EQ(read("second"), "bytes");
  EXPECT_FALSE(there("first"));
}

TEST_F(DurableTest, FilesElsewhereAreLetPass) {
  start();
  const DurableScratch elsewhere;
  const base::UniqueFd fd(::open((elsewhere / "x").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::write(fd.get(), "bytes", 5), 5);
  sync(fd.get());
  ASSERT_EQ(::unlink((elsewhere / "x").c_str()), 0);
  sync(fd.get());
  EXPECT_TRUE(image->sync_failed(fd.get()));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.image()));
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  sync(null.get());
  EXPECT_FALSE(lose_power().changed_anything());
}

TEST_F(DurableTest, APathThatIsNoneIsNamed) {
  start();
  const auto missing = image->synced("missing");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr("missing"));
  const auto outside = image->synced("/etc/hostname");
  ASSERT_FALSE(outside);
  EXPECT_THAT(outside.error().text(), HasSubstr("/etc/hostname is not below the data folder " + scratch.data()));
}

TEST_F(DurableTest, ASizeIsDurableWithEitherKindOfSync) {
  write("shorter", page_run(2, 'a'));
  write("longer", "a");
  write("full", page_run(2, 'a'));
  start();
  for (const auto* name : {"shorter", "full"}) ASSERT_EQ(::truncate((scratch / name).c_str(), 4097), 0);
  ASSERT_EQ(::truncate((scratch / "longer").c_str(), 10000), 0);
  sync("shorter", true);
  sync("longer", true);
  lose_power();
  EXPECT_EQ(read("shorter"), page_run(2, 'a').substr(0, 4097));
  EXPECT_EQ(read("longer"), "a" + std::string(9999, '\0'));
  EXPECT_EQ(read("full"), page_run(2, 'a'));
}

TEST_F(DurableTest, APreallocatedSizeIsDurableOnlyWhenSynced) {
  start();
  for (const auto* name : {"synced", "not"}) {
    const auto fd = open(name);
    sync(fd.get());
    ASSERT_EQ(::fallocate(fd.get(), 0, 0, 3 * 4096), 0);
  }
  sync("synced", true);
  lose_power();
  EXPECT_EQ(read("synced"), page_run(3, '\0'));
  EXPECT_EQ(read("not"), "");
}

TEST_F(DurableTest, PermissionsAreDurableWithFsyncAndNotWithFdatasync) {
  write("a", "");
  write("b", "");
  start();
  for (const auto* name : {"a", "b"}) ASSERT_EQ(::chmod((scratch / name).c_str(), 0600), 0);
  sync("a");
  sync("b", true);
  const auto lost = lose_power();
  EXPECT_EQ(picture(scratch.data()), (FolderPicture{{"a", "file 0600 x1 0:"}, {"b", "file 0644 x1 0:"}}));
  EXPECT_THAT(lost.changed, ElementsAre("b"));
}

TEST_F(DurableTest, AMappedWriteIsSeen) {
  write("a", page_run(4, 'a'));
  start();
  const auto fd = open("a");
  auto* const memory = static_cast<char*>(::mmap(nullptr, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
  ASSERT_NE(memory, MAP_FAILED);
  memory[0] = 'x';
  sync("a");
  memory[1] = 'y';  // the page is dirty already: no time stamp tells of this
  sync("a");
  memory[4096] = 'z';
  ::munmap(memory, 4 * 4096);
  lose_power();
  EXPECT_EQ(read("a"), "xy" + page_run(4, 'a').substr(2));
}

TEST_F(DurableTest, ARangeIsDurableWithoutMetadata) {
  write("a", page_run(4, 'a'));
  start();
  write("a", page_run(6, 'b'));
  ASSERT_TRUE(image->synced_range("a", 4096 + 10, 4096));  // touches pages 1 and 2
  ASSERT_TRUE(image->synced_range("a", 5 * 4096, 0));      // beyond the durable size
  write("new", page_run(2, 'b'));
  ASSERT_TRUE(image->synced_range("new", 0, 8192));
  lose_power();
  EXPECT_EQ(read("a"), page_run(1, 'a') + page_run(2, 'b') + page_run(1, 'a'));
  EXPECT_FALSE(there("new"));
}

TEST_F(DurableTest, AMappedRangeIsDurableWithSizeAndName) {
  write("a", page_run(4, 'a'));
  start();
  write("a", page_run(6, 'b'));
  ASSERT_TRUE(image->written("a", 5 * 4096, 4096, true));
  write("new", page_run(3, 'n'));
  ASSERT_TRUE(image->written("new", 4096, 1, true));
  lose_power();
  EXPECT_EQ(read("a"), page_run(4, 'a') + page_run(1, '\0') + page_run(1, 'b'));
  EXPECT_EQ(read("new"), page_run(1, '\0') + page_run(1, 'n') + page_run(1, '\0'));
}

TEST_F(DurableTest, AWriteThroughASynchronousDescriptorIsDurableAtOnce) {
  start();
  const auto fd = open("log", O_DSYNC);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::write(fd.get(), "record\n", 7), 7);
    ASSERT_TRUE(image->written(fd.get(), static_cast<std::uint64_t>(i) * 7, 7, true));
  }
  ASSERT_EQ(::write(fd.get(), "record\n", 7), 7);  // not reported
  lose_power();
  EXPECT_EQ(read("log"), "record\nrecord\nrecord\n");
}

TEST_F(DurableTest, EverythingIsDurableAfterSyncfs) {
  write("gone", "x");
  write("moved", "m");
  folder("d");
  start();
  remove("gone");
  move("moved", "d/here");
  folder("e");
  write("e/new", page_run(2, 'n'));
  ASSERT_EQ(::chmod((scratch / "d").c_str(), 0700), 0);
  ASSERT_EQ(::link((scratch / "e/new").c_str(), (scratch / "second").c_str()), 0);
  const auto before = picture(scratch.data());
  ASSERT_TRUE(image->synced_all());
  EXPECT_FALSE(lose_power().changed_anything());
  write("second", "later");
  EXPECT_TRUE(lose_power().changed_anything());
  EXPECT_EQ(picture(scratch.data()), before);
}

TEST_F(DurableTest, ASyncThatLiedChangesNothing) {
  write("a", "old");
  start();
  write("a", "new");
  image->lied("a");
  const auto lost = lose_power();
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(lost.lies, 1U);
  EXPECT_THAT(lost.text(), HasSubstr("1 sync had no effect"));
  EXPECT_EQ(lose_power().lies, 0U);
}

TEST_F(DurableTest, AFailedSyncLosesThePagesForTheNextOneToo) {
  write("a", page_run(3, 'a'));
  start();
  put("a", 0, "first");
  ASSERT_TRUE(image->sync_failed("a"));
  put("a", 4096, "second");
  sync("a");
  EXPECT_EQ(read("a").substr(0, 5), "first");  // the page cache goes on showing it
  const auto lost = lose_power();
  EXPECT_EQ(read("a"), page_run(1, 'a') + "second" + page_run(2, 'a').substr(6));
  EXPECT_EQ(lost.syncs_failed, 1U);
}

TEST_F(DurableTest, APageWrittenAgainAfterTheFailureIsDurable) {
  write("a", page_run(1, 'a'));
  start();
  put("a", 0, "first");
  ASSERT_TRUE(image->sync_failed("a"));
  put("a", 4, "!");
  sync("a");
  put("a", 4, "t");  // as it was at the failure, but written since
  sync("a");
  lose_power();
  EXPECT_EQ(read("a").substr(0, 6), "firsta");
}

TEST_F(DurableTest, APageRewrittenWithEqualBytesIsMissed) {  // a stated limit
  write("a", page_run(1, 'a'));
  start();
  put("a", 0, "first");
  ASSERT_TRUE(image->sync_failed("a"));
  put("a", 0, "first");
  sync("a");
  lose_power();
  EXPECT_EQ(read("a"), page_run(1, 'a'));
}

TEST_F(DurableTest, AfterTwoFailuresBothHaveLost) {
  write("a", page_run(3, 'a'));
  start();
  put("a", 0, "1");
  put("a", 8191, "+");
  EXPECT_EQ(*image->sync_failed("a"), 8192U);
  put("a", 4096, "2");
  EXPECT_EQ(*image->sync_failed("a"), 4096U);
  put("a", 8192, "3");
  sync("a");
  lose_power();
  EXPECT_EQ(read("a"), page_run(2, 'a') + "3" + page_run(1, 'a').substr(1));
  EXPECT_EQ(*image->sync_failed("a"), 0U) << "everything is durable";
}

TEST_F(DurableTest, AFailureLeavesSizeAndNameToTheNextSync) {
  start();
  write("new", page_run(2, 'n'));
  EXPECT_EQ(*image->sync_failed("new"), 8192U);
  write("other", "x");
  ASSERT_TRUE(image->sync_failed("other"));
  sync("new");
  lose_power();
  EXPECT_EQ(read("new"), page_run(2, '\0'));
  EXPECT_FALSE(there("other"));
}

TEST_F(DurableTest, WhatWasCutOffBeforeAFailureStaysAway) {
  write("a", page_run(2, 'a'));
  start();
  ASSERT_EQ(::truncate((scratch / "a").c_str(), 4096), 0);
  ASSERT_TRUE(image->sync_failed("a"));
  ASSERT_EQ(::truncate((scratch / "a").c_str(), 8192), 0);
  sync("a");
  lose_power();
  EXPECT_EQ(read("a"), page_run(1, 'a') + page_run(1, '\0'));
}

TEST_F(DurableTest, SyncingEverythingDoesNotBringLostPagesBack) {
  write("a", "old");
  start();
  write("a", "new");
  ASSERT_TRUE(image->sync_failed("a"));
  ASSERT_TRUE(image->synced_all());
  lose_power();
  EXPECT_EQ(read("a"), "old");
}

TEST_F(DurableTest, AfterAPowerLossEverythingIsDurableAndFailuresAreForgotten) {
  write("a", "old");
  start();
  write("a", "new");
  ASSERT_TRUE(image->sync_failed("a"));
  write("unsynced", "x");
  lose_power();
  EXPECT_FALSE(lose_power().changed_anything());
  write("a", "new");  // the very bytes that were lost
  sync("a");
  EXPECT_EQ(lose_power().syncs_failed, 0U);
  EXPECT_EQ(read("a"), "new");
}

TEST_F(DurableTest, TheFolderItselfStays) {
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(scratch.data().c_str(), &before), 0);
  start();
  write("a", "x");
  folder("d");
  ASSERT_EQ(::chmod(scratch.data().c_str(), 0711), 0);
  lose_power();
  ASSERT_EQ(::stat(scratch.data().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(before.st_mode, after.st_mode);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.data()));
}

TEST_F(DurableTest, ASparseFileStaysSparse) {
  constexpr off_t huge = off_t{1} << 40;
  {
    const auto fd = open("a");
    ASSERT_EQ(::ftruncate(fd.get(), huge), 0);
    ASSERT_EQ(::pwrite(fd.get(), "old", 3, huge / 2), 3);
  }
  start();
  put("a", static_cast<std::uint64_t>(huge) / 4, "new");
  sync("a");
  put("a", static_cast<std::uint64_t>(huge) / 8, "lost");
  put("a", static_cast<std::uint64_t>(huge) / 2, "lost");
  ASSERT_TRUE(image->sync_failed("a"));
  const auto lost = lose_power();
  EXPECT_EQ(lost.bytes_lost, 2 * durable_page_bytes);
  const auto fd = open("a");
  char bytes[3];
  ASSERT_EQ(::pread(fd.get(), bytes, 3, huge / 4), 3);
  EXPECT_EQ(std::string(bytes, 3), "new");
  ASSERT_EQ(::pread(fd.get(), bytes, 3, huge / 2), 3);
  EXPECT_EQ(std::string(bytes, 3), "old");
  struct stat status {};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_size, huge);
  EXPECT_LE(status.st_blocks * 512, 8 * 4096);
  std::uint64_t held = 0;
  for (const auto& file : std::filesystem::directory_iterator(scratch.image())) {
    ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
    held += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  EXPECT_LE(held, 8 * 4096U);
}

TEST_F(DurableTest, AHoleThatWasPunchedIsDurableWhenSynced) {
  write("a", page_run(4, 'a'));
  write("b", page_run(4, 'b'));
  start();
  for (const auto* name : {"a", "b"})
    ASSERT_EQ(::fallocate(open(name).get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192), 0);
  sync("a");
  lose_power();
  EXPECT_EQ(read("a"), page_run(1, 'a') + page_run(2, '\0') + page_run(1, 'a'));
  EXPECT_EQ(read("b"), page_run(4, 'b'));
}

TEST_F(DurableTest, FifosAndSocketsAreLeftAlone) {
  folder("d");
  start();
  ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (scratch / "d/s").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  folder("new");
  ASSERT_EQ(::mkfifo((scratch / "new/fifo").c_str(), 0600), 0);
  const base::UniqueFd pipe(::open((scratch / "fifo").c_str(), O_RDWR | O_CLOEXEC));
  sync(pipe.get());
  sync("fifo");
  sync(".");
  sync("d");
  ASSERT_TRUE(image->synced_all());
  folder("unsynced");
  ASSERT_EQ(::mkfifo((scratch / "unsynced/fifo").c_str(), 0600), 0);
  const auto lost = lose_power();
  EXPECT_EQ(
      picture(scratch.data()),
      (FolderPicture{
          {"d", "folder 0755"}, {"d/s", "other"}, {"fifo", "other"}, {"new", "folder 0755"}, {"new/fifo", "other"}}));
  EXPECT_EQ(lost.names_lost, 2U);
}

TEST_F(DurableTest, AFifoInTheWayOfAReturningFileGoes) {
  write("a", "old");
  start();
  remove("a");
  ASSERT_EQ(::mkfifo((scratch / "a").c_str(), 0600), 0);
  lose_power();
  EXPECT_EQ(read("a"), "old");
}

}  // namespace
}  // namespace leafcutter::node::tests
