// `leafcutter exec` as a user types it: programs of the distribution under rules, wrong rules, signals, and what is
// left when either side is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <set>

#include "../scenarios/bad_rules.hpp"
#include "exec_support.hpp"

namespace {

using acceptance::exec;
using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter;
using acceptance::leafcutter_command;
using acceptance::of_kind;
using acceptance::Outcome;
using acceptance::Program;
using acceptance::rules;
using acceptance::shell;
using acceptance::text_of;
using acceptance::trace_of;
using acceptance::Words;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

// --- what comes back ---

TEST(Exec, AProgramWithoutRulesRunsWithoutAFilter) {
  const Folder folder;
  const auto without = shell(folder, {}, "grep Seccomp: /proc/self/status; echo to-stderr >&2; cat");
  EXPECT_EQ(without.exit, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("Seccomp:\t0"));
  EXPECT_EQ(without.err, "to-stderr\n");
  const auto with = shell(folder, {"--fault", "fsync=EIO", "--allow-unfired"}, "grep Seccomp: /proc/self/status");
  EXPECT_THAT(with.out, HasSubstr("Seccomp:\t2"));
}

TEST(Exec, ThePrograms) {
  const Folder folder;
  EXPECT_EQ(shell(folder, {}, "exit 7").exit, 7);
  EXPECT_EQ(shell(folder, rules({"fsync=EIO"}), "exit 7").exit, 7) << "its own status, though a rule never fired";
  EXPECT_EQ(shell(folder, {}, "kill -TERM $$").exit, 128 + SIGTERM);
  EXPECT_EQ(shell(folder, {}, "kill -PIPE $$").exit, 128 + SIGPIPE) << "what we ignore is not ignored there";
  const auto none = exec(folder, {}, {"no-such-program"});
  EXPECT_EQ(none.exit, 127);
  EXPECT_THAT(none.err, HasSubstr("no-such-program: cannot execute it: No such file or directory"));
  folder.write("plain", "text");
  const auto plain = exec(folder, rules({"fsync=EIO"}), {"./plain"});
  EXPECT_EQ(plain.exit, 126);
  EXPECT_THAT(plain.err, HasSubstr("./plain: cannot execute it: Permission denied"));
  // The options of the program are its own, also without "--".
  const auto out = leafcutter({"exec", "echo", "--fault", "-n", "--help"}, folder.path(), seconds(60));
  EXPECT_EQ(out.out, "--fault -n --help\n") << out.err;
  folder.write("sub/marker", "");
  EXPECT_EQ(exec(folder, {"--cwd", "sub"}, {"ls"}).out, "marker\n");
}

TEST(Exec, ARuleThatNeverFiredIsSaidAloud) {
  const Folder folder;
  const auto outcome = shell(folder, rules({"fsync=EIO path=*.wal #2", "open=EACCES path=secret"}), "echo x > secret");
  EXPECT_EQ(outcome.exit, 2) << "the shell's own status";
  EXPECT_THAT(outcome.err, HasSubstr("leafcutter: NEVER FIRED: fsync=EIO path=*.wal #2\n"));
  EXPECT_THAT(outcome.err, HasSubstr("leafcutter: fired once: open=EACCES path=secret\n"));
  EXPECT_THAT(outcome.err, HasSubstr("1 rule NEVER FIRED, so this run says nothing about it\n"));
  const auto unfired = shell(folder, rules({"fsync=EIO"}), "true");
  EXPECT_EQ(unfired.exit, 3);
  EXPECT_THAT(unfired.err, HasSubstr("NEVER FIRED, so this run says nothing about it; exit status 3"));
  EXPECT_EQ(shell(folder, {"--fault", "fsync=EIO", "--allow-unfired"}, "true").exit, 0);
}

// --- wrong input ---

TEST(Exec, WrongRulesAreMarkedAndNothingIsRun) {
  const Folder folder;
  for (const auto& bad : leafcutter::scenarios::bad_rules()) {
    const auto outcome = exec(folder, {"--fault", bad.rule}, {"touch", folder / "ran"});
    EXPECT_EQ(outcome.exit, 2) << bad.rule << outcome.err;
    EXPECT_EQ(outcome.err,
              std::string("error: --fault: ") + bad.message + "\n  " + bad.rule + "\n  " + bad.marks + "\n");
    EXPECT_FALSE(fs::exists(folder / "ran")) << bad.rule;
  }
}

TEST(Exec, EveryMistakeIsNamed) {
  const Folder folder;
  folder.write("rules", "# a comment\n\n  fsync=EIO path=*.wal\n  wirte=EIO #1\r\nread=EIO sise=3\n");
  const auto outcome = exec(folder,
                            {"--rules", "rules", "--fault", "fsync=EOI", "--observe", "fsyn", "--cwd", "nowhere",
                             "--data", "rules", "--rules", "none"},
                            {"touch", "ran"});
  EXPECT_EQ(outcome.exit, 2);
  for (const auto* part :
       {"error: --fault: unknown effect \"EOI\"; did you mean \"EIO\"?\n  fsync=EOI\n        ^~~\n",
        "error: rules:4:3: unknown system call \"wirte\"; did you mean \"write\"?\n    wirte=EIO #1\n    ^~~~~\n",
        "error: rules:5:10: unknown key \"sise\"; did you mean \"size\"?\n  read=EIO sise=3\n           ^~~~\n",
        "error: --observe: unknown system call family \"fsyn\"; did you mean \"fsync\"?\n",
        "error: --cwd: \"nowhere\" is no folder: No such file or directory\n",
        "error: --data: \"rules\" is no folder\n", "error: --rules: cannot read none: No such file or directory\n"})
    EXPECT_THAT(outcome.err, HasSubstr(part));
  EXPECT_FALSE(fs::exists(folder / "ran"));
  const auto nothing = leafcutter({"exec", "--fault", "fsync=EIO"}, folder.path(), seconds(60));
  EXPECT_EQ(nothing.exit, 2);
  EXPECT_THAT(nothing.err, HasSubstr("name the program to run: leafcutter exec --fault RULE -- PROGRAM ARGUMENTS"));
  EXPECT_EQ(exec(folder, {"--trace", "/nowhere/trace"}, {"touch", "ran"}).exit, 2);
  EXPECT_EQ(exec(folder, {"--no-such-option"}, {"touch", "ran"}).exit, 2);
  EXPECT_FALSE(fs::exists(folder / "ran"));
}

TEST(Exec, FaultsThatNeedADataFolderSaySo) {
  const Folder folder;
  const auto outcome = exec(folder, rules({"fsync=fsync-lie"}), {"touch", "ran"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("\"fsync-lie\" needs to know what was synced: name the program's data folder with "
                                     "--data DIR\n  fsync=fsync-lie\n        ^~~~~~~~~\n"));
  EXPECT_FALSE(fs::exists(folder / "ran"));
}

TEST(Exec, OneFilterWithAListenerIsAllThatTheKernelAllows) {
  const Folder folder;
  auto inner = leafcutter_command({"exec", "--fault", "open=EIO path=x", "--", "touch", folder / "ran"});
  const auto outcome = exec(folder, rules({"open=EIO path=x"}), inner);
  EXPECT_EQ(outcome.exit, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("error: UNAVAILABLE: "));
  EXPECT_THAT(outcome.err, HasSubstr("already has a seccomp listener"));
  EXPECT_FALSE(fs::exists(folder / "ran"));
}

// --- rules at work ---

TEST(Exec, ChildrenAreUnderTheRulesToo) {
  const Folder folder;
  const auto outcome =
      shell(folder, rules({"mkdir=EDQUOT path=*-child"}), "mkdir parent; (setsid sh -c 'mkdir of-a-child') 2>&1; true");
  EXPECT_THAT(outcome.out, HasSubstr("Disk quota exceeded"));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(folder / "parent"));
  EXPECT_FALSE(fs::exists(folder / "of-a-child"));
}

TEST(Exec, WhatIsLeftInTheBackgroundIsWaitedFor) {
  const Folder folder;
  // The program ends at once; the child it leaves makes its folder, and not before the program has gone.
  const auto outcome = shell(folder, rules({"mkdir=EEXIST path=late"}),
                             "(while kill -0 $$ 2>/dev/null; do :; done; mkdir late || echo refused > told) & exit 0");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(text_of(folder / "told"), "refused\n");
}

TEST(Exec, ACrashTakesTheWholeTree) {
  const Folder folder;
  const auto outcome = shell(
      folder, rules({"mkdir=crash-after path=last"}),
      "setsid setsid sh -c 'exec sleep 1000 " + folder.path().string() + "' & sleep 1000 & mkdir last; echo survived");
  EXPECT_EQ(outcome.exit, 128 + SIGKILL) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(fs::exists(folder / "last")) << "it takes effect first";
  EXPECT_THAT(outcome.err, HasSubstr("fired once: mkdir=crash-after path=last"));
  EXPECT_EQ(acceptance::left_behind(folder.path().string(), seconds(0)), "");
  const auto before = shell(folder, rules({"mkdir=crash path=first"}), "mkdir first; echo survived");
  EXPECT_EQ(before.exit, 128 + SIGKILL);
  EXPECT_FALSE(fs::exists(folder / "first"));
}

TEST(Exec, OccurrencesCountWhatTheRuleSelects) {
  const Folder folder;
  const std::string script = "for i in 1 2 3 4 5 6 7; do mkdir d$i x$i 2>/dev/null; done; ls -x -w 200";
  const auto left = [&](const char* rule) {
    const Folder own;
    auto outcome = shell(own, rules({rule}), script);
    EXPECT_EQ(outcome.exit, 0) << rule << outcome.err;
    std::string dirs;
    for (char i = '1'; i <= '7'; ++i) dirs += fs::exists(own / (std::string("d") + i)) ? '.' : i;
    for (char i = '1'; i <= '7'; ++i) EXPECT_TRUE(fs::exists(own / (std::string("x") + i))) << rule;
    return dirs;
  };
  EXPECT_EQ(left("mkdir=EIO path=d* #3"), "..3....");
  EXPECT_EQ(left("mkdir=EIO path=d* first 2"), "12.....");
  EXPECT_EQ(left("mkdir=EIO path=d* every 3"), "..3..6.");
  EXPECT_EQ(left("mkdir=EIO path=d* from 6"), ".....67");
  EXPECT_EQ(left("mkdir=EIO path=d[24]"), ".2.4...");
}

TEST(Exec, WhatIsDrawnDependsOnTheSeedAlone) {
  const auto drawn = [](const std::string& seed) {
    const Folder folder;
    const auto outcome = shell(folder, {"--seed", seed, "--fault", "mkdir=EIO path=d* probability=30%"},
                               "for i in $(seq 40); do mkdir d$i 2>/dev/null; done; true");
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    std::string made;
    for (int i = 1; i <= 40; ++i) made += fs::exists(folder / ("d" + std::to_string(i))) ? '.' : 'x';
    return made;
  };
  const auto first = drawn("7");
  EXPECT_EQ(first, drawn("7"));
  EXPECT_NE(first, drawn("8"));
  const auto struck = std::count(first.begin(), first.end(), 'x');
  EXPECT_GT(struck, 3);
  EXPECT_LT(struck, 25);
}

TEST(Exec, SeveralRulesWorkSideBySide) {
  const Folder folder;
  const auto outcome = shell(folder, rules({"mkdir=EIO path=a", "mkdir=EDQUOT path=b", "open=EACCES path=c"}),
                             "mkdir a; mkdir b; echo x > c; mkdir d");
  EXPECT_THAT(outcome.err, HasSubstr("Input/output error"));
  EXPECT_THAT(outcome.err, HasSubstr("Disk quota exceeded"));
  EXPECT_THAT(outcome.err, HasSubstr("Permission denied"));
  EXPECT_TRUE(fs::exists(folder / "d"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("NEVER FIRED")));
}

TEST(Exec, ARuleWaitsForTheEventThatItNames) {
  const Folder folder;
  const auto outcome =
      shell(folder, rules({"mkdir=EIO path=d* after=\"syscall family=rename path=/to$/\""}),
            "mkdir d1; touch from other; mv other elsewhere; mkdir d2; mv from to; mkdir d3; mkdir d4; true");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("fired 2 times: mkdir=EIO path=d* after="));
  for (const auto& [name, made] : {std::pair{"d1", true}, {"d2", true}, {"d3", false}, {"d4", false}})
    EXPECT_EQ(fs::exists(folder / name), made) << name;
}

TEST(Exec, ACallIsHeldUntilItsEvent) {
  const Folder folder;
  // A rename before the call is held releases nothing, so there is another until it has gone through.
  const std::string script = "mkdir held & while [ ! -d held ]; do touch a; mv a free; done; wait";
  const auto outcome =
      shell(folder, rules({"mkdir=hold:1h until=\"syscall family=rename path=/free$/\" path=held"}), script);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(folder / "held"));
  EXPECT_THAT(outcome.err, HasSubstr("fired once: mkdir=hold:1h"));
  // The twin: an event that never comes releases nothing; the deadline does.
  const Folder other;
  const auto late =
      shell(other, {"--trace", "t", "--fault", "mkdir=hold:300ms until=\"syscall path=/never$/\" path=held"},
            "touch a; mv a free; mkdir held");
  EXPECT_EQ(late.exit, 0) << late.err;
  const auto undone = of_kind(trace_of(other / "t"), "fault.undone");
  const auto fired = of_kind(trace_of(other / "t"), "fault.fired");
  ASSERT_TRUE(undone.size() == 1 && fired.size() == 1) << late.err;
  EXPECT_GE(undone[0]["at_ns"].get<long long>() - fired[0]["at_ns"].get<long long>(), 250'000'000);
}

/// The writer of b waits for its answer while the writer of a has everything stopped: it has the signal to stop and
/// cannot follow it yet. Then it has a pause of its own, within the other's or after it.
TEST(Exec, WhoWaitsForAnAnswerWhileEverythingStandsStillGoesOnWithTheOthers) {
  const Folder folder;
  const auto outcome =
      shell(folder, rules({"write=pause-at:300ms path=a", "write=delay:100ms path=b", "write=pause-at:50ms path=b"}),
            "(echo x > a) & (echo y > b) & wait; cat a b");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "x\ny\n");
}

/// The only process waits in the very call, and cannot follow the signal before that is answered: it stands still.
TEST(Exec, APauseOfTheOnlyProcessTakesItsTimeAndNoMore) {
  const Folder folder;
  const auto outcome = shell(folder, {"--trace", "t", "--observe", "open", "--fault", "write=pause-at:100ms path=a"},
                             "echo x > a; echo went on");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "went on\n");
  EXPECT_THAT(outcome.err, HasSubstr("leafcutter: fired once: write=pause-at:100ms path=a\n"));
  const auto events = trace_of(folder / "t");
  const auto opened = of_kind(events, "syscall"), fired = of_kind(events, "fault.fired");
  ASSERT_TRUE(!opened.empty() && fired.size() == 1) << outcome.err;
  EXPECT_EQ(fired[0]["attrs"]["evidence"]["processes"], 1);
  long long before = 0;
  for (const auto& event : opened)
    if (event["attrs"]["path"] == folder / "a" && event["attrs"]["family"] == "open") before = event["at_ns"];
  EXPECT_LT(fired[0]["at_ns"].get<long long>() - before, 900'000'000) << "it was not looked for until a limit";
}

/// The kernel takes a copy for interrupted when a signal to stop has come and gone, and begins it anew: the same call.
TEST(Exec, ACallThatBeginsAgainAfterItsPauseIsTheSame) {
  const Folder folder;
  folder.write("a", "0123456789");
  const auto outcome = exec(folder, rules({"write=pause-at:50ms path=b", "read=EIO path=a #20"}), {"cp", "a", "b"});
  EXPECT_EQ(outcome.exit, 3) << outcome.err;
  EXPECT_EQ(text_of(folder / "b"), "0123456789");
  EXPECT_THAT(outcome.err, HasSubstr("leafcutter: fired"));
}

/// As docs/exec.md has it: the file is renamed by mv, whatever call that makes.
TEST(Exec, ARuleThatWaitsForARenameStrikesWhatIsSyncedAfterIt) {
  const Folder folder;
  const Words options = {"--fault", "fsync=EIO after=\"syscall family=rename path=/CURRENT$/\""};
  const auto struck = shell(folder, options, "echo x > a; sync a && mv a CURRENT; sync CURRENT");
  EXPECT_EQ(struck.exit, 1) << struck.err;
  EXPECT_THAT(struck.err, HasSubstr("leafcutter: fired once: "));
  EXPECT_THAT(struck.err, HasSubstr("first: fsync " + (folder / "CURRENT") + " (EIO"));
  const auto spared = shell(folder, options, "echo x > a; sync a && mv a OTHER; sync OTHER");
  EXPECT_EQ(spared.exit, 3) << spared.err;
  const std::string unseen = "leafcutter:   its event was never seen: syscall family=rename path=/CURRENT$/\n";
  EXPECT_THAT(spared.err, HasSubstr(unseen));
  const auto seen = shell(folder, options, "echo x > a; sync a && mv a CURRENT");
  EXPECT_EQ(seen.exit, 3) << seen.err;
  EXPECT_THAT(seen.err, Not(HasSubstr("never seen")));
}

/// An address is written with its brackets, and is no class of characters then.
TEST(Exec, APeerIsAnAddressOfIPv6) {
  const Folder folder;
  static constexpr auto script =
      "import socket\n"
      "for port in (8, 9):\n"
      "  try: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'x', ('::1', port)); print('sent')\n"
      "  except OSError as e: print(e.errno)\n";
  const auto outcome = exec(folder, rules({"send=EPERM object=socket-udp peer=[::1]:9"}), {"python3", "-c", script});
  EXPECT_EQ(outcome.out, "sent\n1\n") << outcome.err;
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
}

TEST(Exec, WhatTheKernelDecidesIsSaidToBeUncounted) {
  const Folder folder;
  const auto outcome = exec(folder, rules({"fsync=EDQUOT uncounted"}),
                            {"dd", "if=/dev/zero", "of=x", "bs=100", "count=1", "conv=fsync"});
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Disk quota exceeded"));
  EXPECT_THAT(outcome.err, HasSubstr("leafcutter: in force in the kernel, not counted: fsync=EDQUOT uncounted\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("NEVER FIRED")));
}

TEST(Exec, APowerLossTakesWhatWasNotSynced) {
  const auto after = [](const Words& rule) {
    const Folder folder;
    fs::create_directory(folder / "db");
    Words options = {"--data", "db", "--fault"};
    options.insert(options.end(), rule.begin(), rule.end());
    const auto outcome =
        shell(folder, options,
              "dd if=/dev/zero of=db/synced bs=100 count=1 conv=fsync status=none; sync db; echo x > db/unsynced; "
              "mkdir last; echo survived");
    EXPECT_EQ(outcome.exit, 128 + SIGKILL) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return std::pair(text_of(folder / "db/synced").size(), text_of(folder / "db/unsynced"));
  };
  EXPECT_EQ(after({"mkdir=power-loss path=last"}), std::pair(std::size_t{100}, std::string()));
  EXPECT_EQ(after({"mkdir=crash path=last"}), std::pair(std::size_t{100}, std::string("x\n"))) << "the power was on";
  EXPECT_EQ(after({"mkdir=power-loss path=last", "--fault", "fsync=fsync-lie path=*/synced"}),
            std::pair(std::size_t{0}, std::string()))
      << "the sync lied";
}

TEST(Exec, TheTraceHoldsEveryEvent) {
  const Folder folder;
  const auto outcome = shell(folder, {"--trace", "out.ndjson", "--fault", "mkdir=EIO path=d* every 50"},
                             "for i in $(seq 100); do mkdir d$i; done 2>/dev/null; exit 5");
  EXPECT_EQ(outcome.exit, 5) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("fired 2 times: mkdir=EIO path=d* every 50"));
  const auto events = trace_of(folder / "out.ndjson");
  EXPECT_EQ(of_kind(events, "syscall").size(), 100u) << "no limit when a trace is asked for";
  ASSERT_EQ(of_kind(events, "fault.fired").size(), 1u);
  EXPECT_EQ(of_kind(events, "fault.fired")[0]["attrs"]["evidence"]["errno_name"], "EIO");
  ASSERT_EQ(of_kind(events, "fault.undone").size(), 1u);
  EXPECT_EQ(of_kind(events, "fault.undone")[0]["attrs"]["strikes"], 2);
  ASSERT_EQ(of_kind(events, "exit").size(), 1u);
  EXPECT_EQ(of_kind(events, "exit")[0]["attrs"]["status"], 5);
  EXPECT_EQ(of_kind(events, "sites").size(), 1u);
}

TEST(Exec, ObservationListsTheSites) {
  const Folder folder;
  const auto outcome = shell(folder, {"--observe", "mkdir,open"}, "mkdir d1 d2 e; echo x > file; echo y > file");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::ContainsRegex("mkdir +2  data:d#\n"));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("mkdir +1  data:e\n"));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("open +2  data:file\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("/usr/"))) << "the system's files are no sites";
}

// --- signals, and sudden ends ---

TEST(Exec, SignalsReachTheProgram) {
  const Folder folder;
  const std::string script =
      "trap 'echo got INT; exit 5' INT; trap 'echo got TERM; exit 6' TERM; trap 'echo got HUP; exit 7' HUP; "
      "echo ready >&2; while :; do sleep 0.05; done";
  const auto start = [&] {
    return std::make_unique<Program>(
        leafcutter_command({"exec", "--fault", "mkdir=EIO", "--allow-unfired", "--", "sh", "-c", script}),
        folder.path());
  };
  for (const auto& [signal, name, status] :
       {std::tuple{SIGTERM, "got TERM\n", 6}, {SIGHUP, "got HUP\n", 7}, {SIGINT, "got INT\n", 5}}) {
    const auto program = start();
    ASSERT_TRUE(program->wait_for_error_text("ready", seconds(20)));
    program->signal_alone(signal);
    const auto outcome = program->wait(seconds(20));
    EXPECT_EQ(outcome.out, name);
    EXPECT_EQ(outcome.exit, status) << outcome.err;
  }
  // A terminal sends to the whole group; the program gets it once.
  const auto program = start();
  ASSERT_TRUE(program->wait_for_error_text("ready", seconds(20)));
  program->signal_group(SIGINT);
  EXPECT_EQ(program->wait(seconds(20)).exit, 5);
}

/// A session of its own that stands in a call which was let run: it would outlive everybody and needs nobody's answer.
std::string detached_child(const std::string& marker) {
  return "mkfifo never up; setsid sh -c 'echo > up; read x < never' sh " + marker + " & cat up; ";
}

// What is said goes to standard output: without anybody to answer, another open would fail as well.
TEST(Exec, WhenLeafcutterIsKilledNothingIsLeftAndNobodyIsToldENOSYS) {
  for (int round = 0; round < 5; ++round) {
    const Folder folder;
    const auto marker = folder.path().string();
    Program program(leafcutter_command({"exec", "--trace", "t", "--fault", "open=delay:1h path=held", "--", "sh", "-c",
                                        detached_child(marker) +
                                            "(echo x > held; echo told) & until grep -q fault.fired t; do :; done; "
                                            "echo ready >&2; wait"}),
                    folder.path());
    ASSERT_TRUE(program.wait_for_error_text("ready", seconds(20)));
    ASSERT_NE(acceptance::left_behind(marker, seconds(0)), "") << "the look finds what runs";
    program.signal_alone(SIGKILL);
    EXPECT_EQ(acceptance::left_behind(marker, seconds(2)), "");
    const auto outcome = program.wait(seconds(5));
    EXPECT_EQ(outcome.exit, 128 + SIGKILL);
    EXPECT_EQ(outcome.out, "\n") << "only the detached child's line: a call that was held is answered by nobody";
    EXPECT_THAT(outcome.err, Not(HasSubstr("not implemented")));
  }
}

TEST(Exec, WhenTheWardIsKilledTheProgramIsEnded) {
  const Folder folder;
  const auto marker = folder.path().string();
  Program program(leafcutter_command({"exec", "--fault", "mkdir=EIO", "--", "sh", "-c",
                                      detached_child(marker) + "echo $PPID >&2; echo ready >&2; wait"}),
                  folder.path());
  ASSERT_TRUE(program.wait_for_error_text("ready", seconds(20)));
  const auto ward = std::stoi(program.error_text());
  ASSERT_GT(ward, 1);
  ASSERT_EQ(::kill(ward, SIGKILL), 0);
  const auto outcome = program.wait(seconds(10));
  EXPECT_EQ(outcome.exit, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the ward of the program was killed, and the program with it"));
  EXPECT_EQ(acceptance::left_behind(marker, seconds(2)), "");
}

}  // namespace
