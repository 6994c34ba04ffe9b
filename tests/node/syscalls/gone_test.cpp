// A task may be killed at any moment, and before Linux 5.19 a signal takes it out of its call: what was found out about
// it then holds no more, and what was decided for it was not told to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness.hpp"
#include "moments.hpp"
#include "node/syscalls/durable_image.hpp"

namespace leafcutter::node::tests {
namespace {

/// Without the program's own output, which goes to descriptor 1, and without what the dynamic linker reads: headers of
/// libraries, which are larger.
std::function<bool(const seccomp_data&)> the_call(int number) {
  const auto reads = number == SYS_read || number == SYS_pread64;
  return [number, reads](const seccomp_data& call) {
    return call.nr == number && call.args[0] != 1 && (!reads || call.args[2] < 20);
  };
}

void kill_it(const Waiting& call) {
  ::kill(call.task(), SIGKILL);
  EXPECT_TRUE(call.has_gone());
}

void interrupt_it(const Waiting& call) {
  ::kill(call.task(), SIGUSR1);
  EXPECT_TRUE(call.has_gone()) << "the signal did not take the task out of its call";
}

/// Whoever was killed first is followed by another one, as a service's worker is.
std::vector<std::string> twice(const std::string& first, const std::string& second) {
  return {"sh", "-c", "\"$0\" \"$1\"; \"$0\" \"$2\"", program("steps"), first, second};
}

struct Changing {
  const char* name;
  int call;
  const char* family;
  const char* resource;
  const char* step;
};
void PrintTo(const Changing& c, std::ostream* out) { *out << c.name; }

constexpr Changing changing[] = {
    {"write", SYS_write, "write", "data:a", "write,a,one"},
    {"pwrite64", SYS_pwrite64, "write", "data:a", "pwrite,a,one,0"},
    {"writev", SYS_writev, "write", "data:a", "writev,a,one"},
    {"pwritev", SYS_pwritev, "write", "data:a", "pwritev,a,one,0"},
    {"pwritev2", SYS_pwritev2, "write", "data:a", "pwritev2,a,one,0"},
    {"sendfile", SYS_sendfile, "write", "data:a", "sendfile,from,a"},
    {"sendfile_at", SYS_sendfile, "write", "data:a", "sendfile-at,from,a"},
    {"copy_file_range", SYS_copy_file_range, "write", "data:a", "copy,from,a"},
    {"copy_file_range_at", SYS_copy_file_range, "write", "data:a", "copy-at,from,a"},
    {"splice", SYS_splice, "write", "data:a", "splice,a,one"},
    {"truncate", SYS_truncate, "truncate", "data:from", "truncate,from,2"},
    {"ftruncate", SYS_ftruncate, "truncate", "data:from", "ftruncate,from,2"},
    {"fallocate", SYS_fallocate, "allocate", "data:from", "fallocate,from,100"},
    {"rename", SYS_rename, "rename", "data:a", "rename,from,a"},
    {"renameat2", SYS_renameat2, "rename", "data:a", "renameat2,from,a"},
    {"link", SYS_link, "rename", "data:a", "link,from,a"},
    {"symlinkat", SYS_symlinkat, "rename", "data:a", "symlinkat,from,.,a"},
    {"unlink", SYS_unlink, "unlink", "data:from", "unlink,from"},
    {"unlinkat", SYS_unlinkat, "unlink", "data:from", "unlinkat,.,from"},
    {"mkdir", SYS_mkdir, "mkdir", "data:a", "mkdir,a,0755"},
    {"creat", SYS_creat, "open", "data:from", "creat,from"},
    {"open", SYS_open, "open", "data:from", "open,from,0644"},
    {"openat2", SYS_openat2, "open", "data:b", "openat2,.,b"},
};

class Gone : public testing::TestWithParam<Changing> {};

/// What is seen of a folder from outside.
std::string snapshot(const std::string& folder) {
  std::vector<std::string> lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    auto line = entry.path().filename().string();
    if (entry.is_regular_file()) line += " " + contents(entry.path());
    if (line != "a ") lines.push_back(line);  // opened for its write before
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

/// Its call would be carried out for the task, and everything killed. At each moment that something was looked at, the
/// task is killed; and then nothing may happen any more.
TEST_P(Gone, WhatIsCarriedOutIsNotForATaskThatWasKilledMeanwhile) {
  const auto& c = GetParam();
  for (unsigned which = 1; which < 20; ++which) {
    const ScratchFolder folder;
    std::ofstream(folder / "from") << "0123456789";
    const auto before = snapshot(folder.path());
    bool checked = false;
    const AtMoment moment(Moment::after_look, which, the_call(c.call), [&](const Waiting& call) {
      checked = call.checked;
      kill_it(call);
    });
    const auto outcome = run({program("steps"), c.step}, {.families = {c.family},
                                                          .data_folder = folder.path(),
                                                          .faults = {fault("crash-after", c.family, c.resource)},
                                                          .working_folder = folder.path()});
    const auto after = snapshot(folder.path());
    if (moment.came() && outcome.crashes == 0) {
      EXPECT_EQ(after, before) << "moment " << which;
      EXPECT_TRUE(outcome.of_kind("fault.fired").empty()) << "moment " << which;
      EXPECT_EQ(outcome.failure, "");
      continue;
    }
    // Past the last look: the call was carried out, and what came then was too late.
    EXPECT_TRUE(!moment.came() || checked) << "it was carried out after a look, unchecked; moment " << which;
    EXPECT_NE(after, before);
    EXPECT_EQ(outcome.crashes, 1);
    EXPECT_FALSE(outcome.fired().is_null());
    return;
  }
  FAIL() << "the call was never carried out";
}

INSTANTIATE_TEST_SUITE_P(Calls, Gone, testing::ValuesIn(changing),
                         [](const auto& named) { return std::string(named.param.name); });

/// A wait is over, and the task was killed while it lasted: neither another one begins, nor does anything end there,
/// nor did it run.
TEST(GoneMeanwhile, NothingElseStrikes) {
  const auto delay = fault("delay", "write", "data:a", 1, {{"for", "20ms"}});
  const std::vector<std::vector<scenarios::Fault>> plans = {
      {delay, fault("hold", "write", "data:a", 1, {{"at-most", "1ms"}})},
      {delay, fault("crash-before", "write", "data:a")},
      {delay}};
  for (const auto& faults : plans) {
    const ScratchFolder folder;
    // Just before the delay begins.
    const AtMoment moment(Moment::after_look, 2, the_call(SYS_write), kill_it);
    const auto outcome =
        run({"sh", "-c", "\"$0\" write,a,one; sleep 1", program("steps")},
            {.families = {"write"}, .data_folder = folder.path(), .faults = faults, .working_folder = folder.path()});
    ASSERT_TRUE(moment.came());
    ASSERT_TRUE(outcome.exited_well()) << outcome.status;
    EXPECT_EQ(outcome.crashes, 0) << "the call that was to end it all has gone";
    ASSERT_EQ(outcome.of_kind("fault.fired").size(), 1u) << "the delay began";
    EXPECT_EQ(outcome.of_kind("fault.fired")[0].attrs["kind"], "delay");
    EXPECT_THAT(outcome.undone()["how"].get<std::string>(),
                testing::StartsWith("the task did not wait any more after "));
    for (const auto& event : outcome.of_kind("syscall")) EXPECT_TRUE(event.attrs["injected"]) << event.attrs;
  }
}

/// A copy whose bytes the supervisor carries through its own memory.
TEST(GoneMeanwhile, NoWrongBitIsCopied) {
  for (const auto* step : {"copy,from,a", "sendfile,from,a"})
    for (unsigned which = 1; which < 12; ++which) {
      const ScratchFolder folder;
      std::ofstream(folder / "from") << "0123456789";
      bool checked = false;
      const auto number = std::string(step).starts_with("copy") ? SYS_copy_file_range : SYS_sendfile;
      const AtMoment moment(Moment::after_look, which, the_call(number), [&](const Waiting& call) {
        checked = call.checked;
        kill_it(call);
      });
      const auto outcome =
          run({program("steps"), step}, {.families = {"read"},
                                         .data_folder = folder.path(),
                                         .faults = {fault("corrupt", "read", "data:from", 1, {{"offset", 0}})},
                                         .working_folder = folder.path()});
      EXPECT_EQ(outcome.of_kind("fault.fired").empty(), moment.came()) << "moment " << which;
      EXPECT_TRUE(!moment.came() || checked || contents(folder / "a").empty()) << step << ", moment " << which;
    }
}

/// What was read for a task that has gone would be missing to those who read from the same open file.
TEST(GoneMeanwhile, NothingIsTakenFromThoseWhoReadOn) {
  for (unsigned which = 1; which < 20; ++which) {
    const ScratchFolder folder;
    std::ofstream(folder / "from") << "0123456789";
    bool checked = false;
    const AtMoment moment(Moment::after_look, which, the_call(SYS_read), [&](const Waiting& call) {
      checked = call.checked;
      kill_it(call);
    });
    const auto outcome = run({"sh", "-c", "{ \"$0\" stdin,4; \"$0\" stdin,4; } < from", program("steps")},
                             {.families = {"read"},
                              .data_folder = folder.path(),
                              .faults = {fault("short", "read", "data:from", 1, {{"bytes", 2}})},
                              .working_folder = folder.path()});
    EXPECT_EQ(outcome.failure, "");
    if (outcome.output.starts_with("stdin 2 0 01\n")) {  // it was answered; the moment, if it came, was the other one's
      EXPECT_EQ(outcome.of_kind("fault.fired").size(), 1u);
      return;
    }
    ASSERT_TRUE(moment.came());
    EXPECT_TRUE(checked || outcome.output == "stdin 4 0 0123\n") << "moment " << which << ": " << outcome.output;
    EXPECT_TRUE(outcome.of_kind("fault.fired").empty()) << "moment " << which;
  }
  FAIL() << "the call was never answered";
}

/// That the pages of a mapping reached the disk is seen by nobody, but the crash that is to follow would be.
TEST(GoneMeanwhile, NoMappingIsSynced) {
  for (unsigned which = 1; which < 20; ++which) {
    const ScratchFolder folder;
    bool checked = false;
    const AtMoment moment(Moment::after_look, which, the_call(SYS_msync), [&](const Waiting& call) {
      checked = call.checked;
      kill_it(call);
    });
    const auto outcome = run({program("steps"), "msync,a,one"}, {.families = {"fsync"},
                                                                 .data_folder = folder.path(),
                                                                 .faults = {fault("crash-after", "fsync", "data:a")},
                                                                 .working_folder = folder.path()});
    EXPECT_EQ(outcome.crashes == 0, outcome.of_kind("fault.fired").empty());
    if (outcome.crashes == 0) {
      ASSERT_TRUE(moment.came());
      continue;
    }
    EXPECT_TRUE(!moment.came() || checked) << "it was synced after a look, unchecked; moment " << which;
    return;
  }
  FAIL() << "the mapping was never synced";
}

class GoneSyncs : public testing::Test {
 protected:
  GoneSyncs() {
    std::filesystem::create_directory(folder_ / "data");
    std::ofstream(folder_ / "data/a") << "old";
    auto image = DurableImage::create(folder_ / "data", folder_ / "image");
    if (image) image_ = std::make_shared<DurableImage>(std::move(*image));
  }
  void SetUp() override { ASSERT_NE(image_, nullptr); }
  Outcome run_both(const std::string& first, const std::string& second, std::vector<scenarios::Fault> faults) {
    return run(twice(first, second), {.families = {"write", "fsync"},
                                      .data_folder = folder_ / "data",
                                      .faults = std::move(faults),
                                      .working_folder = folder_ / "data",
                                      .image = image_});
  }
  std::string durable() {
    const auto lost = image_->power_loss();
    EXPECT_TRUE(lost) << lost.error().text();
    return contents(folder_ / "data/a");
  }
  ScratchFolder folder_;
  std::shared_ptr<DurableImage> image_;
};

TEST_F(GoneSyncs, ThatWereToFailDropNothing) {
  for (unsigned which = 1; which <= 3; ++which) {
    const auto bytes = "new" + std::to_string(which);
    std::ofstream(folder_ / "data/a") << bytes;
    const AtMoment moment(Moment::after_look, which, the_call(SYS_fsync), kill_it);
    const auto outcome = run_both("fsync,a", "fdatasync,a", {fault("fsync-lost", "fsync", "data:a")});
    ASSERT_TRUE(moment.came()) << which;
    EXPECT_TRUE(outcome.of_kind("fault.fired").empty()) << which;
    EXPECT_EQ(outcome.failure, "");
    EXPECT_EQ(durable(), bytes) << "the sync after it was honest; moment " << which;
  }
}

TEST_F(GoneSyncs, AreNoFailureOfTheSupervisor) {
  for (const auto& [step, call] : {std::pair{"fsync,a", SYS_fsync}, {"write-sync,a,x", SYS_write}})
    for (unsigned which = 1; which <= 4; ++which) {
      const AtMoment moment(Moment::after_look, which, the_call(call), kill_it);
      const auto outcome = run_both(step, "fdatasync,a", {});
      if (!moment.came()) break;
      EXPECT_EQ(outcome.failure, "") << step << ", moment " << which;
      EXPECT_THAT(outcome.output, testing::HasSubstr("fdatasync 0 0\n")) << "others are served";
    }
}

/// On a kernel before 5.19 a signal comes when all is done but the answer. `expected` is the answer, in the end.
struct Answered {
  std::string name;
  std::string kind;  ///< empty: nothing strikes
  Value params;
  std::string family;
  int call;
  std::string step;
  std::string output;
  std::string left;  ///< in the file a
};
void PrintTo(const Answered& c, std::ostream* out) { *out << c.name; }

class AnsweredAgain : public testing::TestWithParam<Answered> {};

TEST_P(AnsweredAgain, OnceAndWithoutDoingItTwice) {
  const auto& c = GetParam();
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "data");
  std::ofstream(folder / "data/a") << "0123456789";
  auto image = DurableImage::create(folder / "data", folder / "image");
  ASSERT_TRUE(image);
  const auto resource = c.family == "sleep" ? "nanosleep" : "data:a";
  std::vector<scenarios::Fault> faults;
  if (!c.kind.empty()) faults.push_back(fault(c.kind, c.family, resource, 1, c.params));
  const AtMoment moment(Moment::before_answer, 1, the_call(c.call), interrupt_it);
  const auto outcome =
      run({program("steps"), "handle", c.step}, {.families = {c.family},
                                                 .data_folder = folder / "data",
                                                 .faults = faults,
                                                 .working_folder = folder / "data",
                                                 .image = c.kind.starts_with("fsync-") || c.name == "synchronous"
                                                              ? std::make_shared<DurableImage>(std::move(*image))
                                                              : nullptr,
                                                 .old_kernel = true});
  ASSERT_TRUE(moment.came());
  ASSERT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_EQ(outcome.output, "handle 0 0\n" + c.output);
  EXPECT_EQ(contents(folder / "data/a"), c.left);
  EXPECT_EQ(outcome.count(c.family, resource), 1u);
  EXPECT_EQ(outcome.of_kind("fault.fired").size(), faults.size());
  for (const auto& event : outcome.of_kind("fault.undone"))
    EXPECT_FALSE(event.attrs.contains("strikes")) << "it struck once: " << event.attrs;
  EXPECT_EQ(outcome.of_kind("syscall").size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Effects, AnsweredAgain,
    testing::Values(
        Answered{"none", "", {}, "write", SYS_write, "write,a,more", "write 4 0\n", "0123456789more"},
        Answered{"synchronous", "", {}, "write", SYS_write, "write-sync,a,more", "write-sync 4 0\n", "0123456789more"},
        Answered{
            "errno", "errno", {{"error", "EIO"}}, "write", SYS_write, "write,a,more", "write -1 5\n", "0123456789"},
        Answered{"late",
                 "errno",
                 {{"error", "EIO"}, {"late", "5ms"}},
                 "write",
                 SYS_write,
                 "write,a,more",
                 "write -1 5\n",
                 "0123456789"},
        Answered{
            "short_write", "short", {{"bytes", 1}}, "write", SYS_write, "write,a,more", "write 1 0\n", "0123456789m"},
        Answered{
            "short_copy", "short", {{"bytes", 1}}, "write", SYS_splice, "splice,a,more", "splice 1 0\n", "m123456789"},
        Answered{
            "short_read", "short", {{"bytes", 4}}, "read", SYS_read, "readn,a,9", "readn 4 0 0123\n", "0123456789"},
        Answered{
            "corrupt", "corrupt", {{"offset", 0}}, "read", SYS_pread64, "pread,a,3,0", "pread 3 0 112\n", "0123456789"},
        Answered{
            "no_space", "no-space", {{"after", 2}}, "write", SYS_write, "write,a,more", "write 2 0\n", "0123456789mo"},
        Answered{"fsync_lost", "fsync-lost", Value::object(), "fsync", SYS_fsync, "fsync,a", "fsync -1 5\n",
                 "0123456789"},
        Answered{"fsync_lie", "fsync-lie", Value::object(), "fsync", SYS_fsync, "fsync,a", "fsync 0 0\n", "0123456789"},
        Answered{"skip", "skip", Value::object(), "sleep", SYS_nanosleep, "sleep,60000", "sleep 0 0\n", "0123456789"}),
    [](const auto& named) { return named.param.name; });

/// The bytes were taken from the file's position, and are read no second time.
TEST(AnsweredAgain, WhatWasReadBeforeTheSignalIsDeliveredAfterIt) {
  const ScratchFolder folder;
  std::ofstream(folder / "a") << "0123456789";
  for (unsigned which = 1; which <= 6; ++which) {
    const AtMoment moment(Moment::after_look, which, the_call(SYS_read), interrupt_it);
    const auto outcome = run({program("steps"), "handle", "readn," + (folder / "a") + ",9"},
                             {.families = {"read"},
                              .data_folder = folder.path(),
                              .faults = {fault("short", "read", "data:a", 1, {{"bytes", 4}})},
                              .old_kernel = true});
    EXPECT_EQ(outcome.output, "handle 0 0\nreadn 4 0 0123\n") << "moment " << which;
    EXPECT_EQ(outcome.count("read", "data:a"), 1u) << "moment " << which;
    EXPECT_EQ(outcome.of_kind("fault.fired").size(), 1u) << "moment " << which;
  }
}

}  // namespace
}  // namespace leafcutter::node::tests
