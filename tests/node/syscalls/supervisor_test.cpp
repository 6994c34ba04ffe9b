// The supervisor's own life: it ends while calls wait, it says when it failed, and it holds nothing up.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

#include "harness.hpp"
#include "node/syscalls/supervisor.hpp"

namespace leafcutter::node::tests {
namespace {

using namespace std::chrono_literals;

/// A service and its supervisor, with the supervisor's end in the test's hands.
class Held {
 public:
  Held(const std::vector<std::string>& argv, Setting setting, bool at_once = true)
      : setting_(std::move(setting)),
        recorder_([] { return 0ns; }, [this](Event event) { note(std::move(event)); }),
        book_({setting_.faults, {}, {}}, recorder_),
        child_(start_child(argv, setting_)) {
    EXPECT_EQ(child_.error, "");
    if (at_once) supervise();
  }
  ~Held() {
    supervisor_.reset();
    if (child_.pid > 0) ::kill(-child_.pid, SIGKILL);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void supervise(std::function<unsigned()> stop = {}) { supervise(std::move(child_.listener), std::move(stop)); }

  void supervise(base::UniqueFd listener, std::function<unsigned()> stop = {}) {
    supervisor_ = std::make_unique<Supervisor>(
        std::move(listener), SupervisorContext{.service = "shop",
                                               .data_folder = setting_.data_folder,
                                               .peers = {},
                                               .families = setting_.families,
                                               .path_globs = {},
                                               .event_limit = 64,
                                               .recorder = recorder_,
                                               .sites = book_,
                                               .activity = activity_,
                                               .crash = [](bool) {},
                                               .stop = std::move(stop),
                                               .failed = [this](const std::string& why) { note_failure(why); }});
  }

  /// True when such an event came within 10 s.
  bool saw(const std::string& kind) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s, [&] { return has(kind); });
  }
  bool has(const std::string& kind) const {
    return std::ranges::any_of(events_, [&](const Event& event) { return event.kind == kind; });
  }
  bool saw_now(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    return has(kind);
  }
  void kill_child() {
    int status = 0;
    ::kill(child_.pid, SIGKILL);
    wait_child(child_.pid, 10s, status);
  }
  pid_t pid() const { return child_.pid; }
  std::uint64_t visits(const std::string& resource) {
    book_.finish();
    const std::lock_guard lock(mutex_);
    for (const auto& site : events_.back().attrs["sites"])
      if (site.at(2) == resource) return site.at(3);
    return 0;
  }
  void end_supervisor() { supervisor_.reset(); }
  bool ends(int& status) { return wait_child(child_.pid, 10s, status); }
  bool moved() const { return activity_.last() != initial_; }
  std::string lane_of(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    for (const auto& event : events_)
      if (event.kind == kind) return event.lane;
    return "";
  }
  std::string undone() {
    const std::lock_guard lock(mutex_);
    for (const auto& event : events_)
      if (event.kind == "fault.undone") return event.attrs["how"];
    return "";
  }

 private:
  void note_failure(const std::string& why) {
    Event event;
    event.kind = "failed";
    event.lane = why;
    note(std::move(event));
  }
  void note(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  Setting setting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  Recorder recorder_;
  SiteBook book_;
  Activity activity_;
  const Activity::Instant initial_ = activity_.last();  // before the child begins
  Child child_;
  std::unique_ptr<Supervisor> supervisor_;
};

Setting delayed(const ScratchFolder& folder, const std::string& time) {
  return {.families = {"write"},
          .data_folder = folder.path(),
          .faults = {fault("delay", "write", "data:a", 1, {{"for", time}})}};
}

TEST(Supervisor, EndsAtOnceWhileACallIsHeldAndTheCallRuns) {
  const ScratchFolder folder;
  Held held({program("steps"), "write," + (folder / "a") + ",x"}, delayed(folder, "1h"));
  ASSERT_TRUE(held.saw("fault.fired"));
  EXPECT_EQ(contents(folder / "a"), "");
  const auto begin = std::chrono::steady_clock::now();
  held.end_supervisor();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_THAT(held.undone(), testing::StartsWith("released by the leaf's end after "));
  int status = 0;
  EXPECT_TRUE(held.ends(status));
  EXPECT_EQ(contents(folder / "a"), "x") << "the held call was answered";
}

TEST(Supervisor, EndsWhileAServiceCallsWithoutPause) {
  const ScratchFolder folder;
  Held held({"dd", "if=/dev/zero", "of=" + (folder / "a"), "bs=1", "count=1000000000", "status=none"},
            {.families = {"write"}, .data_folder = folder.path()});
  ASSERT_TRUE(held.saw("syscall"));
  const auto begin = std::chrono::steady_clock::now();
  held.end_supervisor();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  int status = 0;
  EXPECT_TRUE(held.ends(status)) << "without a supervisor dd's writes fail with ENOSYS, and it gives up";
}

/// True when the process, or with `below` a child of it, waits in this system call, within 10 s.
bool waits_in(int call, pid_t pid, bool below = false) {
  const auto folder = "/proc/" + std::to_string(pid);
  for (const auto deadline = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < deadline;
       std::this_thread::yield()) {
    std::istringstream pids(below ? contents(folder + "/task/" + std::to_string(pid) + "/children")
                                  : std::to_string(pid));
    for (std::string one; pids >> one;)
      if (contents("/proc/" + one + "/syscall").starts_with(std::to_string(call) + " ")) return true;
  }
  return false;
}

TEST(Supervisor, EndsWhileAServiceCallsNothing) {
  const ScratchFolder folder;
  Held held({"sh", "-c", "echo x > " + (folder / "a") + "; exec sleep 1000"},
            {.families = {"write"}, .data_folder = folder.path()});
  ASSERT_TRUE(held.saw("syscall"));
  ASSERT_TRUE(waits_in(SYS_clock_nanosleep, held.pid()));  // its last call was answered long ago
  const auto begin = std::chrono::steady_clock::now();
  held.end_supervisor();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  held.kill_child();
}

TEST(Supervisor, AHeldTaskThatIsKilledHoldsNothingUp) {
  const ScratchFolder folder;
  Held held({program("steps"), "write," + (folder / "a") + ",x"}, delayed(folder, "1h"));
  ASSERT_TRUE(held.saw("fault.fired"));
  held.kill_child();
  ASSERT_TRUE(held.saw("fault.undone")) << "the supervisor notices that the last task has gone";
  EXPECT_THAT(held.undone(), testing::StartsWith("the task had gone; the service ended after "));
  EXPECT_FALSE(held.saw_now("failed"));
}

/// Two calls wait, answered by nobody, when the supervisor comes. It takes both, and while it looks at the first, the
/// task of the second is killed: nothing can be read of it any more, which is no news of the service.
TEST(Supervisor, ATaskThatIsKilledBeforeItIsLookedAtIsNotSpokenOf) {
  const ScratchFolder folder;
  Held held({"sh", "-c",
             program("steps") + " write," + (folder / "first") + ",x & until [ -e " + (folder / "go") +
                 " ]; do sleep 0.01; done; exec " + program("steps") + " write," + (folder / "second") + ",x"},
            {.families = {"write"},
             .data_folder = folder.path(),
             .faults = {fault("pause-at", "write", "data:first", 1, {{"for", "1ms"}})}},
            false);
  ASSERT_TRUE(waits_in(SYS_write, held.pid(), true));
  ASSERT_EQ(::close(::creat((folder / "go").c_str(), 0644)), 0);
  ASSERT_TRUE(waits_in(SYS_write, held.pid()));
  held.supervise([&] {
    held.kill_child();
    return 1u;
  });
  ASSERT_TRUE(held.saw("fault.undone"));
  held.end_supervisor();
  EXPECT_FALSE(held.saw_now("unresolved"));
  EXPECT_FALSE(held.saw_now("failed"));
  EXPECT_EQ(held.visits("data:first"), 1u);
  EXPECT_EQ(held.visits("data:second"), 0u);
}

TEST(Supervisor, SaysThatItFailed) {
  const ScratchFolder folder;
  Held held({"true"}, {.families = {"write"}, .data_folder = folder.path()});
  int status = 0;
  EXPECT_TRUE(held.ends(status));
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  base::UniqueFd writer(ends[1]);
  ASSERT_EQ(::write(writer.get(), "x", 1), 1);
  held.supervise(base::UniqueFd(ends[0]));  // readable, and no listener
  ASSERT_TRUE(held.saw("failed"));
  EXPECT_THAT(held.lane_of("failed"), testing::HasSubstr("the system call supervisor of shop failed"));
}

TEST(Supervisor, WritesAreMovementAndReadsAreNot) {
  const ScratchFolder folder;
  const auto a = folder / "a";
  Held held({program("steps"), "write," + a + ",x"}, {.families = {"write"}, .data_folder = folder.path()});
  int status = 0;
  EXPECT_TRUE(held.ends(status));
  EXPECT_TRUE(held.moved());
  Held reading({program("steps"), "read," + a, "fsync," + a},
               {.families = {"read", "fsync", "open"}, .data_folder = folder.path()});
  EXPECT_TRUE(reading.ends(status));
  EXPECT_TRUE(reading.saw("syscall"));
  EXPECT_FALSE(reading.moved());
}

}  // namespace
}  // namespace leafcutter::node::tests
