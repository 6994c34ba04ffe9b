// The launcher and its nursery: every launch ends once, and nothing outlives the nursery.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

bool descends_from(pid_t pid, pid_t ancestor) {
  for (int generation = 0; pid > 1 && generation < 20; ++generation, pid = parent_of(pid))
    if (pid == ancestor) return true;
  return false;
}

/// Namespaces by name, "net:[4026532177]". The handles keep them from ending: the kernel gives the number of one that
/// ended to the next, which may be somebody else's.
using HeldNamespaces = std::map<std::string, base::UniqueFd>;

void hold_namespaces_of(const std::string& process, HeldNamespaces& held) {
  for (const auto* kind : {"net", "mnt", "user"}) {
    base::UniqueFd handle(::open(("/proc/" + process + "/ns/" + kind).c_str(), O_RDONLY | O_CLOEXEC));
    if (!handle) continue;
    std::array<char, 128> name{};
    const auto n = ::readlink(("/proc/self/fd/" + std::to_string(handle.get())).c_str(), name.data(), name.size());
    if (n > 0) held.insert_or_assign(std::string(name.data(), static_cast<std::size_t>(n)), std::move(handle));
  }
}

/// Those that processes of the host are in: all, or those below `ancestor`.
HeldNamespaces namespaces_in_use(pid_t ancestor = 0) {
  HeldNamespaces held;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const auto* entry = ::readdir(proc.get())) {
    const auto pid = std::atoi(entry->d_name);
    if (pid > 0 && (ancestor == 0 || descends_from(pid, ancestor))) hold_namespaces_of(entry->d_name, held);
  }
  return held;
}

const char* const lasting = R"(
leafcutter: 1
name: lasting
services:
  shop:
    run: [bin/web, --port, "8080", --data, "${data}", --marker, MARKER]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
workload:
  - run: [/bin/sh, -c, "echo MARKER; sleep 100"]
    within: 90s
)";

std::string with_marker(std::string text, const std::string& marker) {
  for (std::size_t at = 0; (at = text.find("MARKER")) != std::string::npos;) text.replace(at, 6, marker);
  return text;
}

std::string fresh_marker() {
  static int next = 0;
  return "marker-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
}

TEST(Launcher, NothingOutlivesTheNursery) {
  const auto marker = fresh_marker();
  Nest nest;
  nest.give(with_marker(lasting, marker));
  const auto first = nest.start(nest.job()), second = nest.start(nest.job());
  for (const auto& execution : {first, second}) ASSERT_TRUE(nest.wait_for(execution, "ready"));
  ASSERT_TRUE(eventually([&] { return processes_with(marker).size() >= 4; }, std::chrono::seconds(10)));
  const auto nursery = own_nursery();
  ASSERT_GT(nursery, 0);
  auto made = namespaces_in_use(nursery);
  HeldNamespaces own;
  hold_namespaces_of("self", own);
  for (const auto& [name, handle] : own) made.erase(name);
  EXPECT_GE(made.size(), 10u);  // two leaves: a user, two mount and two network namespaces each, at the least

  ASSERT_EQ(::kill(nursery, SIGKILL), 0);
  for (const auto& execution : {first, second}) {
    const auto ran = nest.wait(execution, std::chrono::seconds(5));
    EXPECT_FALSE(ran.exit.clean);
    EXPECT_EQ(ran.exit.detail, "the nursery ended: killed by signal 9");
  }
  EXPECT_TRUE(eventually([&] { return processes_with(marker).empty(); }, std::chrono::seconds(2)));
  EXPECT_TRUE(eventually(
      [&] {
        const auto now = namespaces_in_use();
        return std::none_of(made.begin(), made.end(), [&](const auto& one) { return now.contains(one.first); });
      },
      std::chrono::seconds(2)));
}

TEST(Launcher, AnotherNurseryRunsWhatComesNext) {
  Nest nest;
  nest.give(std::string(one_service) + "workload: [ { get: shop/health } ]\n");
  std::set<pid_t> nurseries;
  for (int life = 0; life < 3; ++life) {
    auto ran = nest.run();
    if (!ran.exit.clean) {  // it was asked of the one that had been killed, and had not ended yet
      EXPECT_EQ(ran.exit.detail, "the nursery ended: killed by signal 9");
      ran = nest.run();
    }
    EXPECT_TRUE(ran.exit.clean) << ran.text();
    EXPECT_EQ(ran.end()["cause"], "completed");
    const auto nursery = own_nursery();
    ASSERT_GT(nursery, 0);
    EXPECT_TRUE(nurseries.insert(nursery).second);
    ASSERT_EQ(::kill(nursery, SIGKILL), 0);
  }
}

TEST(Launcher, KillsALeafAndAllThatIsInIt) {
  const auto marker = fresh_marker();
  Nest nest;
  nest.give(with_marker(lasting, marker));
  const auto execution = nest.start(nest.job());
  ASSERT_TRUE(nest.wait_for(execution, "ready"));
  nest.launcher().kill(execution);
  const auto ran = nest.wait(execution, std::chrono::seconds(5));
  EXPECT_FALSE(ran.exit.clean);
  EXPECT_EQ(ran.exit.detail, "killed by signal 9");
  EXPECT_TRUE(eventually([&] { return processes_with(marker).empty(); }, std::chrono::seconds(2)));
}

TEST(Launcher, TheNurseryGoesWithTheLauncher) {
  const auto marker = fresh_marker();
  Nest nest;
  nest.give(with_marker(lasting, marker));
  const auto execution = nest.start(nest.job());
  ASSERT_TRUE(nest.wait_for(execution, "ready"));
  ASSERT_GT(own_nursery(), 0);
  nest.drop_launcher();
  EXPECT_LT(own_nursery(), 0);
  EXPECT_FALSE(nest.wait(execution, std::chrono::seconds(1)).exit.clean);
  EXPECT_TRUE(eventually([&] { return processes_with(marker).empty(); }, std::chrono::seconds(2)));
}

TEST(Launcher, RefusesWhatItDoesNotKnow) {
  Nest nest;
  const auto scenario = nest.give(std::string(one_service) + "workload: [ { get: shop/health } ]\n");
  EXPECT_TRUE(nest.launcher().give(scenario, "s"));
  const auto unknown = nest.launcher().launch(nest.job({}, "other"), {});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("other"), std::string::npos);
  auto broken = scenario;
  broken.text = "leafcutter: 1\nname: [";
  EXPECT_FALSE(nest.launcher().give(broken, "broken"));
}

TEST(Launcher, SaysWhenTheProgramIsNone) {
  const Folder folder;
  const auto started = Launcher::start("/bin/false", folder.path());
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().text().find("exit status 1"), std::string::npos) << started.error().text();
}

TEST(LeafJob, SurvivesTheWire) {
  LeafJob job{"c/1/2#3", "c/1/2", "identity", {}, "ipc:///x", std::chrono::milliseconds(1500)};
  job.plan.faults.push_back({"crash", {"shop", "step", "post shop/lines"}, 2, Value::object()});
  const auto back = decode_leaf_job(encode(job));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->execution, job.execution);
  EXPECT_EQ(back->plan, job.plan);
  EXPECT_EQ(back->timeout, job.timeout);
  for (const auto* bad : {"", "x", "\x80", "\xdd\xff\xff\xff\xff"}) EXPECT_FALSE(decode_leaf_job(bad));
}

}  // namespace
}  // namespace leafcutter::node::testing
