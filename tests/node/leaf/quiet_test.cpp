// When a leaf is quiet, as values; and what the kernel says of threads that run.
#include "node/leaf/quiet.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness.hpp"

namespace leafcutter::node::testing {
namespace {

using namespace std::chrono_literals;
using Answer = QuietWait::Answer;

/// A host in small: its clock, how late it wakes whoever waits, and what the leaf does meanwhile.
struct Host {
  Instant now{1h};
  Instant moved{1h};
  Silence silence{now, moved};
  std::chrono::milliseconds late{0};
  bool busy = false;
  std::function<bool(Instant)> runs = [](Instant) { return false; };
  std::function<void(Host&)> meanwhile = [](Host&) {};
  int scans = 0, ticks = 0;

  struct Ended {
    Answer answer;
    std::chrono::nanoseconds after;
  };
  Ended wait(std::chrono::nanoseconds quiet, std::chrono::nanoseconds within) {
    const auto began = now;
    QuietWait waiting(quiet, within, silence);
    for (;; ++ticks) {
      if (ticks > 100000) return {Answer::wait, now - began};
      const auto answer = waiting.look(
          now, moved, [this] { return busy; },
          [this] {
            ++scans;
            return runs(now);
          });
      if (answer != Answer::wait) {
        silence = waiting.silence();
        return {answer, now - began};
      }
      now = std::max(now, waiting.next()) + late;
      meanwhile(*this);
    }
  }
};

TEST(Quiet, TakesExactlyItsTimeWhereEveryTickIsOnTime) {
  Host host;
  const auto ended = host.wait(132ms, 5s);
  EXPECT_EQ(ended.answer, Answer::quiet);
  EXPECT_EQ(ended.after, 132ms);
  EXPECT_EQ(host.scans, 1);
  EXPECT_GT(host.ticks, 20);
}

TEST(Quiet, ALittleLateIsStillOnTime) {
  Host host;
  host.late = 1ms;
  const auto ended = host.wait(130ms, 5s);
  EXPECT_EQ(ended.answer, Answer::quiet);
  EXPECT_LE(ended.after, 132ms);
}

TEST(Quiet, StretchesWithStarvation) {
  Host host;
  host.late = 45ms;
  const auto ended = host.wait(100ms, 300ms);
  EXPECT_EQ(ended.answer, Answer::quiet) << "the time there was has to stretch with it";
  EXPECT_GE(ended.after, 900ms);
  EXPECT_LE(ended.after, 1s);
}

TEST(Quiet, OneLongPauseOfTheHostIsOneTick) {
  Host host;
  host.meanwhile = [](Host& it) {
    if (it.ticks == 3) it.now += 10s;
  };
  const auto ended = host.wait(100ms, 300ms);
  EXPECT_EQ(ended.answer, Answer::quiet);
  EXPECT_GE(ended.after, 10s + 90ms);
}

TEST(Quiet, WhatMovesStartsItAgain) {
  Host host;
  host.meanwhile = [](Host& it) {
    if (it.ticks < 40) it.moved = it.now - 1ms;
  };
  const auto ended = host.wait(50ms, 5s);
  EXPECT_EQ(ended.answer, Answer::quiet);
  EXPECT_EQ(host.now - host.moved, 50ms);
  EXPECT_GE(ended.after, 245ms);
}

TEST(Quiet, SilenceGoesOnFromOneWaitToTheNext) {
  Host host;
  EXPECT_EQ(host.wait(130ms, 5s).after, 130ms);
  EXPECT_EQ(host.wait(200ms, 5s).after, 70ms);
  host.now += 1h;  // in which nobody looked
  EXPECT_EQ(host.wait(300ms, 5s).after, 95ms);
  host.moved = host.now;
  EXPECT_EQ(host.wait(100ms, 5s).after, 100ms);
}

TEST(Quiet, TheTimeThereIsBeginsWithEachWait) {
  Host host;
  host.busy = true;
  EXPECT_EQ(host.wait(50ms, 400ms).after, 400ms);
  EXPECT_EQ(host.wait(50ms, 400ms).after, 400ms);
}

TEST(Quiet, WhatIsUnderWayMakesItLate) {
  Host host;
  host.busy = true;
  const auto ended = host.wait(50ms, 400ms);
  EXPECT_EQ(ended.answer, Answer::late);
  EXPECT_EQ(ended.after, 400ms);
  EXPECT_EQ(host.scans, 0);
}

TEST(Quiet, WhatNeverRestsMakesItLate) {
  Host host;
  host.meanwhile = [](Host& it) { it.moved = it.now; };
  EXPECT_EQ(host.wait(50ms, 400ms).answer, Answer::late);
  EXPECT_EQ(host.scans, 0);
}

TEST(Quiet, WaitsForAThreadThatRuns) {
  Host host;
  const auto until = host.now + 310ms;
  host.runs = [=](Instant now) { return now < until; };
  const auto ended = host.wait(100ms, 5s);
  EXPECT_EQ(ended.answer, Answer::quiet);
  EXPECT_EQ(ended.after, 400ms) << "a whole quiet time after the last look that saw it run";
  EXPECT_EQ(host.scans, 4) << "a look a quiet time, none a tick";
}

TEST(Quiet, WhatSpinsForEverIsWaitedForALimitedTime) {
  Host host;
  host.runs = [](Instant) { return true; };
  const auto ended = host.wait(100ms, 5s);
  EXPECT_EQ(ended.answer, Answer::quiet);
  EXPECT_GE(ended.after, longest_at_work);
  EXPECT_LE(ended.after, longest_at_work + 200ms);
  EXPECT_LE(host.scans, 21);
}

TEST(Quiet, WhatSpinsForEverIsNotWhatItIsLateFor) {
  Host host;
  host.runs = [](Instant) { return true; };
  const auto ended = host.wait(100ms, 550ms);
  EXPECT_EQ(ended.answer, Answer::quiet);
  EXPECT_EQ(ended.after, 550ms);
}

TEST(Quiet, WhatRunsAndThenMovesHasItsTimeAnew) {
  Host host;
  host.runs = [](Instant) { return true; };
  host.meanwhile = [start = host.now](Host& it) {
    if (it.now - start < 10s && (it.now - start) % 1s < 5ms) it.moved = it.now;
  };
  const auto ended = host.wait(100ms, 60s);
  EXPECT_EQ(ended.answer, Answer::quiet);
  EXPECT_GE(ended.after, 11s);
}

/// A /proc in a folder.
class Processes {
 public:
  void thread(const std::string& process, const std::string& thread, const std::string& name, char state) {
    const auto folder = root_.path() + "/" + process + "/task/" + thread;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/stat") << thread << " (" << name << ") " << state << " 1 1 0 0 -1 4194304 R R\n";
  }
  const std::string& path() const { return root_.path(); }

 private:
  Folder root_;
};

TEST(Quiet, LooksAtEveryThreadOfEveryProcess) {
  Processes processes;
  processes.thread("1", "1", "leaf", 'S');
  processes.thread("7", "7", "shop", 'S');
  processes.thread("7", "8", "worker) R (", 'D');
  processes.thread("self", "9", "not a process", 'R');
  EXPECT_FALSE(anything_runs(processes.path()));
  processes.thread("7", "9", "worker", 'R');
  EXPECT_TRUE(anything_runs(processes.path()));
}

TEST(Quiet, DoesNotLookAtItself) {
  Processes processes;
  const auto own = std::to_string(::gettid());
  processes.thread("1", own, "leaf", 'R');
  EXPECT_FALSE(anything_runs(processes.path()));
  processes.thread("1", own + "0", "leaf", 'R');
  EXPECT_TRUE(anything_runs(processes.path()));
}

constexpr const char* worker_steps = R"(workload:
  - { get: "shop/toil/%", expect: { status: 202 } }
  - settle: { quiet: 50ms, within: 20s }
)";

Ran work_for(const std::string& milliseconds) {
  std::string steps = worker_steps;
  steps.replace(steps.find('%'), 1, milliseconds);
  Nest nest;
  nest.give(std::string(one_service) + steps);
  return nest.run();
}

TEST(Quiet, ALeafWaitsForAServiceThatComputes) {
  const auto ran = work_for("400");
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("settled").size(), 1u);
  EXPECT_EQ(ran.of("settled")[0].attrs["ok"], true);
  EXPECT_GE(ran.of("settled")[0].at - ran.of("reply").back().at, 400ms);
}

TEST(Quiet, ALeafAtRestIsNotWaitedFor) {
  const auto ran = work_for("0");
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("settled").size(), 1u);
  EXPECT_EQ(ran.of("settled")[0].attrs["ok"], true);
  EXPECT_LT(ran.of("settled")[0].at - ran.of("reply").back().at, longest_at_work);
}

TEST(Quiet, ALeafDoesNotWaitForEverForAServiceThatSpins) {
  const auto ran = work_for("600000");
  SCOPED_TRACE(ran.text());
  ASSERT_EQ(ran.of("settled").size(), 1u);
  EXPECT_EQ(ran.of("settled")[0].attrs["ok"], true);
  EXPECT_GE(ran.of("settled")[0].at - ran.of("reply").back().at, longest_at_work);
  EXPECT_EQ(ran.end()["cause"], "completed");
}

}  // namespace
}  // namespace leafcutter::node::testing
