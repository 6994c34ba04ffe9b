// Which names are durable when, one rule a test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "durable_fixture.hpp"

namespace leafcutter::node::tests {
namespace {

using testing::ElementsAre;

struct DurableNames : DurableTest {
  void link(const std::string& from, const std::string& to) const {
    EXPECT_EQ(::link((scratch / from).c_str(), (scratch / to).c_str()), 0);
  }
  ino_t inode(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(::lstat((scratch / name).c_str(), &status), 0) << name;
    return status.st_ino;
  }
};

TEST_F(DurableNames, ARenameWithoutASyncIsUndone) {
  write("old", "bytes");
  start();
  move("old", "new");
  const auto lost = lose_power();
  EXPECT_EQ(read("old"), "bytes");
  EXPECT_FALSE(there("new"));
  EXPECT_THAT(lost.lost, ElementsAre("new"));
  EXPECT_THAT(lost.returned, ElementsAre("old"));
}

TEST_F(DurableNames, ARenameOverAFileWithoutAFolderSyncGivesTheOldFileBack) {
  write("config", "old");
  start();
  write("config.tmp", "new");
  sync("config.tmp");
  move("config.tmp", "config");
  const auto lost = lose_power();
  EXPECT_EQ(read("config"), "old");
  EXPECT_EQ(read("config.tmp"), "new");
  EXPECT_THAT(lost.changed, ElementsAre("config"));
}

TEST_F(DurableNames, ASyncedFileRenamedBeforeAFolderSyncIsThereUnderItsNewName) {
  write("config", "old");
  start();
  write("config.tmp", "new");
  sync("config.tmp");
  move("config.tmp", "config");
  sync(".");
  EXPECT_FALSE(lose_power().changed_anything());
  EXPECT_EQ(read("config"), "new");
  EXPECT_FALSE(there("config.tmp"));
}

TEST_F(DurableNames, AFileRenamedBeforeItsBytesWereSyncedIsEmptyUnderItsNewName) {
  write("config", "old");
  start();
  write("config.tmp", "new");
  move("config.tmp", "config");
  sync(".");
  lose_power();
  EXPECT_EQ(read("config"), "");
}

TEST_F(DurableNames, AFsyncAfterARenameCarriesTheNameAndAFdatasyncDoesNot) {
  write("a", "a");
  write("b", "b");
  start();
  move("a", "a.new");
  move("b", "b.new");
  sync("a.new");
  sync("b.new", true);
  lose_power();
  EXPECT_EQ(picture(scratch.data()), (FolderPicture{{"a.new", "file 0644 x1 1:a"}, {"b", "file 0644 x1 1:b"}}));
}

TEST_F(DurableNames, ANewFilesNameIsDurableWithFdatasyncToo) {
  start();
  write("new", "bytes");
  sync("new", true);
  lose_power();
  EXPECT_EQ(read("new"), "bytes");
}

TEST_F(DurableNames, ARemovedFileIsBackWithItsDurableBytes) {
  write("a", "old");
  start();
  write("a", "synced");
  sync("a");
  put("a", 0, "UNSYNC");
  remove("a");
  const auto lost = lose_power();
  EXPECT_EQ(read("a"), "synced");
  EXPECT_THAT(lost.returned, ElementsAre("a"));
}

TEST_F(DurableNames, ARemovedFileIsGoneAfterAFolderSync) {
  write("a", "old");
  start();
  remove("a");
  sync(".");
  lose_power();
  EXPECT_FALSE(there("a"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.image()));
}

TEST_F(DurableNames, AFolderSyncIsOfItsOwnEntriesOnly) {
  folder("d");
  folder("e");
  start();
  write("d/a", "x");
  write("e/a", "x");
  sync("d");
  lose_power();
  EXPECT_EQ(read("d/a"), "");  // its bytes were never synced
  EXPECT_FALSE(there("e/a"));
}

TEST_F(DurableNames, ANewFolderIsDurableWithItsParentAndEmpty) {
  start();
  folder("d");
  write("d/a", "x");
  sync(".");
  lose_power();
  EXPECT_EQ(picture(scratch.data()), (FolderPicture{{"d", "folder 0755"}}));
}

TEST_F(DurableNames, ASyncedNewFolderHasItsOwnName) {
  start();
  folder("d");
  folder("d/e");
  ASSERT_EQ(::symlink("target", (scratch / "d/e/link").c_str()), 0);
  sync("d/e");
  lose_power();
  EXPECT_EQ(picture(scratch.data()),
            (FolderPicture{{"d", "folder 0755"}, {"d/e", "folder 0755"}, {"d/e/link", "link -> target"}}));
}

TEST_F(DurableNames, ALinkIsDurableWithItsFolder) {
  start();
  ASSERT_EQ(::symlink("one", (scratch / "a").c_str()), 0);
  sync(".");
  remove("a");
  ASSERT_EQ(::symlink("two", (scratch / "a").c_str()), 0);
  ASSERT_EQ(::symlink("three", (scratch / "b").c_str()), 0);
  lose_power();
  EXPECT_EQ(picture(scratch.data()), (FolderPicture{{"a", "link -> one"}}));
}

TEST_F(DurableNames, ASyncThroughALinkIsOfItsTarget) {
  write("a", "old");
  ASSERT_EQ(::symlink("a", (scratch / "l").c_str()), 0);
  start();
  write("a", "new");
  sync("l");
  lose_power();
  EXPECT_EQ(read("a"), "new");
}

TEST_F(DurableNames, AMoveBetweenFoldersIsOneStepWhicheverIsSynced) {
  for (const auto* synced : {"from", "to"}) {
    folder("from");
    folder("to");
    write("from/a", "bytes");
    if (!image) start();
    ASSERT_TRUE(image->synced_all());
    move("from/a", "to/b");
    sync(synced);
    lose_power();
    EXPECT_EQ(read("to/b"), "bytes") << synced;
    EXPECT_FALSE(there("from/a")) << synced;
    for (const auto* name : {"to/b", "to", "from"}) remove(name);
  }
}

TEST_F(DurableNames, ALogThatIsRotatedIsNotLostToItsSuccessor) {
  write("log", "first");
  start();
  move("log", "log.1");
  write("log", "second");
  sync("log");
  lose_power();
  EXPECT_EQ(read("log"), "second");
  EXPECT_EQ(read("log.1"), "first");
}

TEST_F(DurableNames, FilesThatChangedNamesDoSoInOneStep) {
  write("a", "first");
  write("b", "second");
  start();
  ASSERT_EQ(::renameat2(AT_FDCWD, (scratch / "a").c_str(), AT_FDCWD, (scratch / "b").c_str(), RENAME_EXCHANGE), 0);
  sync("b");
  lose_power();
  EXPECT_EQ(read("a"), "second");
  EXPECT_EQ(read("b"), "first");
  ASSERT_EQ(::renameat2(AT_FDCWD, (scratch / "a").c_str(), AT_FDCWD, (scratch / "b").c_str(), RENAME_EXCHANGE), 0);
  lose_power();
  EXPECT_EQ(read("a"), "second");
}

TEST_F(DurableNames, AFolderThatIsRenamedComesBackWithWhatWasInIt) {
  folder("d");
  write("d/a", "bytes");
  folder("d/sub");
  write("d/sub/b", "bytes");
  const auto before = picture(scratch.data());
  start();
  move("d", "e");
  folder("d");
  write("d/a", "other");
  move("e/sub", "d/sub");
  remove("e/a");
  lose_power();
  EXPECT_EQ(picture(scratch.data()), before);
}

TEST_F(DurableNames, AFileSyncedInARenamedFolderIsReachedByTheNewName) {
  folder("d");
  write("d/a", "old");
  start();
  move("d", "e");
  write("e/a", "new");
  sync("e/a");
  lose_power();
  EXPECT_EQ(read("e/a"), "new");
  EXPECT_FALSE(there("d"));
}

TEST_F(DurableNames, FoldersThatChangedPlacesComeBackAsTheyWere) {
  folder("a");
  folder("a/b");
  write("a/b/f", "bytes");
  const auto before = picture(scratch.data());
  start();
  move("a/b", "b");
  move("a", "b/a");
  const auto turned = picture(scratch.data());
  lose_power();
  EXPECT_EQ(picture(scratch.data()), before);
  move("a/b", "b");
  move("a", "b/a");
  sync("b");
  lose_power();
  EXPECT_EQ(picture(scratch.data()), turned);
}

TEST_F(DurableNames, ARemovedFolderIsBackWithItsFiles) {
  folder("d");
  write("d/a", "bytes");
  start();
  remove("d/a");
  remove("d");
  const auto lost = lose_power();
  EXPECT_EQ(read("d/a"), "bytes");
  EXPECT_EQ(lost.names_returned, 2U);
}

TEST_F(DurableNames, AFileSavedFromARemovedFolderKeepsItsNewName) {
  folder("d");
  write("d/a", "bytes");
  start();
  move("d/a", "a");
  remove("d");
  sync(".");
  lose_power();
  EXPECT_EQ(picture(scratch.data()), (FolderPicture{{"a", "file 0644 x1 5:bytes"}}));
}

TEST_F(DurableNames, HardLinksStayOneFile) {
  write("a", "old");
  link("a", "b");
  start();
  put("b", 0, "new");
  sync("a");
  remove("a");
  write("a", "another");
  lose_power();
  EXPECT_EQ(read("a"), "new");
  EXPECT_EQ(inode("a"), inode("b"));
}

TEST_F(DurableNames, AHardLinkIsANameLikeAnother) {
  write("a", "bytes");
  write("c", "bytes");
  folder("d");
  start();
  link("a", "d/unsynced");
  link("c", "d/synced");
  sync("c");
  lose_power();
  EXPECT_FALSE(there("d/unsynced"));
  EXPECT_EQ(inode("d/synced"), inode("c"));
}

TEST_F(DurableNames, HardLinksThatAreAllGoneComeBackAsOneFile) {
  write("a", "bytes");
  link("a", "b");
  folder("d");
  link("a", "d/c");
  start();
  for (const auto* name : {"a", "b", "d/c"}) remove(name);
  lose_power();
  EXPECT_EQ(inode("a"), inode("b"));
  EXPECT_EQ(inode("a"), inode("d/c"));
  EXPECT_EQ(read("d/c"), "bytes");
}

TEST_F(DurableNames, AHardLinkInARenamedFolderFindsItsFile) {
  folder("z");
  write("z/a", "bytes");
  link("z/a", "a");
  start();
  remove("a");
  move("z", "y");
  lose_power();
  EXPECT_EQ(inode("a"), inode("z/a"));
}

TEST_F(DurableNames, AFileRemovedWhileOpenIsBackAndItsLaterBytesAreNot) {
  write("a", "old");
  start();
  {
    const auto fd = open("a");
    remove("a");
    ASSERT_EQ(::pwrite(fd.get(), "new", 3, 0), 3);
  }
  lose_power();
  EXPECT_EQ(read("a"), "old");
}

TEST_F(DurableNames, ASyncOfAFileRemovedWhileOpenIsThatOfItsRemovalToo) {
  write("a", "old");
  start();
  const auto fd = open("a");
  remove("a");
  sync(fd.get());
  lose_power();
  EXPECT_FALSE(there("a"));
}

TEST_F(DurableNames, AFileThatGotItsNameAfterItsSyncHasItsBytes) {
  start();
  const base::UniqueFd fd(::open(scratch.data().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) GTEST_SKIP() << "no O_TMPFILE here";
  ASSERT_EQ(::write(fd.get(), "bytes", 5), 5);
  sync(fd.get());
  ASSERT_EQ(::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd.get())).c_str(), AT_FDCWD,
                     (scratch / "named").c_str(), AT_SYMLINK_FOLLOW),
            0);
  sync(".");
  lose_power();
  EXPECT_EQ(read("named"), "bytes");
}

TEST_F(DurableNames, AnInodeNumberUsedAgainIsAnotherFile) {
  // tmpfs gives each file a number of its own; the disk's file system takes a free one again.
  const DurableScratch disk(DurableScratch::disk());
  const auto path = disk / "a";
  const auto make = [&](const std::string& bytes) {
    const base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    struct stat status {};
    EXPECT_EQ(::fstat(fd.get(), &status), 0);
    return status.st_ino;
  };
  const auto first = make("first");
  auto made = DurableImage::create(disk.data(), disk.image());
  ASSERT_TRUE(made) << made.error().text();
  bool used_again = false;
  for (int attempt = 0; attempt < 100 && !used_again; ++attempt) {
    ASSERT_EQ(::unlink(path.c_str()), 0);
    used_again = make("second") == first;
  }
  if (!used_again) GTEST_SKIP() << "the file system took no number again";
  ASSERT_EQ(::rename(path.c_str(), (disk / "b").c_str()), 0);
  ASSERT_FALSE(std::filesystem::is_empty(disk.image()));
  ASSERT_TRUE(made->synced("."));
  EXPECT_TRUE(std::filesystem::is_empty(disk.image())) << "the first file is thought to be there still";
  ASSERT_TRUE(made->power_loss());
  EXPECT_EQ(picture(disk.data()), (FolderPicture{{"b", "file 0644 x1 0:"}}));  // not "first"
}

TEST_F(DurableNames, AFolderWithTheNameOfTheWorkingPlaceIsNotHarmed) {
  folder(".power-loss-0");
  write(".power-loss-0/a", "bytes");
  write("b", "bytes");
  start();
  move("b", "c");
  folder(".power-loss-1");
  move(".power-loss-0/a", ".power-loss-1/a");
  move(".power-loss-0", "elsewhere");
  lose_power();
  EXPECT_EQ(picture(scratch.data()), (FolderPicture{{".power-loss-0", "folder 0755"},
                                                    {".power-loss-0/a", "file 0644 x1 5:bytes"},
                                                    {"b", "file 0644 x1 5:bytes"}}));
}

}  // namespace
}  // namespace leafcutter::node::tests
