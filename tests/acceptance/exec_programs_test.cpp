// `leafcutter exec` over programs of the distribution: cp, nginx, a Go program, sqlite, git.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec_support.hpp"

namespace {

using acceptance::exec;
using acceptance::Folder;
using acceptance::rules;
using acceptance::shell;
using acceptance::text_of;
using acceptance::Words;
using testing::HasSubstr;
using testing::Not;

TEST(Exec, CpIsToldThatTheDiskIsFull) {
  const Folder folder;
  folder.write("from", std::string(10'000, 'x'));
  const auto outcome = exec(folder, rules({"write=ENOSPC path=to"}), {"cp", "from", "to"});
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("No space left on device"));
  EXPECT_THAT(outcome.err, HasSubstr("leafcutter: fired"));
  EXPECT_EQ(text_of(folder / "to"), "");
  // The twin: another file, a pipe and the system's files are not struck.
  for (const auto* rule : {"write=ENOSPC path=other", "send=EIO", "write=ENOSPC path=*.wal"}) {
    const auto spared = exec(folder, rules({rule}), {"cp", "from", "copy"});
    EXPECT_EQ(spared.exit, 3) << rule << spared.err;
    EXPECT_EQ(text_of(folder / "copy").size(), 10'000u) << rule;
  }
  const auto piped = shell(folder, rules({"write=EIO", "read=EIO", "open=EIO"}), "echo to a pipe");
  EXPECT_EQ(piped.exit, 3) << piped.err;
  EXPECT_EQ(piped.out, "to a pipe\n");
}

/// cat and cp move the bytes within the kernel (copy_file_range): that is a read of the one and a write of the other.
TEST(Exec, ACopyIsReadAndWritten) {
  const Folder folder;
  folder.write("from", "0123456789");
  struct Struck {
    const char *rule, *script, *said;
    int exit;
  };
  const Struck struck[] = {{"read=EIO path=from", "cat from > to", "Input/output error", 1},
                           {"read=EIO path=from", "cp from to", "Input/output error", 1},
                           {"write=EDQUOT path=to", "cat from > to", "Disk quota exceeded", 1},
                           {"read=short:3 path=from #1", "cat from > to; cmp from to", "", 0},
                           {"read=corrupt:3 path=from #1", "cat from > to; cmp from to", "", 1},
                           {"read=crash path=from", "cp from to", "", 137}};
  for (const auto& c : struck) {
    const auto outcome = shell(folder, rules({c.rule}), c.script);
    EXPECT_EQ(outcome.exit, c.exit) << c.rule << " " << c.script << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.said)) << c.rule;
    EXPECT_THAT(outcome.err, HasSubstr("leafcutter: fired once")) << c.rule;
    EXPECT_THAT(outcome.err, HasSubstr("copy_file_range")) << c.rule;
  }
  // The twins: nothing reads the copy or writes the original, and what cannot strike says so.
  for (const auto* rule : {"read=EIO path=to", "write=EIO path=from"}) {
    const auto spared = shell(folder, rules({rule}), "cat from > to; cp from to2");
    EXPECT_EQ(spared.exit, 3) << rule << spared.err;
    EXPECT_EQ(text_of(folder / "to"), "0123456789");
  }
  const auto whole = shell(folder, rules({"read=short:10 path=from size=10.."}), "cat from > to");
  EXPECT_EQ(whole.exit, 3) << whole.err;
  EXPECT_THAT(whole.err, HasSubstr("a call that it was meant for: copy_file_range " + (folder / "from") +
                                   ": short not possible: it carries 10 bytes\n"));
}

/// Every program tries some unix sockets; a rule without an object is not about them.
TEST(Exec, AConnectRuleMeansTcp) {
  const Folder folder;
  static constexpr auto script =
      "import socket, sys\n"
      "try: socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
      "except OSError as e: print(e.errno)\n";
  const auto python = [&](const char* rule) {
    return exec(folder, rules({rule}), {"python3", "-c", script, "/tmp/leafcutter-no-such-socket"});
  };
  const auto spared = python("connect=ENETUNREACH");
  EXPECT_EQ(spared.out, "2\n") << "there is no such socket";
  EXPECT_EQ(spared.exit, 3) << spared.err;
  EXPECT_EQ(python("connect=ENETUNREACH object=socket-unix").out, "101\n");
}

TEST(Exec, NginxSendsAFileThatCannotBeRead) {
  static constexpr auto script =
      "mkdir logs; seq 2000 > page; seq 2000 > other; cat > conf <<EOF\n"
      "daemon off; master_process off; pid $PWD/pid; error_log $PWD/logs/error;\n"
      "events { worker_connections 64; }\n"
      "http { access_log off; client_body_temp_path $PWD/1; proxy_temp_path $PWD/2; fastcgi_temp_path $PWD/3;\n"
      "uwsgi_temp_path $PWD/4; scgi_temp_path $PWD/5; sendfile on; server { listen unix:$PWD/s; root $PWD; } }\n"
      "EOF\n"
      "nginx -e $PWD/logs/start -c $PWD/conf & until [ -S s ]; do sleep 0.01; done\n"
      "curl -s --unix-socket s http://x/page | cmp - page && echo whole\n"
      "kill -QUIT $!; wait $!";
  const Folder folder, other;
  const auto struck = shell(folder, rules({"read=EIO call=sendfile path=page"}), script);
  EXPECT_THAT(struck.out, Not(HasSubstr("whole")));
  EXPECT_THAT(struck.err, HasSubstr("leafcutter: fired once: read=EIO call=sendfile path=page\n"));
  EXPECT_THAT(text_of(folder / "logs/error"), HasSubstr("sendfile"));
  const auto spared = shell(other, rules({"read=EIO call=sendfile path=other"}), script);
  EXPECT_THAT(spared.out, HasSubstr("whole"));
  EXPECT_THAT(spared.err, HasSubstr("NEVER FIRED"));
}

TEST(Exec, AGoProgramIsToldWhatItsFilesDo) {
  const Folder folder;
  const auto script =
      "age-keygen -o key 2>/dev/null; seq 20000 > plain; age -r \"$(age-keygen -y key)\" -o sealed plain || exit 9\n"
      "age -d -i key -o opened sealed && cmp plain opened";
  const auto struck = shell(folder, rules({"write=ENOSPC path=sealed #2"}), script);
  EXPECT_EQ(struck.exit, 9) << struck.err;
  EXPECT_THAT(struck.err, HasSubstr("no space left on device"));
  EXPECT_THAT(struck.err, HasSubstr("leafcutter: fired once: write=ENOSPC path=sealed #2\n"));
  const Folder other;
  const auto spared = shell(other, rules({"write=ENOSPC path=sealed #2000"}), script);
  EXPECT_EQ(spared.exit, 3) << spared.err << "and the program itself came through";
}

TEST(Exec, SqliteRollsBackWhenItsJournalCannotBeSynced) {
  const Folder folder;
  const Words create = {"sqlite3", "shop.db", "create table orders(id); insert into orders values(1);"};
  ASSERT_EQ(exec(folder, {}, create).exit, 0);
  const Words insert = {"sqlite3", "shop.db", "insert into orders values(2);"};
  const auto outcome = exec(folder, rules({"fsync=EIO path=*-journal #1"}), insert);
  EXPECT_NE(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.exit, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("disk I/O error"));
  EXPECT_THAT(outcome.err, HasSubstr("leafcutter: fired once: fsync=EIO path=*-journal #1"));
  const Words count = {"sqlite3", "shop.db", "select count(*) from orders;"};
  EXPECT_EQ(exec(folder, {}, count).out, "1\n");
  EXPECT_EQ(exec(folder, rules({"fsync=EIO path=*-wal"}), insert).exit, 3) << "no write-ahead log here";
  EXPECT_EQ(exec(folder, {}, count).out, "2\n");
}

TEST(Exec, GitKeepsItsIndexWhenTheLockCannotBeRenamed) {
  const Folder folder;
  folder.write("repo/a", "one");
  const std::string git = "git -c user.name=x -c user.email=x@example.org -c init.defaultBranch=main ";
  ASSERT_EQ(shell(folder, {"--cwd", "repo"}, git + "init -q && " + git + "add a && " + git + "commit -qm one").exit, 0);
  folder.write("repo/b", "two");
  const auto outcome =
      shell(folder, {"--cwd", "repo", "--fault", "rename=EIO path=.git/index #1"}, "exec " + git + "add b");
  EXPECT_EQ(outcome.exit, 128) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("fired once: rename=EIO path=.git/index #1"));
  const auto status = shell(folder, {"--cwd", "repo"}, git + "status --short");
  EXPECT_EQ(status.out, "?? b\n");
  EXPECT_EQ(shell(folder, {"--cwd", "repo"}, git + "fsck --strict").exit, 0);
}

}  // namespace
