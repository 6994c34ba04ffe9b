// What is durable: honest syncs, syncs that lie, syncs that fail and lose their pages; seen after a power loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "harness.hpp"
#include "node/syscalls/durable_image.hpp"

namespace leafcutter::node::tests {
namespace {

class Syncs : public testing::Test {
 protected:
  Syncs() {
    std::filesystem::create_directory(folder_ / "data");
    std::ofstream(data("a")) << "old";
    auto image = DurableImage::create(folder_ / "data", folder_ / "image");
    if (image) image_ = std::make_shared<DurableImage>(std::move(*image));
  }
  void SetUp() override { ASSERT_NE(image_, nullptr); }
  std::string data(const std::string& name) const { return folder_ / "data/" + name; }
  Outcome steps(std::vector<std::string> words, std::vector<scenarios::Fault> faults) {
    words.insert(words.begin(), program("steps"));
    return run(words, {.families = {"write", "fsync", "mkdir"},
                       .data_folder = folder_ / "data",
                       .faults = std::move(faults),
                       .working_folder = folder_ / "data",
                       .image = image_});
  }
  /// What is in the file `name` after the power went.
  std::string after_power_loss(const std::string& name = "a") {
    const auto lost = image_->power_loss();
    EXPECT_TRUE(lost) << lost.error().text();
    return contents(data(name));
  }
  static scenarios::Fault power_loss_at_mkdir() { return fault("power-loss-before", "mkdir", "data:end"); }

  ScratchFolder folder_;
  std::shared_ptr<DurableImage> image_;
};

TEST_F(Syncs, WithoutOneEverythingIsGone) {
  const auto outcome = steps({"write,a,new", "mkdir,end,0755"}, {power_loss_at_mkdir()});
  EXPECT_TRUE(WIFSIGNALED(outcome.status)) << outcome.failure;
  EXPECT_EQ(outcome.power_losses, 1);
  EXPECT_EQ(contents(data("a")), "oldnew");
  EXPECT_EQ(after_power_loss(), "old");
}

TEST_F(Syncs, ACrashLosesNothing) {
  const auto outcome = steps({"write,a,new", "mkdir,end,0755"}, {fault("crash-before", "mkdir", "data:end")});
  EXPECT_EQ(outcome.crashes, 1);
  EXPECT_EQ(outcome.power_losses, 0);
}

struct Honest {
  std::string name;
  std::vector<std::string> steps;
};
void PrintTo(const Honest& c, std::ostream* out) { *out << c.name; }

class HonestSync : public Syncs, public testing::WithParamInterface<Honest> {};

TEST_P(HonestSync, MakesDurable) {
  auto words = GetParam().steps;
  words.emplace_back("mkdir,end,0755");
  const auto outcome = steps(words, {power_loss_at_mkdir()});
  EXPECT_TRUE(WIFSIGNALED(outcome.status)) << outcome.failure << outcome.output;
  EXPECT_THAT(outcome.output, testing::Not(testing::HasSubstr("-1")));
  EXPECT_EQ(after_power_loss(), "oldnew");
}

INSTANTIATE_TEST_SUITE_P(
    Calls, HonestSync,
    testing::Values(Honest{"fsync", {"write,a,new", "fsync,a"}}, Honest{"fdatasync", {"write,a,new", "fdatasync,a"}},
                    Honest{"sync", {"write,a,new", "sync"}}, Honest{"syncfs", {"write,a,new", "syncfs,."}},
                    Honest{"o_sync", {"write-sync,a,new"}}, Honest{"o_dsync", {"write-dsync,a,new"}}),
    [](const auto& named) { return named.param.name; });

TEST_F(Syncs, OfAMappingMakeItsPagesDurable) {
  const auto outcome = steps({"msync,a,new", "mkdir,end,0755"}, {power_loss_at_mkdir()});
  EXPECT_TRUE(WIFSIGNALED(outcome.status)) << outcome.failure;
  EXPECT_EQ(after_power_loss(), "new");
}

TEST_F(Syncs, OfARangeMakeNoSizeDurable) {
  const auto outcome =
      steps({"pwrite,a,NEW,0", "write,a,more", "sync-range,a", "mkdir,end,0755"}, {power_loss_at_mkdir()});
  EXPECT_TRUE(WIFSIGNALED(outcome.status)) << outcome.failure;
  EXPECT_EQ(after_power_loss(), "NEW");
}

TEST_F(Syncs, OfAnotherFileMakeNothingDurable) {
  std::ofstream(data("b")) << "";
  const auto outcome = steps({"write,a,new", "fsync,b", "write,b,x", "mkdir,end,0755"}, {power_loss_at_mkdir()});
  EXPECT_TRUE(WIFSIGNALED(outcome.status)) << outcome.failure;
  EXPECT_EQ(after_power_loss(), "old");
}

TEST_F(Syncs, ThatFailWithAPlainErrorLeaveTheBytesToTheNext) {
  const auto outcome = steps({"write,a,new", "fsync,a", "fsync,a", "mkdir,end,0755"},
                             {fault("errno", "fsync", "data:a", 1, {{"error", "EIO"}}), power_loss_at_mkdir()});
  EXPECT_EQ(outcome.output, "write 3 0\nfsync -1 5\nfsync 0 0\n");
  EXPECT_EQ(after_power_loss(), "oldnew");
}

TEST_F(Syncs, ThatFailAndLoseTheirPagesLeaveNothingToTheNext) {
  const auto outcome = steps({"write,a,new", "fsync,a", "fsync,a", "mkdir,end,0755"},
                             {fault("fsync-lost", "fsync", "data:a"), power_loss_at_mkdir()});
  EXPECT_EQ(outcome.output, "write 3 0\nfsync -1 5\nfsync 0 0\n");
  const auto evidence = outcome.of_kind("fault.fired").front().attrs["evidence"];
  EXPECT_EQ(evidence["errno_name"], "EIO");
  EXPECT_EQ(evidence["dropped_bytes"], 6) << "the page, as far as the file goes";
  EXPECT_EQ(contents(data("a")), "oldnew") << "they can still be read";
  EXPECT_EQ(after_power_loss().substr(0, 3), "old");
  EXPECT_THAT(contents(data("a")), testing::Not(testing::HasSubstr("new")));
}

TEST_F(Syncs, ThatFailDropWhatWasWrittenSinceTheLastOneAndNothingElse) {
  const auto outcome = steps({"fsync,a", "write,a,new", "fsync,a", "fsync,a"},
                             {fault("fsync-lost", "fsync", "data:a", 1), fault("fsync-lost", "fsync", "data:a", 2),
                              fault("fsync-lost", "fsync", "data:a", 3)});
  std::vector<int> dropped;
  for (const auto& event : outcome.of_kind("fault.fired"))
    dropped.push_back(event.attrs["evidence"]["dropped_bytes"].get<int>());
  EXPECT_EQ(dropped, (std::vector<int>{0, 6, 0})) << "what was dropped once is not dropped again";
}

TEST_F(Syncs, ThatLieMakeNothingDurable) {
  const auto outcome = steps({"write,a,new", "fsync,a", "mkdir,end,0755"},
                             {fault("fsync-lie", "fsync", "data:a"), power_loss_at_mkdir()});
  EXPECT_EQ(outcome.output, "write 3 0\nfsync 0 0\n");
  EXPECT_EQ(after_power_loss(), "old");
}

TEST_F(Syncs, AfterALieAnHonestOneMakesDurable) {
  const auto outcome = steps({"write,a,new", "fsync,a", "fsync,a", "mkdir,end,0755"},
                             {fault("fsync-lie", "fsync", "data:a"), power_loss_at_mkdir()});
  EXPECT_EQ(outcome.output, "write 3 0\nfsync 0 0\nfsync 0 0\n");
  EXPECT_EQ(after_power_loss(), "oldnew");
}

TEST_F(Syncs, ThatRunBeforeThePowerGoesMakeDurable) {
  for (const auto* kind : {"power-loss-after", "power-loss-before"}) {
    const auto outcome = steps({"write,a,new", "fsync,a"}, {fault(kind, "fsync", "data:a")});
    EXPECT_EQ(outcome.power_losses, 1);
    EXPECT_EQ(after_power_loss(), "oldnew") << kind << ": the second one finds it durable already";
  }
}

TEST_F(Syncs, ThatDidNotRunBeforeThePowerGoesMakeNothingDurable) {
  steps({"write,a,new", "fsync,a"}, {fault("power-loss-before", "fsync", "data:a")});
  EXPECT_EQ(after_power_loss(), "old");
}

TEST_F(Syncs, ASynchronousWriteThatIsCutShortIsDurableAsFarAsItWent) {
  const auto outcome = steps({"write-sync,a,new", "mkdir,end,0755"},
                             {fault("short", "write", "data:a", 1, {{"bytes", 2}}), power_loss_at_mkdir()});
  EXPECT_EQ(outcome.output, "write-sync 2 0\n");
  EXPECT_EQ(after_power_loss(), "oldne");
}

TEST_F(Syncs, WithoutAnImageNothingIsLostAndNothingLies) {
  for (const auto* kind : {"fsync-lost", "fsync-lie"}) {
    const auto outcome = run({program("steps"), "write,a,new", "fsync,a"}, {.families = {"fsync"},
                                                                            .data_folder = folder_ / "data",
                                                                            .faults = {fault(kind, "fsync", "data:a")},
                                                                            .working_folder = folder_ / "data"});
    EXPECT_EQ(outcome.output, "write 3 0\nfsync 0 0\n");
    EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
  }
}

/// With synchronous=FULL, sqlite3 does not sync the removal of its journal, and says so: the commit may be rolled back
/// after a power loss. With EXTRA it does.
TEST_F(Syncs, SqliteCommitsAreDurableAsFarAsItPromises) {
  const auto commit = [&](const std::string& name, const std::string& synchronous) {
    const auto outcome = run(
        {"sqlite3", data(name), "pragma synchronous=" + synchronous + "; create table t(x); insert into t values(7);"},
        {.families = {"write", "fsync"}, .data_folder = folder_ / "data", .image = image_});
    EXPECT_TRUE(outcome.exited_well()) << outcome.output << outcome.failure;
  };
  const auto rows = [&](const std::string& name) {
    after_power_loss();
    return run({"sqlite3", data(name), "select x from t; pragma integrity_check;"}, {}).output;
  };
  commit("full.db", "full");
  EXPECT_EQ(rows("full.db"), "ok\n");
  commit("extra.db", "extra");
  EXPECT_EQ(rows("extra.db"), "7\nok\n");
}

}  // namespace
}  // namespace leafcutter::node::tests
