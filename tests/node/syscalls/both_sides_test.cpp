// Calls that move bytes from one object to another are at a site of each: read or receive where the bytes come from,
// write or send where they go to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

struct Mover {
  const char* name;
  const char* step;  ///< moves what is in "from", ten bytes
  const char* verb;  ///< what the program prints first
  bool into_file;    ///< into "a"; else into a pipe, and it prints what arrived
  bool can_change;   ///< the supervisor can carry the bytes through its own memory
};
void PrintTo(const Mover& mover, std::ostream* out) { *out << mover.name; }

class BothSides : public testing::TestWithParam<Mover> {
 protected:
  BothSides() { std::ofstream(folder_ / "from") << "0123456789"; }
  Outcome moved(std::vector<scenarios::Fault> faults, std::vector<std::string> families = {"read", "write"}) {
    return run({program("steps"), GetParam().step}, {.families = std::move(families),
                                                     .data_folder = folder_.path(),
                                                     .faults = std::move(faults),
                                                     .working_folder = folder_.path()});
  }
  /// What the program prints when its call returned this, and these bytes arrived.
  static std::string said(long result, int error, const std::string& bytes = "") {
    auto line = GetParam().verb + (" " + std::to_string(result)) + " " + std::to_string(error);
    if (!GetParam().into_file && !bytes.empty()) line += " " + bytes;
    return line + "\n";
  }
  void expect_arrived(const std::string& bytes) {
    if (!GetParam().into_file) return;
    EXPECT_EQ(contents(folder_ / "a"), bytes);
  }
  ScratchFolder folder_;
};

TEST_P(BothSides, AreSites) {
  const auto outcome = moved({});
  EXPECT_EQ(outcome.output, said(10, 0, "0123456789"));
  EXPECT_EQ(outcome.count("read", "data:from"), 1u);
  EXPECT_EQ(outcome.count("read", "data:a"), 0u);
  EXPECT_EQ(outcome.count("write", "data:from"), 0u);
  EXPECT_EQ(outcome.count("write", "data:a"), GetParam().into_file ? 1u : 0u);
  for (const auto& event : outcome.of_kind("syscall"))
    EXPECT_EQ(event.attrs["resource"], event.attrs["family"] == "read" ? "data:from" : "data:a") << event.attrs;
}

TEST_P(BothSides, TheSourceAloneIsWatched) {
  const auto outcome = moved({fault("errno", "read", "data:from", 1, {{"error", "EIO"}})}, {"read"});
  EXPECT_EQ(outcome.output, said(-1, 5));
  EXPECT_EQ(outcome.fired()["evidence"]["path"], folder_ / "from");
  EXPECT_EQ(outcome.sites(), 1u);
}

TEST_P(BothSides, AnErrorOfReadingIsTheSources) {
  const auto outcome = moved({fault("errno", "read", "data:from", 1, {{"error", "EIO"}})});
  EXPECT_EQ(outcome.output, said(-1, 5));
  expect_arrived("");
  EXPECT_EQ(outcome.fired()["evidence"]["path"], folder_ / "from");
}

TEST_P(BothSides, NoRuleOfOneSideStrikesTheOther) {
  const auto outcome = moved({fault("errno", "read", "data:a", 1, {{"error", "EIO"}}),
                              fault("errno", "write", "data:from", 1, {{"error", "EIO"}})});
  EXPECT_EQ(outcome.output, said(10, 0, "0123456789"));
  EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
}

TEST_P(BothSides, AShortReadMovesFewerBytes) {
  const auto outcome = moved({fault("short", "read", "data:from", 1, {{"bytes", 4}})});
  EXPECT_EQ(outcome.output, said(4, 0, "0123"));
  expect_arrived("0123");
  EXPECT_EQ(outcome.fired()["evidence"]["asked"], 10);
  EXPECT_EQ(outcome.fired()["evidence"]["carried"], 4);
  const auto whole = moved({fault("short", "read", "data:from", 1, {{"bytes", 10}})});
  EXPECT_EQ(whole.output, said(10, 0, "0123456789"));
  EXPECT_TRUE(whole.fired().is_null()) << "there are no more";
}

TEST_P(BothSides, AWrongBitIsReadAndArrives) {
  const auto outcome = moved({fault("corrupt", "read", "data:from", 1, {{"offset", 3}})});
  if (GetParam().can_change) {
    EXPECT_EQ(outcome.output, said(10, 0));
    expect_arrived("0122456789");
    EXPECT_EQ(outcome.fired()["evidence"]["is"], '2');
  } else {
    EXPECT_EQ(outcome.output, said(10, 0, "0123456789"));
    EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
    EXPECT_THAT(outcome.of_kind("syscall").at(0).attrs["detail"].get<std::string>(),
                testing::HasSubstr("only bytes on their way from a file to a file or a socket can be changed"));
  }
  EXPECT_EQ(contents(folder_ / "from"), "0123456789");
  const auto beyond = moved({fault("corrupt", "read", "data:from", 1, {{"offset", 10}})});
  EXPECT_TRUE(beyond.of_kind("fault.fired").empty()) << "there is no such byte";
}

TEST_P(BothSides, ACrashBeforeReadingMovesNothing) {
  const auto outcome = moved({fault("crash-before", "read", "data:from")});
  EXPECT_EQ(outcome.crashes, 1);
  EXPECT_FALSE(outcome.fired().is_null());
  expect_arrived("");
}

TEST_P(BothSides, WhatStrikesTheSourceStrikesFirst) {
  std::vector<scenarios::Fault> faults = {fault("errno", "write", "data:a", 1, {{"error", "ENOSPC"}}),
                                          fault("delay", "read", "data:from", 1, {{"for", "1ms"}})};
  auto outcome = moved(faults);
  std::vector<std::string> fired;
  for (const auto& event : outcome.of_kind("fault.fired")) fired.push_back(event.attrs["kind"]);
  if (!GetParam().into_file) {
    EXPECT_EQ(fired, std::vector<std::string>{"delay"});
    return;
  }
  EXPECT_EQ(outcome.output, said(-1, 28));
  EXPECT_EQ(fired, (std::vector<std::string>{"delay", "errno"}));
  faults.push_back(fault("errno", "read", "data:from", 1, {{"error", "EIO"}}));
  outcome = moved(faults);
  EXPECT_EQ(outcome.output, said(-1, 5));
  EXPECT_THAT(outcome.of_kind("syscall").back().attrs["detail"].get<std::string>(),
              testing::HasSubstr("errno was planned here, too, and not carried out"));
}

TEST_P(BothSides, OffsetsAreThoseOfTheSide) {
  const auto at = [](std::uint64_t least) {
    scenarios::Aim aim;
    aim.offset = scenarios::Range{least, least};
    return aim;
  };
  EXPECT_EQ(moved({rule("errno", "read", {{"error", "EIO"}}, at(0))}).output, said(-1, 5));
  EXPECT_EQ(moved({rule("errno", "read", {{"error", "EIO"}}, at(3))}).output, said(10, 0, "0123456789"));
}

INSTANTIATE_TEST_SUITE_P(Calls, BothSides,
                         testing::Values(Mover{"sendfile", "sendfile,from,a", "sendfile", true, true},
                                         Mover{"sendfile_at", "sendfile-at,from,a", "sendfile-at", true, true},
                                         Mover{"copy_file_range", "copy,from,a", "copy", true, true},
                                         Mover{"copy_file_range_at", "copy-at,from,a", "copy-at", true, true},
                                         Mover{"splice", "splice-out,from,10", "splice-out", false, false}),
                         [](const auto& named) { return std::string(named.param.name); });

TEST(FromFileToFile, EachSideHasItsOwnPlace) {
  const ScratchFolder folder;
  std::ofstream(folder / "from") << "0123456789";
  const auto copied = [&](const std::string& family, std::uint64_t place) {
    scenarios::Aim aim;
    aim.offset = scenarios::Range{place, place};
    return run({program("steps"), "copy-at,from,a,3"}, {.families = {"read", "write"},
                                                        .data_folder = folder.path(),
                                                        .faults = {rule("errno", family, {{"error", "EIO"}}, aim)},
                                                        .working_folder = folder.path()})
        .output;
  };
  EXPECT_EQ(copied("read", 3), "copy-at -1 5\n");
  EXPECT_EQ(copied("write", 0), "copy-at -1 5\n");
  EXPECT_EQ(copied("read", 0), "copy-at 7 0\n");
  EXPECT_EQ(copied("write", 3), "copy-at 7 0\n");
}

/// To or from a socket: ten bytes.
Outcome traffic(const ScratchFolder& folder, const std::string& side, const std::string& how,
                std::vector<scenarios::Fault> faults, const std::string& late = "") {
  std::vector<std::string> words = {program("traffic"), "tcp", side, how, "0123456789"};
  if (!late.empty()) words.push_back(late);
  return run(words, {.families = {"read", "write", "send", "receive"},
                     .data_folder = folder.path(),
                     .faults = std::move(faults),
                     .working_folder = folder.path()});
}

TEST(FromFileToSocket, EachSideHasItsFault) {
  const ScratchFolder folder;
  const auto plain = traffic(folder, "send", "sendfile", {});
  EXPECT_EQ(plain.output, "sendfile 10 0 0123456789\n");
  EXPECT_EQ(plain.count("read", "data:traffic-file"), 1u);
  EXPECT_EQ(plain.count("send", "socket"), 1u);
  const auto file = fault("errno", "read", "data:traffic-file", 1, {{"error", "EIO"}});
  EXPECT_EQ(traffic(folder, "send", "sendfile", {file}).output, "sendfile -1 5 \n");
  const auto socket = fault("errno", "send", "socket", 1, {{"error", "EPIPE"}});
  EXPECT_EQ(traffic(folder, "send", "sendfile", {socket}).output, "sendfile -1 32 \n");
  const auto cut = fault("short", "read", "data:traffic-file", 1, {{"bytes", 4}});
  EXPECT_EQ(traffic(folder, "send", "sendfile", {cut}).output, "sendfile 4 0 0123\n");
  for (const auto* how : {"sendfile", "sendfile-at"}) {
    const auto wrong = fault("corrupt", "read", "data:traffic-file", 1, {{"offset", 3}});
    EXPECT_EQ(traffic(folder, "send", how, {wrong}).output, how + std::string(" 10 0 0122456789\n"));
  }
}

TEST(FromSocketToPipe, ReceivingIsFaulted) {
  const ScratchFolder folder;
  const auto plain = traffic(folder, "receive", "splice", {});
  EXPECT_EQ(plain.output, "splice 10 0 0123456789\n");
  EXPECT_EQ(plain.count("receive", "socket"), 1u);
  const auto reset = fault("errno", "receive", "socket", 1, {{"error", "ECONNRESET"}});
  EXPECT_EQ(traffic(folder, "receive", "splice", {reset}).output, "splice -1 104 \n");
  const auto cut = fault("short", "receive", "socket", 1, {{"bytes", 4}});
  EXPECT_EQ(traffic(folder, "receive", "splice", {cut}).output, "splice 4 0 0123\n");
  EXPECT_EQ(traffic(folder, "receive", "splice", {cut}, "late").output, "splice 4 0 0123\n") << "its bytes came later";
}

TEST(FromPipeToFile, ARuleThatAsksForPipesStrikesTheSource) {
  const ScratchFolder folder;
  scenarios::Aim pipes;
  pipes.object = "pipe";
  const auto outcome =
      run({program("steps"), "splice,a,hello"}, {.families = {"read", "write"},
                                                 .data_folder = folder.path(),
                                                 .faults = {rule("short", "read", {{"bytes", 2}}, pipes)},
                                                 .working_folder = folder.path()});
  EXPECT_EQ(outcome.output, "splice 2 0\n");
  EXPECT_EQ(contents(folder / "a"), "he");
}

TEST(BothSidesOfOne, AnUnresolvedSourceLeavesTheDestination) {
  const ScratchFolder folder;
  std::ofstream(folder / "from") << "0123456789";
  const auto outcome = run({program("steps"), "copy,none,a", "copy,from,a"},
                           {.families = {"read", "write"},
                            .data_folder = folder.path(),
                            .faults = {fault("errno", "write", "data:a", 2, {{"error", "ENOSPC"}})},
                            .working_folder = folder.path()});
  EXPECT_EQ(outcome.output, "copy -1 9\ncopy -1 28\n");
  EXPECT_EQ(outcome.of_kind("unresolved").size(), 1u);
  EXPECT_EQ(outcome.count("write", "data:a"), 2u);
}

}  // namespace
}  // namespace leafcutter::node::tests
