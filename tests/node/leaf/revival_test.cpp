// Nurseries that go, as values: when another one is started, what it is given, and when that ends.
#include "node/leaf/revival.hpp"

#include <gtest/gtest.h>

#include <set>

namespace leafcutter::node {
namespace {

using namespace std::chrono_literals;

/// What the nurseries of one test have in common.
struct Ward {
  int started = 0;
  bool alive = false;  ///< the newest one
  bool can_start = true;
  std::set<std::string> given;  ///< to the newest one
  std::vector<std::string> launched;
  RestartBudget::Instant now{1h};
};

class MortalLauncher final : public Launcher {
 public:
  explicit MortalLauncher(Ward& ward) : ward_(ward), number_(++ward.started) {
    ward_.alive = true;
    ward_.given.clear();
  }
  base::Status give(const scenarios::Scenario&, const std::string& identity) override {
    if (!lives()) return base::Error{base::ErrorCode::io, "the nursery ended: killed by signal 9", {}};
    if (identity == "broken") return base::Error{base::ErrorCode::bad_input, "broken", {}};
    ward_.given.insert(identity);
    return base::ok();
  }
  base::Status launch(const LeafJob& job, OnExit) override {
    if (!lives()) return base::Error{base::ErrorCode::io, "the nursery ended: killed by signal 9", {}};
    if (!ward_.given.contains(job.scenario)) return base::Error{base::ErrorCode::internal, "not given", {}};
    ward_.launched.push_back(job.execution);
    return base::ok();
  }
  void kill(const std::string&) override {}

 private:
  bool lives() const { return ward_.alive && number_ == ward_.started; }
  Ward& ward_;
  int number_;
};

std::unique_ptr<Launcher> start(Ward& ward) {
  auto started = start_reviving(
      [&ward]() -> base::Expected<std::unique_ptr<Launcher>> {
        if (!ward.can_start) return base::Error{base::ErrorCode::io, "fork of the nursery: no memory", {}};
        return std::unique_ptr<Launcher>(std::make_unique<MortalLauncher>(ward));
      },
      [&ward] { return ward.now; });
  if (!started) throw std::runtime_error(started.error().text());
  return std::move(*started);
}

LeafJob job(const std::string& execution) {
  LeafJob job;
  job.execution = execution;
  job.scenario = "s";
  return job;
}

TEST(Revival, ANurseryThatLivesIsKept) {
  Ward ward;
  const auto launcher = start(ward);
  ASSERT_TRUE(launcher->give({}, "s"));
  for (const auto* execution : {"1", "2", "3"}) EXPECT_TRUE(launcher->launch(job(execution), {}));
  EXPECT_EQ(ward.started, 1);
}

TEST(Revival, AnotherOneIsGivenEveryScenarioAgain) {
  Ward ward;
  const auto launcher = start(ward);
  ASSERT_TRUE(launcher->give({}, "s"));
  ASSERT_TRUE(launcher->give({}, "t"));
  EXPECT_FALSE(launcher->give({}, "broken"));
  ward.alive = false;
  EXPECT_TRUE(launcher->launch(job("1"), {}));
  EXPECT_EQ(ward.started, 2);
  EXPECT_EQ(ward.given, (std::set<std::string>{"s", "t"}));
  EXPECT_EQ(ward.launched, std::vector<std::string>{"1"});
}

TEST(Revival, WhatIsWrongWithAJobStartsNoNursery) {
  Ward ward;
  const auto launcher = start(ward);
  EXPECT_FALSE(launcher->launch(job("1"), {}));
  EXPECT_EQ(ward.started, 1);
}

TEST(Revival, ANurseryThatKeepsDyingIsLeftAloneForAWhile) {
  Ward ward;
  const auto launcher = start(ward);
  ASSERT_TRUE(launcher->give({}, "s"));
  for (std::size_t i = 0; i < nursery_restarts; ++i) {
    ward.alive = false;
    EXPECT_TRUE(launcher->launch(job(std::to_string(i)), {}));
    ward.now += 1s;
  }
  ward.alive = false;
  const auto refused = launcher->launch(job("refused"), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::unavailable);
  for (const auto* part : {"killed by signal 9", "5 times within 1m", "55s"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  EXPECT_EQ(ward.started, 1 + static_cast<int>(nursery_restarts));
  ward.now += 55s;
  EXPECT_TRUE(launcher->launch(job("later"), {}));
}

TEST(Revival, OneThatCannotBeStartedIsTriedAgain) {
  Ward ward;
  const auto launcher = start(ward);
  ASSERT_TRUE(launcher->give({}, "s"));
  ward.alive = ward.can_start = false;
  const auto refused = launcher->launch(job("1"), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "fork of the nursery: no memory");
  ward.can_start = true;
  EXPECT_TRUE(launcher->launch(job("2"), {}));
}

}  // namespace
}  // namespace leafcutter::node
