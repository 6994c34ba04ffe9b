// The doctor sees what this host can do, leaves nothing behind, and does not see what was taken away.
#include "node/host/doctor.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

#include "base/text.hpp"
#include "node/syscalls/filter.hpp"

namespace leafcutter::node {
namespace {

/// What the doctor says ("name|seen|detail|remedy" lines) in a child after `take_away`; the child's host is the poorer
/// one.
std::map<std::string, Capability> examined_after(const std::function<bool()>& take_away) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const auto child = ::_Fork();  // as the self-tests themselves do, and for their reason
  if (child == 0) {
    std::string text;
    if (take_away())
      for (const auto& c : examine_host())
        text += c.name + "|" + (c.seen ? "1" : "0") + "|" + c.detail + "|" + c.remedy + "\n";
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  std::map<std::string, Capability> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    Capability c;
    std::string seen;
    std::getline(parts, c.name, '|');
    std::getline(parts, seen, '|');
    std::getline(parts, c.detail, '|');
    std::getline(parts, c.remedy, '|');
    c.seen = seen == "1";
    out.emplace(c.name, c);
  }
  return out;
}

bool write_file(const char* path, const std::string& text) {
  const auto fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const auto done = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  return done;
}

bool become_root_inside(int more) {
  const auto uid = std::to_string(::getuid()), gid = std::to_string(::getgid());
  return ::unshare(CLONE_NEWUSER | more) == 0 && write_file("/proc/self/uid_map", "0 " + uid + " 1") &&
         write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", "0 " + gid + " 1");
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// User 0 of the host itself, not of a container with users of its own.
bool is_root_of_the_host() {
  const auto map = base::read_file("/proc/self/uid_map");
  std::istringstream text(map ? *map : "");
  unsigned inside = 1, outside = 1;
  return ::getuid() == 0 && text >> inside >> outside && inside == 0 && outside == 0;
}

scenarios::Plan one_start_fault(const std::string& kind, protocols::Value params) {
  scenarios::Plan plan;
  plan.faults.push_back({kind, {"shop", "start", "start"}, 1, std::move(params), {}});
  return plan;
}

TEST(Doctor, SaysAtPlanTimeWhatThisHostCannotCarryOut) {
  EXPECT_TRUE(can_carry_out({}).ok());
  EXPECT_TRUE(can_carry_out(one_start_fault("limit-files", {{"count", 16}})).ok());
  EXPECT_TRUE(can_carry_out(one_start_fault("clock-offset", {{"by", "5m"}})).ok());
  const auto longer = can_carry_out(one_start_fault("clock-offset", {{"by", "-800000h"}}));
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().code, base::ErrorCode::unavailable);
  EXPECT_THAT(longer.error().text(), testing::HasSubstr("cannot be set back by more than that"));
  const auto limited = can_carry_out(one_start_fault("limit-processes", {{"count", 4}}));
  EXPECT_EQ(limited.ok(), !is_root_of_the_host());
  if (!limited.ok()) {
    EXPECT_EQ(limited.error().code, base::ErrorCode::unavailable);
    EXPECT_THAT(limited.error().text(),
                testing::HasSubstr(
                    "limit-processes(count=4) at shop start start #1 needs process-limit: have a second process"));
  }
}

TEST(Doctor, DoesNotSeeTimeNamespacesThatAreForbidden) {
  const auto found =
      examined_after([] { return become_root_inside(0) && write_file("/proc/sys/user/max_time_namespaces", "0"); });
  ASSERT_EQ(found.size(), 11u);
  EXPECT_FALSE(found.at("time-namespace").seen);
  EXPECT_THAT(found.at("time-namespace").detail, testing::HasSubstr("No space left"));
  EXPECT_THAT(found.at("time-namespace").remedy, testing::HasSubstr("user.max_time_namespaces=10000 (it is 0)"));
  EXPECT_TRUE(found.at("user-namespace").seen);
}

TEST(Doctor, SeesEverythingOnAHostThatHasIt) {
  const auto begin = std::chrono::steady_clock::now();
  const auto capabilities = examine_host();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << "milliseconds on an idle host";
  std::vector<std::string> names;
  for (const auto& c : capabilities) {
    names.push_back(c.name);
    EXPECT_EQ(c.only_for, c.name == "time-namespace"  ? "clock-offset"
                          : c.name == "process-limit" ? "limit-processes"
                                                      : "");
    if (c.name == "process-limit" && is_root_of_the_host()) {
      EXPECT_FALSE(c.seen) << "the kernel exempts it";
      EXPECT_THAT(c.detail, testing::HasSubstr("have a second process refused under a limit of one"));
      EXPECT_THAT(c.remedy, testing::HasSubstr("run leafcutter as another user than root"));
      continue;
    }
    EXPECT_TRUE(c.seen) << c.name << ": " << c.detail << "; " << c.remedy;
    EXPECT_FALSE(c.detail.empty()) << c.name;
    EXPECT_EQ(c.remedy, "") << c.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"user-namespace", "network-namespace", "mount-proc", "read-only-root",
                                             "syscall-notify", "process-read", "pidfd-getfd", "ipc", "time-namespace",
                                             "process-limit", "disk-space"}));
}

TEST(Doctor, LeavesNothingBehind) {
  const auto mounts = base::read_file("/proc/self/mountinfo");
  const auto status = base::read_file("/proc/self/status");
  char before[256] = {}, after[256] = {};
  ::gethostname(before, sizeof before);
  const auto open = open_descriptors();
  examine_host();
  ::gethostname(after, sizeof after);
  EXPECT_STREQ(before, after);
  EXPECT_EQ(*base::read_file("/proc/self/mountinfo"), *mounts);
  EXPECT_EQ(open_descriptors(), open);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  const auto line = [](const std::string& text, const std::string& key) { return text.substr(text.find(key), 20); };
  EXPECT_EQ(line(*base::read_file("/proc/self/status"), "NoNewPrivs:"), line(*status, "NoNewPrivs:"));
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
    EXPECT_THAT(entry.path().filename().string(),
                testing::Not(testing::StartsWith("leafcutter-self-test-" + std::to_string(::getpid()))));
}

TEST(Doctor, DoesNotSeeUserNamespacesThatAreForbidden) {
  const auto found =
      examined_after([] { return become_root_inside(0) && write_file("/proc/sys/user/max_user_namespaces", "0"); });
  ASSERT_EQ(found.size(), 11u);
  for (const auto* name : {"user-namespace", "network-namespace", "mount-proc", "read-only-root"})
    EXPECT_FALSE(found.at(name).seen) << name;
  EXPECT_THAT(found.at("user-namespace").detail, testing::HasSubstr("unshare a user namespace: No space left"));
  EXPECT_THAT(found.at("user-namespace").remedy, testing::HasSubstr("user.max_user_namespaces=10000 (it is 0)"));
  EXPECT_TRUE(found.at("syscall-notify").seen) << "needs no namespace";
}

TEST(Doctor, DoesNotSeeANewProcWhereItIsMasked) {
  // What container runtimes do: something mounted over a part of /proc, and a user namespace that may not uncover it.
  const auto found = examined_after([] {
    return become_root_inside(CLONE_NEWNS) && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("/dev/null", "/proc/version", nullptr, MS_BIND, nullptr) == 0;
  });
  ASSERT_EQ(found.size(), 11u);
  EXPECT_TRUE(found.at("user-namespace").seen);
  EXPECT_FALSE(found.at("mount-proc").seen);
  EXPECT_THAT(found.at("mount-proc").remedy, testing::HasSubstr("systempaths=unconfined"));
}

TEST(Doctor, DoesNotSeeNotificationsUnderAnotherListener) {
  const auto found = examined_after([] {
    const auto filter = build_filter({.families = {"rename"}});
    int pair[2];
    if (!filter || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
    const auto keeper = ::fork();
    if (keeper == 0) {
      ::close(pair[1]);
      const auto listener = receive_listener(pair[0]);
      char byte = 0;
      ::_exit(listener && ::recv(pair[0], &byte, 1, 0) == 0 ? 0 : 1);  // until the other end goes
    }
    ::close(pair[0]);
    return install_filter(*filter, pair[1]) == 0;
  });
  ASSERT_EQ(found.size(), 11u);
  EXPECT_FALSE(found.at("syscall-notify").seen);
  EXPECT_THAT(found.at("syscall-notify").detail, testing::HasSubstr("already has a seccomp listener"));
  EXPECT_TRUE(found.at("process-read").seen);
}

TEST(Doctor, DoesNotSeeProcessAccessThatIsDenied) {
  const auto found = examined_after([] {
    auto* context = ::seccomp_init(SCMP_ACT_ALLOW);
    for (const auto call : {SCMP_SYS(process_vm_readv), SCMP_SYS(pidfd_getfd)})
      if (::seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), call, 0) != 0) return false;
    const auto loaded = ::seccomp_load(context) == 0;
    ::seccomp_release(context);
    return loaded;
  });
  ASSERT_EQ(found.size(), 11u);
  EXPECT_FALSE(found.at("process-read").seen);
  EXPECT_FALSE(found.at("pidfd-getfd").seen);
  EXPECT_FALSE(found.at("process-read").remedy.empty());
  EXPECT_TRUE(found.at("syscall-notify").seen);
}

TEST(Doctor, CountsTheRoomOnADisk) {
  EXPECT_TRUE(examine_disk("/", 1).seen);
  const auto full = examine_disk("/", ~std::uint64_t{0});
  EXPECT_FALSE(full.seen);
  EXPECT_THAT(full.detail, testing::HasSubstr("MiB wanted"));
  EXPECT_FALSE(examine_disk("/nowhere/at/all").seen);
}

}  // namespace
}  // namespace leafcutter::node
