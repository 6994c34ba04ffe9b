// Services live in namespaces of their own, as in a leaf: their pids, paths and mounts are not the supervisor's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

class Apart : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(run({"unshare", "-Urmpf", "--mount-proc", "true"}, {}).exited_well())
        << "this host gives no user namespaces: `leafcutter doctor` says what would enable them (most often sysctl "
           "kernel.unprivileged_userns_clone=1, user.max_user_namespaces, or a container that may create them)";
  }
  /// `script` runs as process 1 of its own pid, mount and user namespace, and calls steps "$0".
  Outcome apart(const std::string& script, Setting setting) const {
    setting.data_folder = folder_.path();
    setting.working_folder = folder_.path();
    return run({"unshare", "-Urmpf", "--mount-proc", "sh", "-c", script, program("steps")}, setting);
  }
  ScratchFolder folder_;
};

TEST_F(Apart, ObjectsAreNamedAndStruck) {
  const auto outcome = apart("exec \"$0\" write,a,one mkdir,sub,0755 fsync,a rename,a,sub/b",
                             {.families = {"write", "mkdir", "fsync", "rename"},
                              .faults = {fault("errno", "fsync", "data:a", 1, {{"error", "EIO"}})}});
  ASSERT_TRUE(outcome.exited_well()) << outcome.output << outcome.failure;
  EXPECT_EQ(outcome.output, "write 3 0\nmkdir 0 0\nfsync -1 5\nrename 0 0\n");
  EXPECT_EQ(outcome.count("write", "data:a"), 1u);
  EXPECT_EQ(outcome.count("rename", "data:sub/b"), 1u);
}

TEST_F(Apart, CallsAreCarriedOut) {
  const auto outcome = apart("exec \"$0\" write,a,one write,a,two rename,a,b",
                             {.families = {"write", "rename"}, .faults = {fault("crash-after", "rename", "data:b")}});
  EXPECT_TRUE(WIFSIGNALED(outcome.status)) << outcome.output;
  EXPECT_EQ(outcome.fired()["evidence"]["result"], 0);
  EXPECT_EQ(contents(folder_ / "b"), "onetwo");
  EXPECT_FALSE(exists(folder_ / "a"));
}

TEST_F(Apart, APathMeansWhatItMeansForTheService) {
  // The service mounts over a folder: what is made there is not made in the folder that the supervisor sees.
  std::filesystem::create_directory(folder_ / "over");
  const auto outcome = apart("mount -t tmpfs none over && exec \"$0\" mkdir,over/new,0755",
                             {.families = {"mkdir"}, .faults = {fault("crash-after", "mkdir", "data:over/new")}});
  EXPECT_TRUE(WIFSIGNALED(outcome.status)) << outcome.output;
  EXPECT_EQ(outcome.fired()["evidence"]["result"], 0);
  EXPECT_FALSE(exists(folder_ / "over/new"));
}

}  // namespace
}  // namespace leafcutter::node::tests
