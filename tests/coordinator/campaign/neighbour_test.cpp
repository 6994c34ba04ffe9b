#include <gtest/gtest.h>

#include "coordinator/campaign/inquiry.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Reason;

const Fault a{"reset", {"l", "request", "r"}, 1, Value::object()},
    b{"reset", {"l", "request", "r"}, 2, Value::object()},
    simpler_a{"refuse", {"l", "request", "r"}, 1, Value::object()};

Plan plan(std::vector<Fault> faults) {
  Plan p;
  p.faults = std::move(faults);
  return p;
}

struct Runs {
  std::vector<std::unique_ptr<Result>> results;
  std::vector<Evidence> evidence;
  void add(std::vector<Fault> faults, const std::string& name, Reason reason = Reason::held,
           const std::string& trace = "kept") {
    auto result = std::make_unique<Result>();
    result->execution = name;
    result->reason = reason;
    result->verdict = scenarios::verdict_of(reason);
    result->trace = trace;
    evidence.push_back({plan(std::move(faults)), result.get()});
    results.push_back(std::move(result));
  }
  std::string nearest(std::vector<Fault> failing) const {
    const auto* found = nearest_passing(plan(std::move(failing)), evidence);
    return found == nullptr ? "" : found->result->execution;
  }
};

TEST(NearestPassing, IsTheLargestPartWithTheEarliestFaults) {
  Runs runs;
  runs.add({}, "baseline");
  EXPECT_EQ(runs.nearest({a, b}), "baseline");
  runs.add({b}, "second alone");
  EXPECT_EQ(runs.nearest({a, b}), "second alone");
  runs.add({a}, "first alone");
  EXPECT_EQ(runs.nearest({a, b}), "first alone");
}

TEST(NearestPassing, IsAPartBeforeItIsAnotherKind) {
  Runs runs;
  runs.add({simpler_a}, "simpler");
  EXPECT_EQ(runs.nearest({a}), "simpler");
  runs.add({}, "baseline");
  EXPECT_EQ(runs.nearest({a}), "baseline");
}

TEST(NearestPassing, HasPassed) {
  Runs runs;
  runs.add({}, "failed", Reason::property_violated);
  runs.add({}, "lost", Reason::node_lost);
  runs.add({a}, "the plan itself");
  EXPECT_EQ(runs.nearest({a}), "");
}

TEST(NearestPassing, FiredAndHasATraceRatherThanNot) {
  Runs runs;
  runs.add({a}, "without a trace", Reason::held, "");
  runs.add({a}, "nothing fired", Reason::vacuous);
  EXPECT_EQ(runs.nearest({a, b}), "nothing fired");
  runs.add({}, "baseline");
  EXPECT_EQ(runs.nearest({a, b}), "baseline");
}

TEST(RerunsFor, FollowTheRate) {
  EXPECT_EQ(reruns_for(2, 2), 1u);
  EXPECT_EQ(reruns_for(4, 3), 3u);   // (1/4)^2 > 1/20 >= (1/4)^3
  EXPECT_EQ(reruns_for(10, 5), 5u);  // (1/2)^4 > 1/20 >= (1/2)^5
  EXPECT_EQ(reruns_for(40, 8), 6u);  // never more
  EXPECT_EQ(reruns_for(100, 96), 1u);
}

}  // namespace
}  // namespace leafcutter::coordinator
