// A disk that is full after so many bytes: one amount for every call that needs space, and given back by what frees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

class NoSpace : public testing::Test {
 protected:
  Outcome with(std::uint64_t after, std::vector<std::string> steps, const std::string& family = "write",
               const std::string& resource = "data:a", Value more = Value::object()) {
    more["after"] = after;
    return under({fault("no-space", family, resource, 1, std::move(more))}, std::move(steps));
  }
  Outcome under(std::vector<scenarios::Fault> faults, std::vector<std::string> steps) {
    steps.insert(steps.begin(), program("steps"));
    return run(steps, {.families = {"write", "allocate", "open", "mkdir", "truncate", "rename", "unlink", "read"},
                       .data_folder = folder_.path(),
                       .faults = std::move(faults),
                       .working_folder = folder_.path()});
  }
  ScratchFolder folder_;
};

TEST_F(NoSpace, TheBytesThatFitAreWrittenAndTheNextCallFails) {
  const auto outcome = with(10, {"write,a,123456", "write,a,abcdef", "write,a,x", "write,a,y"});
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure;
  EXPECT_EQ(outcome.output, "write 6 0\nwrite 4 0\nwrite -1 28\nwrite -1 28\n");
  EXPECT_EQ(contents(folder_ / "a"), "123456abcd");
  const auto evidence = outcome.fired()["evidence"];
  EXPECT_EQ(evidence["asked"], 6);
  EXPECT_EQ(evidence["left"], 4);
  EXPECT_EQ(evidence["carried"], 4);
  EXPECT_EQ(evidence["errno_name"], "ENOSPC");
  EXPECT_EQ(outcome.undone()["strikes"], 3);
}

TEST_F(NoSpace, ThatIsNeverUsedUpDoesNotFire) {
  const auto outcome = with(10, {"write,a,12345", "write,a,12345"});
  EXPECT_EQ(outcome.output, "write 5 0\nwrite 5 0\n");
  EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
}

TEST_F(NoSpace, BeginsAtItsSite) {
  const auto outcome = with(0, {"write,b,12345", "mkdir,d,0755", "write,a,1", "write,b,1", "mkdir,e,0755"});
  EXPECT_EQ(outcome.output, "write 5 0\nmkdir 0 0\nwrite -1 28\nwrite -1 28\nmkdir -1 28\n");
}

TEST_F(NoSpace, IsOneAmountForEveryCallThatNeedsSpace) {
  const auto outcome = with(20, {"write,a,12345", "writev,a,12345", "fallocate,b,8", "pwrite,c,12345,0"});
  EXPECT_EQ(outcome.output, "write 5 0\nwritev 5 0\nfallocate 0 0\npwrite 2 0\n");
}

TEST_F(NoSpace, AnAllocationThatDoesNotFitFailsWhole) {
  std::ofstream(folder_ / "c") << "";
  const auto outcome = with(9, {"write,a,1", "fallocate,b,9", "fallocate,b,8", "fallocate,c,1"});
  EXPECT_EQ(outcome.output, "write 1 0\nfallocate -1 28\nfallocate 0 0\nfallocate -1 28\n");
}

TEST_F(NoSpace, GrowingAFileUsesBytesAndShrinkingGivesThemBack) {
  const auto outcome =
      with(10, {"write,a,1234567890", "ftruncate,a,11", "truncate,a,4", "ftruncate,a,10", "write,a,x"});
  EXPECT_EQ(outcome.output, "write 10 0\nftruncate -1 28\ntruncate 0 0\nftruncate 0 0\nwrite -1 28\n");
}

TEST_F(NoSpace, OverwritingUsesNone) {
  std::ofstream(folder_ / "b") << "0123456789";
  const auto outcome = with(0, {"write,a,1", "pwrite,b,abc,2", "pwrite,b,abcd,8", "pwrite,b,x,10"});
  EXPECT_EQ(outcome.output, "write -1 28\npwrite 3 0\npwrite 2 0\npwrite -1 28\n");
  EXPECT_EQ(contents(folder_ / "b"), "01abc567ab");
}

TEST_F(NoSpace, ANewNameNeedsThatSomeAreLeft) {
  std::ofstream(folder_ / "old") << "12";
  const auto outcome =
      with(1, {"write,a,1", "open,new,0644", "creat,new", "openat2,.,new", "mkdir,d,0755", "link,old,new",
               "symlinkat,old,.,new", "rename,old,moved", "open,moved,0644", "write,moved,34", "mkdir,d,0755"});
  EXPECT_EQ(outcome.output,
            "write 1 0\nopen -1 28\ncreat -1 28\nopenat2 -1 28\nmkdir -1 28\nlink -1 28\nsymlinkat -1 28\n"
            "rename 0 0\nopen 0 0\nwrite 2 0\nmkdir -1 28\n")
      << "renaming needs none; opening an old file with O_TRUNC gives its two bytes back, and they are used again";
}

TEST_F(NoSpace, RemovingGivesBack) {
  std::ofstream(folder_ / "big") << "12345678";
  std::ofstream(folder_ / "two") << "1234";
  const auto outcome = with(0, {"write,a,1", "link,two,twin", "unlink,two", "write,a,1", "unlink,big",
                                "write,a,1234567", "mkdir,d,0755", "write,a,12", "mkdir,e,0755"});
  EXPECT_EQ(outcome.output,
            "write -1 28\nlink -1 28\nunlink 0 0\nwrite 1 0\nunlink 0 0\nwrite 7 0\nmkdir 0 0\nwrite 2 0\nmkdir 0 0\n");
}

TEST_F(NoSpace, RemovingOneOfTwoNamesGivesNothingBack) {
  std::ofstream(folder_ / "two") << "1234";
  std::filesystem::create_hard_link(folder_ / "two", folder_ / "twin");
  const auto outcome = with(0, {"write,a,1", "unlink,two", "write,a,1", "unlink,twin", "write,a,1"});
  EXPECT_EQ(outcome.output, "write -1 28\nunlink 0 0\nwrite -1 28\nunlink 0 0\nwrite 1 0\n");
}

TEST_F(NoSpace, RenamingOverAFileGivesItsBytesBack) {
  std::ofstream(folder_ / "old") << "1234";
  std::ofstream(folder_ / "tmp") << "12";
  const auto outcome = with(0, {"write,a,1", "rename,tmp,old", "write,a,12345"});
  EXPECT_EQ(outcome.output, "write -1 28\nrename 0 0\nwrite 4 0\n");
}

TEST_F(NoSpace, CopiesUseWhatTheyCopy) {
  std::ofstream(folder_ / "from") << "0123456789";
  std::ofstream(folder_ / "d") << "";
  const auto outcome = with(12, {"write,a,1", "sendfile,from,b", "copy,from,c", "copy,from,d"});
  EXPECT_EQ(outcome.output, "write 1 0\nsendfile 10 0\ncopy 1 0\ncopy -1 28\n");
  EXPECT_EQ(contents(folder_ / "c"), "0");
}

/// It ends where its bytes come from, and uses what arrives all the same.
TEST_F(NoSpace, ACopyThatIsCutOrMadeWrongAtItsSourceUsesWhatArrived) {
  std::ofstream(folder_ / "from") << "0123456789";
  for (const auto* copy : {"copy", "copy-at", "sendfile", "sendfile-at"}) {
    const auto copied = [&](const scenarios::Fault& other, std::uint64_t after) {
      for (const auto* name : {"a", "b"}) std::filesystem::remove(folder_ / name);
      return under({fault("no-space", "write", "data:a", 1, {{"after", after}}), other},
                   {"write,a,1", std::string(copy) + ",from,b", "write,a,123456789"})
          .output;
    };
    const auto cut = fault("short", "read", "data:from", 1, {{"bytes", 4}});
    EXPECT_EQ(copied(cut, 10), "write 1 0\n" + std::string(copy) + " 4 0\nwrite 5 0\n");
    EXPECT_EQ(copied(cut, 5), "write 1 0\n" + std::string(copy) + " 4 0\nwrite -1 28\n");
    EXPECT_EQ(copied(cut, 4), "write 1 0\n" + std::string(copy) + " 3 0\nwrite -1 28\n") << "no more has room";
    const auto wrong = fault("corrupt", "read", "data:from", 1, {{"offset", 3}});
    EXPECT_EQ(copied(wrong, 15), "write 1 0\n" + std::string(copy) + " 10 0\nwrite 4 0\n");
    EXPECT_EQ(copied(wrong, 4), "write 1 0\n" + std::string(copy) + " 3 0\nwrite -1 28\n");
  }
}

TEST_F(NoSpace, WhatIsCutOffUsesNone) {
  std::ofstream(folder_ / "b") << "0123456789";
  const auto no_space = fault("no-space", "write", "data:a", 1, {{"after", 10}});
  const auto cut = fault("short", "write", "data:b", 1, {{"bytes", 3}});
  const std::vector<std::string> steps = {"write,a,1", "pwrite,b,abcdef,8", "write,a,123456789"};
  EXPECT_EQ(under({no_space, cut}, steps).output, "write 1 0\npwrite 3 0\nwrite 8 0\n") << "two were within the file";
  std::filesystem::remove(folder_ / "a");
  std::ofstream(folder_ / "b") << "0123456789";
  EXPECT_EQ(under({cut, no_space}, steps).output, "write 1 0\npwrite 3 0\nwrite 8 0\n") << "whichever comes first";
}

TEST_F(NoSpace, TwoDisksOfOneFileEachLoseWhatWasWritten) {
  scenarios::Aim b;
  b.path = "b";
  const auto whole = rule("no-space", "write", {{"after", 8}}), part = rule("no-space", "write", {{"after", 4}}, b);
  for (const auto& faults : {std::vector{whole, part}, std::vector{part, whole}}) {
    for (const auto* name : {"b", "c"}) std::filesystem::remove(folder_ / name);
    EXPECT_EQ(under(faults, {"write,b,123456", "write,b,1", "write,c,123456"}).output,
              "write 4 0\nwrite -1 28\nwrite 4 0\n");
  }
}

TEST_F(NoSpace, ACallThatHasNoRoomIsNotCarriedOutForACrash) {
  scenarios::Aim a;
  a.path = "a";
  const auto no_space = rule("no-space", "write", {{"after", 4}});
  for (const auto* kind : {"crash-after", "torn"}) {
    const auto crash = rule(kind, "write", kind == std::string("torn") ? Value({{"bytes", 5}}) : Value::object(), a);
    std::filesystem::remove(folder_ / "a");
    const auto outcome = under({crash, no_space}, {"write,a,123456"});
    EXPECT_EQ(outcome.output, "write 4 0\n") << kind;
    EXPECT_EQ(outcome.crashes, 0);
    EXPECT_EQ(outcome.of_kind("syscall").back().attrs["detail"],
              kind + std::string(" not possible: the disk of another fault is full first"));
    EXPECT_EQ(under({crash, no_space}, {"write,b,123", "fsync,b"}).crashes, 0) << "another file";
    std::filesystem::remove(folder_ / "a");
    std::filesystem::remove(folder_ / "b");
    EXPECT_EQ(under({crash, rule("no-space", "write", {{"after", 6}})}, {"write,a,123456"}).crashes, 1)
        << "it has room";
  }
}

TEST_F(NoSpace, MayBeAQuota) {
  const auto outcome = with(0, {"write,a,1"}, "write", "data:a", {{"error", "EDQUOT"}});
  EXPECT_EQ(outcome.output, "write -1 122\n");
}

TEST_F(NoSpace, OtherFoldersPipesAndSocketsHaveTheirOwn) {
  const ScratchFolder elsewhere;
  const auto outcome =
      with(0, {"write,a,1", "write," + (elsewhere / "b") + ",1", "pipe,1", "mkdir," + (elsewhere / "d") + ",0755"});
  EXPECT_EQ(outcome.output, "write -1 28\nwrite 1 0\npipe 1 0\nmkdir 0 0\n");
}

TEST_F(NoSpace, OfARuleWithAPathIsForThatPath) {
  const ScratchFolder elsewhere;
  scenarios::Aim below;
  below.path = elsewhere.path() + "/*";
  const auto b = elsewhere / "b";
  const auto outcome = under({rule("no-space", "write", {{"after", 3}}, below)},
                             {"write,a,12345", "write," + b + ",12345", "mkdir," + (elsewhere / "d") + ",0755",
                              "mkdir,d,0755", "unlink," + b, "mkdir," + (elsewhere / "d") + ",0755"});
  EXPECT_EQ(outcome.output, "write 5 0\nwrite 3 0\nmkdir -1 28\nmkdir 0 0\nunlink 0 0\nmkdir 0 0\n");
}

TEST_F(NoSpace, ACallThatFailsForAnotherReasonUsesNone) {
  const auto outcome = under({fault("no-space", "write", "data:a", 1, {{"after", 5}}),
                              fault("errno", "write", "data:a", 2, {{"error", "EIO"}})},
                             {"write,a,1", "write,a,1234", "write,a,5678", "write,a,9"});
  EXPECT_EQ(outcome.output, "write 1 0\nwrite -1 5\nwrite 4 0\nwrite -1 28\n");
}

/// sqlite3 gets SQLITE_FULL, says so, and rolls back.
TEST_F(NoSpace, IsWhatAProgramUnderstands) {
  const auto create = run({"sqlite3", folder_ / "t.db", "create table t(x);"}, {.data_folder = folder_.path()});
  ASSERT_TRUE(create.exited_well());
  const auto outcome = run({"sh", "-c", "exec sqlite3 t.db 'insert into t values(randomblob(100000));' 2>&1"},
                           {.families = {"write", "allocate", "open", "mkdir", "truncate", "rename", "unlink"},
                            .data_folder = folder_.path(),
                            .faults = {fault("no-space", "write", "data:t.db", 1, {{"after", 20000}})},
                            .working_folder = folder_.path()});
  EXPECT_FALSE(outcome.exited_well());
  EXPECT_THAT(outcome.output, testing::HasSubstr("database or disk is full"));
  EXPECT_EQ(run({"sqlite3", folder_ / "t.db", "select count(*) from t; pragma integrity_check;"}, {}).output,
            "0\nok\n");
}

}  // namespace
}  // namespace leafcutter::node::tests
