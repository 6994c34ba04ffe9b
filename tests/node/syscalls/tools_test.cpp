// Programs of the distribution, unmodified, under faults that their own recovery is written for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

TEST(Tools, CpSaysThatTheDiskIsFull) {
  const ScratchFolder folder;
  std::ofstream(folder / "from") << std::string(100000, 'x');
  const auto outcome = run({"cp", folder / "from", folder / "to"},
                           {.families = {"write"},
                            .data_folder = folder.path(),
                            .faults = {fault("errno", "write", "data:to", 1, {{"error", "ENOSPC"}})}});
  EXPECT_TRUE(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 1) << outcome.output;
  EXPECT_FALSE(outcome.fired().is_null());
}

TEST(Tools, DdStopsAtTheThirdBlock) {
  const ScratchFolder folder;
  const auto outcome = run({"dd", "if=/dev/zero", "of=" + (folder / "a"), "bs=512", "count=8", "status=none"},
                           {.families = {"write"},
                            .data_folder = folder.path(),
                            .faults = {fault("errno", "write", "data:a", 3, {{"error", "EIO"}})}});
  EXPECT_FALSE(outcome.exited_well());
  EXPECT_EQ(contents(folder / "a").size(), 1024u);
}

std::string rows(const ScratchFolder& folder) {
  return run({"sqlite3", folder / "orders.db", "select count(*) from t; pragma integrity_check;"},
             {.families = {}, .data_folder = folder.path()})
      .output;
}

Outcome insert(const ScratchFolder& folder, std::vector<scenarios::Fault> faults) {
  EXPECT_TRUE(
      run({"sqlite3", folder / "orders.db", "create table t(x);"}, {.families = {}, .data_folder = folder.path()})
          .exited_well());
  return run(
      {"sqlite3", folder / "orders.db", "insert into t values(1);"},
      {.families = {"write", "fsync", "unlink", "open"}, .data_folder = folder.path(), .faults = std::move(faults)});
}

TEST(Tools, SqliteReportsAFailedSync) {
  const ScratchFolder folder;
  const auto outcome = insert(folder, {fault("errno", "fsync", "data:orders.db", 1, {{"error", "EIO"}})});
  EXPECT_FALSE(outcome.exited_well());
  EXPECT_FALSE(outcome.fired().is_null());
  EXPECT_EQ(rows(folder), "0\nok\n");
}

TEST(Tools, SqliteCommitsWhenTheJournalIsRemoved) {
  const ScratchFolder before, after;
  EXPECT_TRUE(WIFSIGNALED(insert(before, {fault("crash-before", "unlink", "data:orders.db-journal")}).status));
  EXPECT_TRUE(WIFSIGNALED(insert(after, {fault("crash-after", "unlink", "data:orders.db-journal")}).status));
  EXPECT_EQ(rows(before), "0\nok\n") << "killed before the commit point: rolled back";
  EXPECT_EQ(rows(after), "1\nok\n") << "killed after it: there";
}

TEST(Tools, GitLeavesNoRefWhenItIsKilledBeforeTheRename) {
  const ScratchFolder folder;
  const auto repository = folder / "repository";
  ASSERT_TRUE(run({"git", "init", "-q", repository}, {.families = {}, .data_folder = folder.path()}).exited_well());
  const auto commit = [&](std::vector<scenarios::Fault> faults) {
    return run(
        {"git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m",
         "x"},
        {.families = {"rename", "write", "mkdir", "unlink"}, .data_folder = repository, .faults = std::move(faults)});
  };
  const auto clean = commit({});
  ASSERT_TRUE(clean.exited_well()) << clean.output;
  const std::string head = clean.count("rename", "data:.git/refs/heads/master") > 0 ? "master" : "main";
  EXPECT_EQ(clean.count("rename", "data:.git/refs/heads/" + head), 1u);
  EXPECT_GE(clean.count("rename", "data:.git/objects/#/#"), 1u);
  const auto first = contents(repository + "/.git/refs/heads/" + head);
  EXPECT_TRUE(WIFSIGNALED(commit({fault("crash-before", "rename", "data:.git/refs/heads/" + head)}).status));
  EXPECT_EQ(contents(repository + "/.git/refs/heads/" + head), first);
}

}  // namespace
}  // namespace leafcutter::node::tests
