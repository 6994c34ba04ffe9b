// Calls that carry fewer bytes than they were asked for, or a wrong one; and those that cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <ostream>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

Setting with(const ScratchFolder& folder, const std::string& family, scenarios::Fault struck) {
  return {.families = {family},
          .data_folder = folder.path(),
          .faults = {std::move(struck)},
          .working_folder = folder.path()};
}

std::string details(const Outcome& outcome) {
  std::string all;
  for (const auto& event : outcome.of_kind("syscall")) all += event.attrs.value("detail", "") + "\n";
  return all;
}

struct FileCall {
  std::string name;
  std::string step;   ///< "@" is the data folder; reads 10 bytes or writes 10
  std::string shown;  ///< what the program prints when 4 of them are carried
  std::string left;   ///< what is then in the file that is written
};
void PrintTo(const FileCall& c, std::ostream* out) { *out << c.name; }

std::string at(std::string step, const ScratchFolder& folder) {
  for (std::size_t found = 0; (found = step.find('@', found)) != std::string::npos;)
    step.replace(found, 1, folder.path());
  return step;
}

class ShortWrite : public testing::TestWithParam<FileCall> {
 protected:
  ShortWrite() { std::ofstream(folder_ / "from") << "0123456789"; }
  ScratchFolder folder_;
};

TEST_P(ShortWrite, CarriesTheFirstBytesAndReturnsTheirNumber) {
  const auto outcome = run({program("steps"), at(GetParam().step, folder_)},
                           with(folder_, "write", fault("short", "write", "data:a", 1, {{"bytes", 4}})));
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure;
  EXPECT_EQ(outcome.output, GetParam().shown) << details(outcome);
  EXPECT_EQ(contents(folder_ / "a"), GetParam().left);
  const auto fired = outcome.fired();
  ASSERT_FALSE(fired.is_null()) << details(outcome);
  EXPECT_EQ(fired["evidence"]["asked"], 10);
  EXPECT_EQ(fired["evidence"]["carried"], 4);
  EXPECT_EQ(outcome.undone()["how"], "the call returned");
}

TEST_P(ShortWrite, ThatIsTornEndsTheService) {
  const auto outcome = run({program("steps"), at(GetParam().step, folder_)},
                           with(folder_, "write", fault("torn", "write", "data:a", 1, {{"bytes", 4}})));
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGKILL) << details(outcome);
  EXPECT_EQ(outcome.crashes, 1);
  EXPECT_EQ(outcome.power_losses, 0);
  EXPECT_EQ(contents(folder_ / "a"), GetParam().left);
  EXPECT_EQ(outcome.fired()["evidence"]["carried"], 4);
  EXPECT_EQ(outcome.output, "");
}

TEST_P(ShortWrite, OfNoMoreBytesIsNotStruck) {
  for (const auto* kind : {"short", "torn"}) {
    const auto outcome = run({program("steps"), at(GetParam().step, folder_)},
                             with(folder_, "write", fault(kind, "write", "data:a", 1, {{"bytes", 10}})));
    ASSERT_TRUE(outcome.exited_well());
    EXPECT_THAT(outcome.output, testing::HasSubstr(" 10 0\n"));
    EXPECT_TRUE(outcome.fired().is_null());
    EXPECT_EQ(contents(folder_ / "a").size(), GetParam().name.starts_with("p") ? 12u : 10u);
    EXPECT_THAT(details(outcome), testing::HasSubstr("not possible: it carries 10 bytes"));
    std::filesystem::remove(folder_ / "a");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, ShortWrite,
    testing::Values(FileCall{"write", "write,@/a,0123456789", "write 4 0\n", "0123"},
                    FileCall{"writev", "writev,@/a,0123456789", "writev 4 0\n", "0123"},
                    FileCall{"pwrite64", "pwrite,@/a,0123456789,2", "pwrite 4 0\n", std::string("\0\0", 2) + "0123"},
                    FileCall{"pwritev", "pwritev,@/a,0123456789,2", "pwritev 4 0\n", std::string("\0\0", 2) + "0123"},
                    FileCall{"pwritev2", "pwritev2,@/a,0123456789,2", "pwritev2 4 0\n",
                             std::string("\0\0", 2) + "0123"},
                    FileCall{"sendfile", "sendfile,@/from,@/a", "sendfile 4 0\n", "0123"},
                    FileCall{"copy_file_range", "copy,@/from,@/a", "copy 4 0\n", "0123"},
                    FileCall{"sendfile_at", "sendfile-at,@/from,@/a", "sendfile-at 4 0\n", "0123"},
                    FileCall{"copy_file_range_at", "copy-at,@/from,@/a", "copy-at 4 0\n", "0123"},
                    FileCall{"splice", "splice,@/a,0123456789", "splice 4 0\n", "0123"}),
    [](const auto& named) { return named.param.name; });

class Reading : public testing::TestWithParam<FileCall> {
 protected:
  Reading() { std::ofstream(folder_ / "a") << "..0123456789"; }
  std::string step(const std::string& count) const { return at(GetParam().step, folder_) + "," + count + ",2"; }
  ScratchFolder folder_;
};

TEST_P(Reading, IsCutShort) {
  const auto outcome =
      run({program("steps"), step("10")}, with(folder_, "read", fault("short", "read", "data:a", 1, {{"bytes", 4}})));
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure;
  EXPECT_EQ(outcome.output, GetParam().shown) << details(outcome);
  EXPECT_EQ(outcome.fired()["evidence"]["carried"], 4);
}

TEST_P(Reading, OfWhatIsLeftIsNotCutShort) {
  const auto left = GetParam().name.starts_with("p") ? 10u : 12u;
  const auto outcome = run({program("steps"), step("50")},
                           with(folder_, "read", fault("short", "read", "data:a", 1, {{"bytes", left}})));
  EXPECT_THAT(outcome.output, testing::HasSubstr(" " + std::to_string(left) + " 0 "));
  EXPECT_TRUE(outcome.fired().is_null()) << "the file has no more: a read of 50 bytes ends there by itself";
}

TEST_P(Reading, HasAWrongBit) {
  const auto outcome = run({program("steps"), step("10")},
                           with(folder_, "read", fault("corrupt", "read", "data:a", 1, {{"offset", 7}, {"bit", 6}})));
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure;
  const auto evidence = outcome.fired()["evidence"];
  ASSERT_FALSE(evidence.is_null()) << details(outcome);
  auto expected = GetParam().name.starts_with("p") ? std::string("0123456789") : std::string("..01234567");
  EXPECT_EQ(evidence["was"], expected[7]);
  expected[7] = static_cast<char>(expected[7] ^ 0x40);
  EXPECT_EQ(evidence["is"], expected[7]);
  EXPECT_THAT(outcome.output, testing::HasSubstr(" 10 0 " + expected + "\n"));
  EXPECT_EQ(contents(folder_ / "a"), "..0123456789") << "the file itself is as it was";
}

TEST_P(Reading, ThatEndsBeforeTheByteIsRight) {
  const auto outcome =
      run({program("steps"), step("7")}, with(folder_, "read", fault("corrupt", "read", "data:a", 1, {{"offset", 7}})));
  EXPECT_THAT(outcome.output, testing::HasSubstr(" 7 0 "));
  EXPECT_TRUE(outcome.fired().is_null());
}

INSTANTIATE_TEST_SUITE_P(Calls, Reading,
                         testing::Values(FileCall{"read", "readn,@/a", "readn 4 0 ..01\n", ""},
                                         FileCall{"readv", "readv,@/a", "readv 4 0 ..01\n", ""},
                                         FileCall{"pread64", "pread,@/a", "pread 4 0 0123\n", ""},
                                         FileCall{"preadv", "preadv,@/a", "preadv 4 0 0123\n", ""},
                                         FileCall{"preadv2", "preadv2,@/a", "preadv2 4 0 0123\n", ""}),
                         [](const auto& named) { return named.param.name; });

TEST(ShortRead, IntoMemoryThatCannotBeWrittenIsNotStruck) {
  const ScratchFolder folder;
  std::ofstream(folder / "a") << "0123456789";
  const auto outcome = run({program("steps"), "bad-read," + (folder / "a")},
                           with(folder, "read", fault("short", "read", "data:a", 1, {{"bytes", 4}})));
  EXPECT_EQ(outcome.output, "bad-read -1 14\n");
  EXPECT_TRUE(outcome.fired().is_null());
}

struct SocketCall {
  std::string kind, how;
};
void PrintTo(const SocketCall& c, std::ostream* out) { *out << c.kind << " " << c.how; }

class Sockets : public testing::TestWithParam<SocketCall> {
 protected:
  Outcome traffic(const std::string& side, const std::string& kind, Value params, bool late = false) const {
    std::vector<std::string> words = {program("traffic"), GetParam().kind, side, GetParam().how, "0123456789"};
    if (late) words.push_back("late");
    const auto family = side == "send" ? "send" : "receive";
    scenarios::Aim aim;
    aim.occurrences = {scenarios::Occurrences::Which::nth, 1};
    static const std::map<std::string, std::string> classes = {{"tcp", "socket-tcp"},   {"tcp6", "socket-tcp"},
                                                               {"udp", "socket-udp"},   {"udp-to", "socket-udp"},
                                                               {"unix", "socket-unix"}, {"dgram", "socket-unix"}};
    aim.object = classes.at(GetParam().kind);
    return run(words, with(folder_, family, rule(kind, family, std::move(params), aim)));
  }
  ScratchFolder folder_;
};
class CutSend : public Sockets {};
class CutReceive : public Sockets {};

TEST_P(CutSend, IsCutShort) {
  const auto outcome = traffic("send", "short", {{"bytes", 4}});
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure << outcome.status;
  EXPECT_EQ(outcome.output, GetParam().how + " 4 0 0123\n") << details(outcome);
  EXPECT_EQ(outcome.fired()["evidence"]["asked"], 10);
}

TEST_P(CutSend, OfNoMoreBytesIsNotStruck) {
  const auto outcome = traffic("send", "short", {{"bytes", 10}});
  EXPECT_EQ(outcome.output, GetParam().how + " 10 0 0123456789\n");
  EXPECT_TRUE(outcome.fired().is_null());
}

INSTANTIATE_TEST_SUITE_P(By, CutSend,
                         testing::Values(SocketCall{"tcp", "send"}, SocketCall{"tcp", "sendmsg"},
                                         SocketCall{"tcp", "sendmmsg"}, SocketCall{"tcp", "write"},
                                         SocketCall{"tcp", "writev"}, SocketCall{"tcp", "sendfile"},
                                         SocketCall{"tcp", "sendfile-at"}, SocketCall{"tcp", "splice"},
                                         SocketCall{"tcp6", "send"}, SocketCall{"unix", "send"},
                                         SocketCall{"unix", "writev"}, SocketCall{"udp", "send"},
                                         SocketCall{"udp-to", "send"}, SocketCall{"udp-to", "sendmsg"},
                                         SocketCall{"udp-to", "sendmmsg"}, SocketCall{"dgram", "send"}));

TEST_P(CutReceive, IsCutShort) {
  const auto outcome = traffic("receive", "short", {{"bytes", 4}});
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure << outcome.status;
  EXPECT_EQ(outcome.output, GetParam().how + " 4 0 0123\n") << details(outcome);
  EXPECT_EQ(outcome.fired()["evidence"]["carried"], 4);
}

TEST_P(CutReceive, OfNoMoreBytesIsNotStruck) {
  const auto outcome = traffic("receive", "short", {{"bytes", 10}});
  EXPECT_EQ(outcome.output, GetParam().how + " 10 0 0123456789\n");
  EXPECT_TRUE(outcome.fired().is_null());
}

TEST_P(CutReceive, HasAWrongBit) {
  const auto outcome = traffic("receive", "corrupt", {{"offset", 9}});
  EXPECT_EQ(outcome.output, GetParam().how + " 10 0 0123456788\n") << details(outcome);
}

/// The call waits for its bytes before anything can be said of it, and no other task of the service waits with it.
TEST_P(CutReceive, WaitsForItsBytes) {
  const auto outcome = traffic("receive", "short", {{"bytes", 4}}, true);
  ASSERT_TRUE(outcome.exited_well()) << outcome.failure << outcome.status;
  EXPECT_EQ(outcome.output, GetParam().how + " 4 0 0123\n") << details(outcome);
}

INSTANTIATE_TEST_SUITE_P(By, CutReceive,
                         testing::Values(SocketCall{"tcp", "recv"}, SocketCall{"tcp", "recvfrom"},
                                         SocketCall{"tcp", "recvmsg"}, SocketCall{"tcp", "recvmmsg"},
                                         SocketCall{"tcp", "read"}, SocketCall{"tcp", "readv"},
                                         SocketCall{"tcp6", "recv"}, SocketCall{"unix", "recv"},
                                         SocketCall{"unix", "recvmsg"}, SocketCall{"udp", "recvfrom"},
                                         SocketCall{"udp", "recvmsg"}, SocketCall{"udp", "recvmmsg"},
                                         SocketCall{"dgram", "recv"}));

TEST(ShortReceive, ThatMayWaitOnlyForATimeFailsAfterIt) {
  const ScratchFolder folder;
  scenarios::Aim unix_sockets;
  unix_sockets.object = "socket-unix";
  const auto outcome = run({program("traffic"), "unix", "receive", "recv-limited", "0123456789", "never"},
                           with(folder, "receive", rule("short", "receive", {{"bytes", 4}}, unix_sockets)));
  EXPECT_EQ(outcome.output, "recv-limited -1 11 \n") << details(outcome);
  EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
}

TEST(ShortRead, OfAPipeIsForARuleThatAsksForPipes) {
  const ScratchFolder folder;
  scenarios::Aim pipes;
  pipes.object = "pipe";
  const std::vector<std::string> words = {program("traffic"), "pipe", "receive", "read", "0123456789", "late"};
  const auto cut = run(words, with(folder, "read", rule("short", "read", {{"bytes", 4}}, pipes)));
  EXPECT_EQ(cut.output, "read 4 0 0123\n") << details(cut);
  const auto whole = run(words, with(folder, "read", rule("short", "read", {{"bytes", 4}})));
  EXPECT_EQ(whole.output, "read 10 0 0123456789\n");
  EXPECT_TRUE(whole.of_kind("fault.fired").empty());
}

}  // namespace
}  // namespace leafcutter::node::tests
