// Real programs with every family watched and no fault: they behave exactly as without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "harness.hpp"

namespace leafcutter::node::tests {
namespace {

struct RealProgram {
  const char* name;
  const char* script;    ///< for sh -eu; its working folder is empty and its own
  const char* family;    ///< a site that it must have visited when it was watched
  const char* resource;  ///< of that family
  const char* said;      ///< part of what it writes
};
void PrintTo(const RealProgram& program, std::ostream* out) { *out << program.name; }

constexpr RealProgram programs[] = {
    {"cp",
     "mkdir -p a/b; seq 100000 > a/b/numbers; ln -s numbers a/b/link; cp -a a c; diff -r a c; cksum < c/b/numbers",
     "write", "data:c/b/numbers", "588895"},
    {"git",
     "export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' HOME=$PWD\n"
     "git init -q r; cd r; git config user.name a; git config user.email a@b; seq 1000 > f; git add f\n"
     "git commit -qm one; seq 2000 > f; git commit -qam two; git gc -q; git fsck --strict 2>/dev/null\n"
     "git clone -q . ../s 2>/dev/null; git -C ../s log --format='%H %s'",
     "rename", "data:r/.git/objects/pack/pack-#.pack", "two"},
    {"sqlite3",
     "sqlite3 t.db 'pragma journal_mode=wal; create table t(x);'\n"
     "for i in 1 2 3 4 5; do sqlite3 t.db \"insert into t values($i);\"; done\n"
     "sqlite3 t.db 'select sum(x) from t; pragma integrity_check;'",
     "fsync", "data:t.db-wal", "15\nok"},
    {"redis",
     "redis-server --port 0 --unixsocket s --save '' --appendonly yes --appendfsync always --logfile log &\n"
     "until redis-cli -s s ping >/dev/null 2>&1; do sleep 0.01; done\n"
     "redis-benchmark -s s -t set,incr -n 200 -c 8 -q >/dev/null 2>&1\n"
     "redis-cli -s s get counter:__rand_int__; redis-cli -s s bgrewriteaof >/dev/null; redis-cli -s s set a b\n"
     "redis-cli -s s shutdown; wait $!; echo ended $?",
     "fsync", "data:appendonlydir/appendonly.aof.#.incr.aof", "200\nOK\nended 0"},
    {"nginx",
     "mkdir logs; seq 20000 > page; cat > conf <<EOF\n"
     "daemon off; worker_processes 2; pid $PWD/pid; error_log $PWD/logs/error; user $(id -un) $(id -gn);\n"
     "events { worker_connections 64; }\n"
     "http { access_log $PWD/logs/access; client_body_temp_path $PWD/1; proxy_temp_path $PWD/2;\n"
     "fastcgi_temp_path $PWD/3; uwsgi_temp_path $PWD/4; scgi_temp_path $PWD/5; sendfile on;\n"
     "server { listen unix:$PWD/s; root $PWD; } }\n"
     "EOF\n"
     "nginx -e $PWD/logs/start -c $PWD/conf & until [ -S s ]; do sleep 0.01; done\n"
     "for i in 1 2 3; do curl -s --unix-socket s http://x/page | cksum; done\n"
     "curl -s -o /dev/null -w '%{http_code}\\n' --unix-socket s http://x/none\n"
     "kill -QUIT $!; wait $!; echo ended $?; wc -l < logs/access",
     "write", "data:logs/access", "404\nended 0\n4"},
    {"postgres",
     // It refuses to be root, so it is somebody else in a user namespace.
     "unshare --user --map-user=33 --map-group=33 sh -eu -c '\n"
     "initdb -N -A trust -U me d > /dev/null\n"
     "postgres -D d -k $PWD -h \"\" > log 2>&1 & until psql -qh $PWD -U me -c \"\" postgres 2>/dev/null; do sleep "
     "0.02; "
     "done\n"
     "psql -qAth $PWD -U me postgres -c \"create table t as select generate_series(1, 1000) x\" "
     "-c \"insert into t select x from t\" -c checkpoint -c \"select count(*), sum(x) from t\"\n"
     "kill -INT $!; wait $!; echo ended $?'",
     "fsync", "data:d/pg_wal/#", "2000|1001000\nended 0"},
    {"age",  // a Go program
     "age-keygen -o key 2>/dev/null; seq 200000 > plain; age -r \"$(age-keygen -y key)\" -o sealed plain\n"
     "age -d -i key -o opened sealed; cmp plain opened; cksum < opened",
     "write", "data:opened", "1288895"},
};

class Observed : public testing::TestWithParam<RealProgram> {};

TEST_P(Observed, BehavesAsWithout) {
  const auto& real = GetParam();
  const auto once = [&](std::vector<std::string> families) {
    const ScratchFolder folder;
    return run({"sh", "-eu", "-c", real.script},
               {.families = std::move(families), .data_folder = folder.path(), .working_folder = folder.path()});
  };
  const auto alone = once({}), watched = once(all_families());
  ASSERT_TRUE(alone.exited_well()) << alone.status << alone.output;
  EXPECT_THAT(alone.output, testing::HasSubstr(real.said));
  EXPECT_FALSE(watched.timed_out);
  EXPECT_EQ(watched.status, alone.status);
  EXPECT_EQ(watched.output, alone.output);
  EXPECT_EQ(watched.failure, "");
  EXPECT_GT(watched.count(real.family, real.resource), 0u) << watched.of_kind("sites").at(0).attrs.dump(1);
  for (const auto& event : watched.of_kind("syscall")) {
    // io_uring_setup may be refused; that is no fault.
    if (event.attrs["call"] == "io_uring_setup") continue;
    EXPECT_FALSE(event.attrs.contains("detail")) << event.attrs;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Observed, testing::ValuesIn(programs),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace leafcutter::node::tests
