// What a service is started with: limits and clocks, read back from the kernel and felt by the program itself.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>

#include "harness.hpp"
#include "node/host/doctor.hpp"

namespace leafcutter::node::testing {
namespace {

/// A service that says what it finds, and a workload that kills it once.
const char* const looking = R"(
leafcutter: 1
name: looking
services:
  shop:
    run:
      - /bin/sh
      - -c
      - >-
        echo files $(ulimit -n) memory $(ulimit -v) ;
        exec ${scenario}/bin/web --port 8080 --data ${data}
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
    restart: { on: any-exit, at-most: 3 }
workload:
  - { get: shop/exit, within: 2s }
  - { get: shop/health, within: 2s }
)";

scenarios::Plan start_plan(const std::string& kind, Value params, std::uint32_t attempt = 1) {
  scenarios::Plan plan;
  plan.faults.push_back({kind, {"shop", "start", "start"}, attempt, std::move(params), {}});
  return plan;
}

std::vector<std::string> log_lines(const Ran& ran, const std::string& beginning) {
  std::vector<std::string> lines;
  for (const auto& event : ran.of("log", "shop"))
    if (const auto line = event.attrs["line"].get<std::string>(); line.starts_with(beginning)) lines.push_back(line);
  return lines;
}

std::uint32_t starts_counted(const Ran& ran) {
  const auto sites = ran.of("sites");
  if (sites.empty()) return 0;
  const auto counted = sites[0].attrs["sites"];
  for (const auto& site : counted)
    if (site[0] == "shop" && site[1] == "start" && site[2] == "start") return site[3];
  return 0;
}

TEST(StartFaults, ALimitOfFilesHoldsForTheStartItIsPlannedFor) {
  Nest nest;
  nest.give(looking);
  const auto ran = nest.run(start_plan("limit-files", {{"count", 24}}, 2));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  const auto fired = ran.of("fault.fired", "shop"), starts = ran.of("start");
  ASSERT_EQ(fired.size(), 1u);
  ASSERT_EQ(starts.size(), 2u);
  const auto evidence = fired[0].attrs["evidence"];
  EXPECT_EQ(evidence["limit"], "RLIMIT_NOFILE");
  EXPECT_EQ(evidence["soft"], 24);
  EXPECT_EQ(evidence["hard"], 24);
  EXPECT_GT(evidence["pid"], 1);
  EXPECT_GT(fired[0].at, starts[1].at);
  const auto lines = log_lines(ran, "files ");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].find("files 24 "), std::string::npos);
  EXPECT_EQ(lines[1].find("files 24 "), 0u);
  EXPECT_EQ(starts_counted(ran), 2u);
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
}

TEST(StartFaults, ALimitEndsWithTheProcessThatWasStartedWithIt) {
  Nest nest;
  nest.give(looking);
  const auto ran = nest.run(start_plan("limit-files", {{"count", 24}}));
  SCOPED_TRACE(ran.text());
  const auto lines = log_lines(ran, "files ");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].find("files 24 "), 0u);
  EXPECT_EQ(lines[1].find("files 24 "), std::string::npos);
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
  EXPECT_EQ(ran.of("fault.undone")[0].attrs["how"], "the process that was started with it has ended");
  ASSERT_EQ(ran.of("start").size(), 2u);
  EXPECT_LT(ran.of("fault.undone")[0].at, ran.of("start")[1].at);
}

TEST(StartFaults, TheLowestLimitIsGivenBesideASystemCallFilter) {
  Nest nest;
  nest.give(std::string(one_service) + R"(
workload:
  - { run: [/bin/true] }
explore:
  faults:
    - on: shop
      syscalls: { families: [write, read, receive, send, open], errors: [EIO] }
)");
  // Fewer than the hand-over of the filter's listener needs, and than a dynamic program needs to be loaded.
  const auto ran = nest.run(start_plan("limit-files", {{"count", 3}}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["soft"], 3);
  EXPECT_TRUE(ran.of("ready").empty());
  ASSERT_EQ(ran.of("exit").size(), 1u);
  EXPECT_EQ(ran.of("exit")[0].attrs["injected"], false);
}

TEST(StartFaults, ALimitOfMemoryIsSeenByTheProgram) {
  Nest nest;
  nest.give(looking);
  const auto ran = nest.run(start_plan("limit-memory", {{"bytes", 64 << 20}}));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["limit"], "RLIMIT_AS");
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["hard"], 64 << 20);
  const auto lines = log_lines(ran, "files ");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find(" memory 65536"), std::string::npos);
  EXPECT_EQ(lines[1].find(" memory 65536"), std::string::npos);
}

TEST(StartFaults, AnAttemptThatNeverComesDoesNotFire) {
  Nest nest;
  nest.give(looking);
  const auto ran = nest.run(start_plan("limit-files", {{"count", 24}}, 3));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  EXPECT_TRUE(ran.of("fault.fired").empty());
  EXPECT_TRUE(ran.of("fault.undone").empty());
  EXPECT_EQ(starts_counted(ran), 2u);
}

TEST(StartFaults, ALimitThatTheHostIsBelowIsUnavailable) {
  Nest nest;
  nest.give(looking);
  const auto ran = nest.run(start_plan("limit-memory", {{"bytes", 1'000'000'000'000}}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.of("fault.fired").size(), 1u);  // nobody limits memory here
  const auto more = nest.run(start_plan("limit-files", {{"count", 1'048'576}}));
  if (!more.of("fault.fired").empty()) return;  // the host allows it
  EXPECT_EQ(more.end()["cause"], "infra");
  EXPECT_EQ(more.end()["reason"], "unavailable");
  EXPECT_NE(more.end()["detail"].get<std::string>().find("RLIMIT_NOFILE cannot be 1048576: this host allows no more"),
            std::string::npos)
      << more.text();
}

TEST(StartFaults, StartsAreSitesOnlyWhereTheScenarioAsksForThem) {
  Nest nest;
  nest.give(looking);
  const auto without = nest.run();
  EXPECT_EQ(starts_counted(without), 0u) << without.text();
  nest.give(std::string(looking) + R"(
explore:
  faults:
    - on: shop
      process: [ { limit-files: 32 } ]
)",
            "asking");
  const auto asking = nest.wait(nest.start(nest.job({}, "asking")));
  EXPECT_EQ(starts_counted(asking), 2u) << asking.text();
  EXPECT_TRUE(asking.of("fault.armed").empty());
}

/// The first field of the service's /proc/uptime, which is its boot clock, and its own offsets.
const char* const clocked = R"(
leafcutter: 1
name: clocked
services:
  shop:
    run:
      - /bin/sh
      - -c
      - >-
        echo up $(cut -d. -f1 /proc/uptime) ;
        exec ${scenario}/bin/web --port 8080 --data ${data}
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
    restart: { on: any-exit, at-most: 3 }
workload:
  - { get: shop/exit, within: 2s }
  - { get: shop/health, within: 2s }
)";

long up_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

TEST(StartFaults, ClocksAreAheadForTheStartItIsPlannedFor) {
  Nest nest;
  nest.give(clocked);
  const auto before = up_now();
  const auto ran = nest.run(start_plan("clock-offset", {{"by", "1h"}}));
  const auto after = up_now();
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired", "shop").size(), 1u);
  const auto evidence = ran.of("fault.fired")[0].attrs["evidence"];
  EXPECT_EQ(evidence["monotonic_offset_ns"], 3'600'000'000'000);
  EXPECT_EQ(evidence["boottime_offset_ns"], 3'600'000'000'000);
  const auto lines = log_lines(ran, "up ");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_GE(std::stol(lines[0].substr(3)), before + 3600);
  EXPECT_LE(std::stol(lines[0].substr(3)), after + 3600);
  EXPECT_GE(std::stol(lines[1].substr(3)), before);
  EXPECT_LE(std::stol(lines[1].substr(3)), after);
  ASSERT_EQ(ran.of("fault.undone").size(), 1u);
  EXPECT_EQ(ran.of("ready").size(), 2u);
}

TEST(StartFaults, ClocksCanBeBehindByParts) {
  Nest nest;
  nest.give(clocked);
  const auto ran = nest.run(start_plan("clock-offset", {{"by", "-1500ms"}}));
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("fault.fired").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["monotonic_offset_ns"], -1'500'000'000);
}

TEST(StartFaults, ClocksBelowZeroAreUnavailable) {
  Nest nest;
  nest.give(clocked);
  const auto ran = nest.run(start_plan("clock-offset", {{"by", "-800000h"}}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "infra");
  EXPECT_EQ(ran.end()["reason"], "unavailable");
  EXPECT_TRUE(ran.of("start").empty());
  EXPECT_TRUE(ran.of("fault.fired").empty());
}

/// Two services with several processes of the same user; `shop` starts as many as it may, up to twenty.
const char* const forking = R"(
leafcutter: 1
name: forking
services:
  other:
    run: [/bin/sh, -c, "sleep 100 & sleep 100 & sleep 100 & sleep 100 & echo up; exec sleep 100"]
    ready: { log: up }
  shop:
    needs: [other]
    run: [/usr/bin/python3, "${scenario}/forking.py"]
    ready: { log: done }
workload:
  - { run: [/bin/true] }
)";

const char* const forking_program = R"(
import errno, os, signal, time
made, why = 0, "none"
while made < 20:
    try:
        if os.fork() == 0:
            signal.pause()
            os._exit(0)
        made += 1
    except OSError as error:
        why = errno.errorcode[error.errno]
        break
print("children", made, why, flush=True)
print("done", flush=True)
signal.pause()
)";

bool limits_processes() {
  const auto capabilities = examine_host();
  return std::any_of(capabilities.begin(), capabilities.end(),
                     [](const auto& one) { return one.name == "process-limit" && one.seen; });
}

TEST(StartFaults, ALimitOfProcessesIsUnavailableWhereTheKernelExemptsTheUser) {
  if (limits_processes()) GTEST_SKIP() << "this user is not exempt: the next test is about that";
  Nest nest;
  nest.write("forking.py", forking_program);
  nest.give(forking);
  const auto ran = nest.run(start_plan("limit-processes", {{"count", 5}}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "infra");
  EXPECT_EQ(ran.end()["reason"], "unavailable");
  EXPECT_NE(ran.end()["detail"].get<std::string>().find(
                "limit-processes(count=5) at shop start start #1 needs process-limit"),
            std::string::npos);
  EXPECT_NE(ran.end()["detail"].get<std::string>().find("another user than root"), std::string::npos);
  EXPECT_TRUE(ran.of("start").empty());
}

/// A nest whose nursery runs as a user that the kernel limits: this one, or, when root runs the tests, nobody.
class OrdinaryNest {
 public:
  OrdinaryNest() {
    const bool other = !limits_processes();
    if (other) {
      std::filesystem::copy_file(NURSERY_PROGRAM, folder_.path() + "/nursery");
      program_ = folder_.path() + "/as-nobody";
      std::ofstream(program_) << "#!/bin/sh\nexec /usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups "
                              << folder_.path() << "/nursery \"$@\"\n";
      for (const auto& path : {program_, folder_.path()}) open_to_all(path);
    }
    nest_ = std::make_unique<Nest>(program_);
    const auto socket = nest_->courier().endpoint().substr(std::string("ipc://").size());
    if (!other) return;
    for (const auto& path : {nest_->folder(), socket, std::filesystem::path(socket).parent_path().string()})
      open_to_all(path);
  }
  Nest& operator*() { return *nest_; }

 private:
  static void open_to_all(const std::string& path) {
    // The courier's socket is made by its thread.
    EXPECT_TRUE(eventually([&] { return ::chmod(path.c_str(), 0777) == 0; }, std::chrono::seconds(5))) << path;
  }
  Folder folder_;
  std::string program_ = NURSERY_PROGRAM;
  std::unique_ptr<Nest> nest_;
};

TEST(StartFaults, ALimitOfProcessesHoldsForOneServiceAlone) {
  OrdinaryNest ordinary;
  auto& nest = *ordinary;
  nest.write("forking.py", forking_program);
  nest.give(forking);
  const auto free = nest.run();
  EXPECT_EQ(log_lines(free, "children "), std::vector<std::string>{"children 20 none"}) << free.text();
  const auto ran = nest.run(start_plan("limit-processes", {{"count", 5}}));
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired", "shop").size(), 1u);
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["limit"], "RLIMIT_NPROC");
  EXPECT_EQ(ran.of("fault.fired")[0].attrs["evidence"]["soft"], 5);
  // The program and four more: neither the other service nor the leaf itself is counted.
  EXPECT_EQ(log_lines(ran, "children "), std::vector<std::string>{"children 4 EAGAIN"});
  EXPECT_EQ(ran.of("ready", "shop").size(), 1u);
}

TEST(StartFaults, AServiceWithALimitOfProcessesIsWatchedAsBefore) {
  OrdinaryNest ordinary;
  auto& nest = *ordinary;
  nest.give(std::string(one_service) + R"(    restart: { on: crash, at-most: 3 }
workload:
  - { post: shop/lines, json: { id: a } }
  - { get: shop/lines }
)");
  auto plan = start_plan("limit-processes", {{"count", 1}});
  plan.faults.push_back({"crash-after", {"shop", "write", "data:lines"}, 1, Value::object(), {}});
  const auto ran = nest.run(plan);
  SCOPED_TRACE(ran.text());
  EXPECT_EQ(ran.end()["cause"], "completed");
  ASSERT_EQ(ran.of("fault.fired").size(), 2u);
  ASSERT_EQ(ran.of("exit").size(), 1u);
  EXPECT_EQ(ran.of("exit")[0].attrs["injected"], true);
  ASSERT_EQ(ran.of("step").size(), 2u);
  EXPECT_EQ(ran.of("step")[1].attrs["json"]["count"], 1);
}

}  // namespace
}  // namespace leafcutter::node::testing
