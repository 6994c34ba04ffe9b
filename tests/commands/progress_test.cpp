#include "commands/progress.hpp"

#include <gtest/gtest.h>

namespace leafcutter::commands {
namespace {

actors::Progress half_way() {
  actors::Progress progress;
  progress.phase = "singles";
  progress.done = 30;
  progress.known = 60;
  progress.slots = 4;
  progress.failing = 2;
  progress.findings = 1;
  progress.elapsed_ms = 10'000;
  return progress;
}

TEST(ProgressText, SaysHowFarHowFastAndHowLongStill) {
  EXPECT_EQ(progress_text(half_way()), "singles  30/60 leaves  3.0/s  4 slots  2 failing  1 finding  ETA 10s");
}

TEST(ProgressText, PromisesNothingBeforeTheFirstLeaf) {
  EXPECT_EQ(progress_text(actors::Progress{}).find("ETA"), std::string::npos);
}

TEST(ProgressLine, WritesPlainLinesToAPipeAndNoneTwice) {
  testing::internal::CaptureStderr();
  {
    ProgressLine line(false);
    line.show(half_way());
    line.show(half_way());
    auto pairs = half_way();
    pairs.phase = "pairs";
    pairs.note = "look here";
    line.show(pairs);
    line.show(pairs);
  }
  const auto text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

}  // namespace
}  // namespace leafcutter::commands
