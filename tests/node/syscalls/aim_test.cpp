// Which calls a rule strikes: classes of objects, paths, peers, sizes, offsets, flags, occurrences; and the known
// mistakes of such engines, each as a test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

using scenarios::Aim;
using scenarios::Occurrences;

class Aims : public testing::Test {
 protected:
  /// The program's output under an EIO rule; spaces for newlines.
  std::string under(const std::string& family, const Aim& aim, std::vector<std::string> steps) {
    steps.insert(steps.begin(), program("steps"));
    last_ = run(steps, {.families = {family},
                        .data_folder = folder_.path(),
                        .faults = {rule("errno", family, {{"error", "EIO"}}, aim)},
                        .peers = peers_,
                        .working_folder = folder_.path()});
    EXPECT_EQ(last_.failure, "");
    auto text = last_.output;
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  static Aim object(const std::string& kind) {
    Aim aim;
    aim.object = kind;
    return aim;
  }
  static Aim path(const std::string& glob) {
    Aim aim;
    aim.path = glob;
    return aim;
  }
  bool fired() const { return !last_.of_kind("fault.fired").empty(); }

  ScratchFolder folder_, elsewhere_;
  std::map<std::string, std::string> peers_;
  Outcome last_;
};

TEST_F(Aims, WithoutObjectAFamilyMeansTheDataFoldersFiles) {
  EXPECT_EQ(under("write", {}, {"write,a,x", "write," + (elsewhere_ / "b") + ",x", "pipe,x", "eventfd", "terminal,x"}),
            "write -1 5 write 1 0 pipe 1 0 eventfd 8 0 terminal 1 0 ");
}

TEST_F(Aims, EachClassIsItself) {
  const std::vector<std::string> steps = {"write," + (elsewhere_ / "b") + ",x", "pipe,x", "eventfd", "terminal,x"};
  auto second_pipe = object("pipe");
  second_pipe.occurrences = {Occurrences::Which::nth, 2};  // the first one is the program's own output
  EXPECT_EQ(under("write", second_pipe, steps), "write 1 0 pipe -1 5 eventfd 8 0 terminal 1 0 ");
  EXPECT_EQ(under("write", object("eventfd"), steps), "write 1 0 pipe 1 0 eventfd -1 5 terminal 1 0 ");
  EXPECT_EQ(under("write", object("tty"), steps), "write 1 0 pipe 1 0 eventfd 8 0 terminal -1 5 ");
  EXPECT_EQ(under("write", object("file"), steps), "write -1 5 pipe 1 0 eventfd 8 0 terminal 1 0 ");
  EXPECT_EQ(under("write", object("other"), steps), "write 1 0 pipe 1 0 eventfd 8 0 terminal 1 0 ");
}

TEST_F(Aims, FoldersAreNoFiles) {
  const std::vector<std::string> steps = {"fsync,.", "write,a,x", "fsync,a"};
  EXPECT_EQ(under("fsync", object("directory"), steps), "fsync -1 5 write 1 0 fsync 0 0 ");
  EXPECT_EQ(under("fsync", object("file"), steps), "fsync 0 0 write 1 0 fsync -1 5 ");
  EXPECT_EQ(under("rename", object("directory"), {"mkdir,d,0755", "rename,d,e", "rename,a,b"}),
            "mkdir 0 0 rename -1 5 rename 0 0 ");
  EXPECT_EQ(under("unlink", object("directory"), {"unlink,b", "rmdir,d"}), "unlink 0 0 rmdir -1 5 ");
}

TEST_F(Aims, PathsAreResolvedFromFolderDescriptorsAndTheWorkingFolder) {
  std::filesystem::create_directory(folder_ / "sub");
  EXPECT_EQ(under("open", path("sub/*"), {"openat,sub,a", "chdir,sub", "open,b,0644", "open,../c,0644"}),
            "openat -1 5 chdir 0 0 open -1 5 open 0 0 ");
  EXPECT_EQ(under("open", path(folder_ / "sub/a"), {"openat2,sub,a", "openat2,sub,b"}), "openat2 -1 5 openat2 0 0 ");
}

TEST_F(Aims, TheArgumentThatNamesTheFileIsTheRightOne) {
  EXPECT_EQ(under("open", path("*/wanted"), {"creat,wanted", "creat,other"}), "creat -1 5 creat 0 0 ");
  EXPECT_EQ(under("rename", path("*/wanted"),
                  {"write,old,x", "rename,old,wanted", "link,old,wanted", "symlinkat,old,.,wanted", "linkat,old,wanted",
                   "renameat,.,old,wanted", "renameat2,old,wanted"}),
            "write 1 0 rename -1 5 link -1 5 symlinkat -1 5 linkat -1 5 renameat -1 5 renameat2 -1 5 ");
  EXPECT_EQ(under("rename", path("*/old"), {"rename,old,new"}), "rename 0 0 ") << "the site is the new name";
  EXPECT_EQ(under("unlink", path("*/new"), {"unlinkat,.,new"}), "unlinkat -1 5 ");
  EXPECT_EQ(under("mkdir", path("*/d"), {"mkdirat,.,d", "mkdirat,.,e"}), "mkdirat -1 5 mkdirat 0 0 ");
}

/// A known mistake: the check of the path was skipped when there was none.
TEST_F(Aims, ARuleWithAPathStrikesNothingThatHasNone) {
  EXPECT_EQ(under("write", path("*"), {"pipe,x", "eventfd", "bad-descriptor"}),
            "pipe 1 0 eventfd 8 0 bad-descriptor -1 9 ");
  EXPECT_FALSE(fired());
  EXPECT_EQ(last_.of_kind("unresolved").size(), 1u);
  EXPECT_EQ(under("open", path("*.wal"), {"bad-path"}), "bad-path -1 14 ");
  EXPECT_FALSE(fired());
  ASSERT_EQ(last_.of_kind("unresolved").size(), 1u);
  EXPECT_EQ(last_.of_kind("unresolved")[0].attrs["family"], "open");
}

TEST_F(Aims, SystemFilesAreStruckOnlyByARuleThatNamesThem) {
  const auto read_null = std::vector<std::string>{"read,/dev/null", "read,/proc/self/status"};
  EXPECT_EQ(under("read", {}, read_null), "read 0 0 read 1 0 ");
  EXPECT_EQ(under("read", path("*.wal"), read_null), "read 0 0 read 1 0 ");
  EXPECT_FALSE(fired());
  EXPECT_EQ(under("read", path("/proc/*"), read_null), "read 0 0 read -1 5 ");
}

/// A known mistake: a disk-full rule on `write` broke the reply to a client, and the test passed without the disk.
TEST_F(Aims, AWriteRuleStrikesNoSocket) {
  for (const auto* kind : {"tcp", "unix", "udp"})
    for (const auto& aim : {Aim(), object("file"), path("*")}) {
      const auto outcome = run({program("traffic"), kind, "send", "write", "0123456789"},
                               {.families = {"write"},
                                .data_folder = "/nowhere",
                                .faults = {rule("errno", "write", {{"error", "ENOSPC"}}, aim)},
                                .working_folder = folder_.path()});
      EXPECT_EQ(outcome.output, "write 10 0 0123456789\n") << kind;
    }
}

TEST_F(Aims, SizesOffsetsAndFlags) {
  Aim big;
  big.size = {4, 8};
  EXPECT_EQ(under("write", big, {"write,a,123", "write,a,1234", "writev,a,12345678", "writev,a,123456789"}),
            "write 3 0 write -1 5 writev -1 5 writev 9 0 ");
  Aim far;
  far.offset = {10, std::nullopt};
  EXPECT_EQ(under("write", far, {"pwrite,c,x,9", "pwrite,c,x,10", "pwritev,c,xx,11", "write,c,1"}),
            "pwrite 1 0 pwrite -1 5 pwritev -1 5 write -1 5 ")
      << "an appending write goes where the file ends";
  Aim creating;
  creating.flags = {"O_CREAT", "O_TRUNC"};
  EXPECT_EQ(under("open", creating, {"open,d,0644", "creat,d", "openat,.,d", "read,a"}),
            "open -1 5 creat -1 5 openat 0 0 read 1 0 ");
  Aim appending;
  appending.flags = {"O_APPEND"};
  EXPECT_EQ(under("write", appending, {"write,a,x", "pwrite,a,x,0"}), "write -1 5 pwrite 1 0 ");
}

TEST_F(Aims, WhatCannotBeReadDoesNotStrikeAndIsSaid) {
  Aim big;
  big.size = {1, std::nullopt};
  EXPECT_EQ(under("write", big, {"bad-vector,a", "write,a,x"}), "bad-vector -1 14 write -1 5 ");
  ASSERT_EQ(last_.of_kind("unresolved").size(), 1u);
  EXPECT_EQ(last_.of_kind("unresolved")[0].attrs["call"], "writev");
  EXPECT_EQ(under("write", {}, {"bad-vector,a"}), "bad-vector -1 5 ") << "a rule that asks for no size needs none";
  EXPECT_TRUE(last_.of_kind("unresolved").empty());
}

TEST_F(Aims, OccurrencesCountWhatTheRestSelects) {
  const std::vector<std::string> steps = {"write,b,x", "write,a,x", "write,b,x", "write,a,x", "write,a,x", "write,a,x"};
  auto aim = path("a");
  aim.occurrences = {Occurrences::Which::nth, 2};
  EXPECT_EQ(under("write", aim, steps), "write 1 0 write 1 0 write 1 0 write -1 5 write 1 0 write 1 0 ");
  aim.occurrences = {Occurrences::Which::every, 2};
  EXPECT_EQ(under("write", aim, steps), "write 1 0 write 1 0 write 1 0 write -1 5 write 1 0 write -1 5 ");
  aim.occurrences = {Occurrences::Which::first, 1};
  EXPECT_EQ(under("write", aim, steps), "write 1 0 write -1 5 write 1 0 write 1 0 write 1 0 write 1 0 ");
  aim.occurrences = {Occurrences::Which::from, 3};
  EXPECT_EQ(under("write", aim, steps), "write 1 0 write 1 0 write 1 0 write 1 0 write -1 5 write -1 5 ");
}

TEST_F(Aims, AfterAnEvent) {
  auto aim = path("a");
  aim.after = "syscall family=write resource=data:b";
  EXPECT_EQ(under("write", aim, {"write,a,x", "write,b,x", "write,a,x"}), "write 1 0 write 1 0 write -1 5 ");
}

/// Every thread's calls are drawn for by the rule's own ordinals: how the threads take turns changes nothing.
TEST_F(Aims, AProbabilityDoesNotDependOnTurns) {
  Aim half = path("*");
  half.per_million = 500'000;
  half.seed = 11;
  const auto writer = "for i in 1 2 3 4 5 6 7 8; do \"$0\" write,$1,x; done";
  const auto failures = [&](const std::string& script) {
    const auto outcome =
        run({"sh", "-c", script, program("steps"), "a"}, {.families = {"write"},
                                                          .data_folder = folder_.path(),
                                                          .faults = {rule("errno", "write", {{"error", "EIO"}}, half)},
                                                          .working_folder = folder_.path()});
    EXPECT_TRUE(outcome.exited_well()) << outcome.failure;
    std::size_t count = 0;
    for (const auto& event : outcome.of_kind("syscall")) count += event.attrs["injected"] == true ? 1 : 0;
    return count;
  };
  const auto alone = failures(std::string(writer) + "; " + writer);
  EXPECT_GT(alone, 0u);
  EXPECT_LT(alone, 16u);
  EXPECT_EQ(failures(std::string("(") + writer + ") & (" + writer + "); wait"), alone);
}

/// A known mistake: the second rule took the first one's place, and removing it removed both.
TEST_F(Aims, RulesComposeAndNoneReplacesAnother) {
  auto wide = path("*");
  auto narrow = path("a");
  const auto outcome = run(
      {program("steps"), "write,a,x", "write,b,x", "fsync,a"},
      {.families = {"write", "fsync"},
       .data_folder = folder_.path(),
       .faults = {rule("delay", "write", {{"for", "1ms"}}, wide), rule("errno", "write", {{"error", "EIO"}}, narrow),
                  rule("errno", "write", {{"error", "ENOSPC"}}, wide), rule("errno", "fsync", {{"error", "EDQUOT"}})},
       .working_folder = folder_.path()});
  EXPECT_EQ(outcome.output, "write -1 5\nwrite -1 28\nfsync -1 122\n");
  std::string details;
  for (const auto& event : outcome.of_kind("syscall")) details += event.attrs.value("detail", "");
  EXPECT_EQ(details, "errno was planned here, too, and not carried out");
}

TEST_F(Aims, ACallWithoutSiteIsNotCounted) {
  auto first_pipe = object("pipe");
  first_pipe.occurrences = {Occurrences::Which::nth, 1};
  EXPECT_EQ(under("write", first_pipe, {"pipe,x", "write,a,x"}), "pipe -1 5 write 1 0 ");
  EXPECT_EQ(last_.sites(), 1u);
  EXPECT_EQ(last_.count("write", "data:a"), 1u);
}

TEST_F(Aims, AChangedRootIsThePathTheServiceSees) {
  const ScratchFolder jail;
  std::filesystem::create_directories(jail / "srv");
  const auto outcome = run({"unshare", "-Urm", program("steps"), "chroot," + jail.path(), "chdir,/", "write,srv/a,x",
                            "fsync,srv/a", "mkdir,/srv/d,0755", "mkdir,srv/e,0755"},
                           {.families = {"write", "fsync", "mkdir", "open"},
                            .data_folder = "/srv",
                            .faults = {fault("errno", "fsync", "data:a", 1, {{"error", "EIO"}})}});
  if (outcome.output.find("chroot 0") == std::string::npos) GTEST_SKIP() << "this host gives no user namespaces";
  EXPECT_THAT(outcome.output, testing::HasSubstr("fsync -1 5"));
  EXPECT_EQ(outcome.count("write", "data:a"), 1u);
  EXPECT_EQ(outcome.count("mkdir", "data:d"), 1u);
  EXPECT_EQ(outcome.count("mkdir", "data:e"), 1u);
}

class Peers : public testing::Test {
 protected:
  std::string sent(const std::string& kind, const std::string& how, const Aim& aim,
                   const std::string& side = "send") const {
    const auto family = side == "send" ? "send" : side == "receive" ? "receive" : side;
    const auto outcome = run({program("traffic"), kind, side == "receive" ? "receive" : "send", how, "0123456789"},
                             {.families = {family},
                              .data_folder = "/nowhere",
                              .faults = {rule("errno", family, {{"error", "EIO"}}, aim)},
                              .working_folder = folder_.path()});
    EXPECT_EQ(outcome.failure, "");
    std::filesystem::remove(folder_ / "socket");
    return outcome.output;
  }
  static Aim to(const std::string& peer) {
    Aim aim;
    aim.peer = peer;
    return aim;
  }
  ScratchFolder folder_;
};

TEST_F(Peers, AreAddressesOfEveryFamily) {
  EXPECT_EQ(sent("tcp", "send", to("127.0.0.1:*")), "send -1 5 \n");
  EXPECT_EQ(sent("tcp", "send", to("10.*")), "send 10 0 0123456789\n");
  EXPECT_EQ(sent("tcp6", "send", to("\\[::1\\]:*")), "send -1 5 \n");
  EXPECT_EQ(sent("tcp6", "send", to("127.0.0.1:*")), "send 10 0 0123456789\n");
  EXPECT_EQ(sent("unix-path", "send", to("unix:socket")), "send -1 5 \n");
  EXPECT_EQ(sent("unix-path", "send", to("unix:other")), "send 10 0 0123456789\n");
}

TEST_F(Peers, OfDatagramsAreWhereTheyGo) {
  for (const auto* how : {"send", "sendmsg", "sendmmsg"}) {
    EXPECT_EQ(sent("udp-to", how, to("127.0.0.1:*")), std::string(how) + " -1 5 \n");
    EXPECT_EQ(sent("udp-to", how, to("127.0.0.2:*")), std::string(how) + " 10 0 0123456789\n");
  }
  EXPECT_EQ(sent("udp", "send", to("127.0.0.1:*")), "send -1 5 \n") << "a connected one names no destination";
}

TEST_F(Peers, ClassesOfSocketsAreThemselves) {
  const auto only = [](const std::string& kind) {
    Aim aim;
    aim.object = kind;
    return aim;
  };
  EXPECT_EQ(sent("udp", "send", only("socket-udp")), "send -1 5 \n");
  EXPECT_EQ(sent("udp", "send", only("socket-tcp")), "send 10 0 0123456789\n");
  EXPECT_EQ(sent("unix", "send", only("socket-unix")), "send -1 5 \n");
  EXPECT_EQ(sent("dgram", "send", only("socket-udp")), "send 10 0 0123456789\n");
  EXPECT_EQ(sent("tcp", "recv", only("socket-tcp"), "receive"), "recv -1 5 \n");
  EXPECT_EQ(sent("udp", "recv", {}, "receive"), "recv 10 0 0123456789\n") << "a rule that asks for nothing is for TCP";
}

TEST_F(Peers, FlagsOfASendAreItsOwn) {
  Aim aim;
  aim.flags = {"MSG_NOSIGNAL"};
  EXPECT_EQ(sent("tcp", "send", aim), "send 10 0 0123456789\n");
  EXPECT_EQ(sent("tcp", "send-nosignal", aim), "send-nosignal -1 5 \n");
}

}  // namespace
}  // namespace leafcutter::node::tests
