#include "coordinator/minimize/minimize.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/random.hpp"
#include "coordinator/search/shuffle.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Fault;
using scenarios::Plan;
using scenarios::Value;
using Oracle = std::function<Trial(const Plan&)>;

Fault fault(std::uint32_t n) { return {"errno", {"shop", "write", "data:a"}, n, {{"error", "EIO"}}}; }

Plan plan_of_size(std::uint32_t count) {
  Plan plan;
  for (std::uint32_t n = 1; n <= count; ++n) plan.faults.push_back(fault(n));
  return plan;
}

std::set<std::uint32_t> numbers(const Plan& plan) {
  std::set<std::uint32_t> found;
  for (const auto& f : plan.faults) found.insert(f.occurrence);
  return found;
}

Oracle fails_with(std::set<std::uint32_t> essential) {
  return [essential](const Plan& plan) {
    const auto present = numbers(plan);
    return std::includes(present.begin(), present.end(), essential.begin(), essential.end()) ? Trial::fails
                                                                                             : Trial::passes;
  };
}

// Runs each round on `workers` at a time, which come back in an order of their own.
void drive(Minimizer& minimizer, const Oracle& oracle, std::size_t workers, std::uint64_t seed = 1) {
  base::Stream stream(seed, "arrival", 0);
  for (int rounds = 0; !minimizer.done(); ++rounds) {
    ASSERT_LT(rounds, 1000) << "no end";
    const auto plans = minimizer.next();
    std::vector<std::size_t> order(plans.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t begin = 0; begin < order.size(); begin += workers) {
      std::vector<std::size_t> batch(order.begin() + begin, order.begin() + std::min(order.size(), begin + workers));
      shuffle(batch, stream);
      std::copy(batch.begin(), batch.end(), order.begin() + begin);
    }
    std::vector<Trial> outcomes(plans.size());
    for (const auto i : order) outcomes[i] = oracle(plans[i]);
    minimizer.tell(outcomes);
  }
}

TEST(Minimizer, HasNothingToTryForOneFault) {
  Minimizer minimizer(plan_of_size(1));
  EXPECT_TRUE(minimizer.done());
  EXPECT_TRUE(minimizer.one_minimal());
  EXPECT_EQ(minimizer.executions(), 0u);
  Minimizer none(Plan{});
  EXPECT_TRUE(none.done());
  EXPECT_TRUE(none.one_minimal());
}

TEST(Minimizer, TriesBothHalvesOfAPair) {
  Minimizer minimizer(plan_of_size(2));
  ASSERT_EQ(minimizer.next().size(), 2u);
  EXPECT_FALSE(minimizer.one_minimal());
  minimizer.tell({Trial::passes, Trial::passes});
  EXPECT_TRUE(minimizer.done());
  EXPECT_TRUE(minimizer.one_minimal());
  EXPECT_EQ(minimizer.best(), plan_of_size(2));
}

TEST(Minimizer, CommitsTheLowestIndexThatFails) {
  Minimizer minimizer(plan_of_size(2));
  minimizer.next();
  minimizer.tell({Trial::fails, Trial::fails});
  EXPECT_EQ(numbers(minimizer.best()), (std::set<std::uint32_t>{1}));
}

TEST(Minimizer, NeverTriesThePlanWithoutFaults) {
  for (std::uint32_t count = 1; count <= 9; ++count) {
    Minimizer minimizer(plan_of_size(count));
    drive(
        minimizer,
        [](const Plan& plan) {
          EXPECT_FALSE(plan.faults.empty());
          return Trial::fails;
        },
        1);
    EXPECT_EQ(minimizer.best().faults.size(), 1u);
  }
}

TEST(Minimizer, TakesWhatIsKnownForNothing) {
  Minimizer minimizer(plan_of_size(2));
  Plan first = plan_of_size(1), second;
  second.faults = {fault(2)};
  minimizer.know(first, Trial::passes);
  minimizer.know(second, Trial::passes);
  EXPECT_TRUE(minimizer.done());
  EXPECT_TRUE(minimizer.one_minimal());
  EXPECT_EQ(minimizer.executions(), 0u);
}

TEST(Minimizer, DoesNotClaimWhatCouldNotBeTried) {
  Minimizer minimizer(plan_of_size(2));
  minimizer.next();
  minimizer.tell({Trial::passes, Trial::unresolved});
  EXPECT_TRUE(minimizer.done());
  EXPECT_FALSE(minimizer.one_minimal());
}

TEST(Minimizer, StopsAtItsBoundAndSaysSo) {
  for (std::size_t attempts = 0; attempts < 12; ++attempts) {
    Minimizer minimizer(plan_of_size(8), attempts);
    drive(minimizer, fails_with({2, 7}), 3);
    EXPECT_LE(minimizer.executions(), attempts);
    EXPECT_EQ(fails_with({2, 7})(minimizer.best()), Trial::fails);
  }
  Minimizer minimizer(plan_of_size(8), 3);
  drive(minimizer, fails_with({2, 7}), 3);
  EXPECT_FALSE(minimizer.one_minimal());
}

TEST(Minimizer, RefusesOutcomesForAnythingButItsRound) {
  Minimizer minimizer(plan_of_size(2));
  minimizer.next();
  EXPECT_THROW(minimizer.tell({Trial::passes}), std::invalid_argument);
}

bool is_one_minimal(const Plan& plan, const Oracle& oracle) {
  if (oracle(plan) != Trial::fails) return false;
  for (std::size_t i = 0; plan.faults.size() > 1 && i < plan.faults.size(); ++i) {
    auto smaller = plan;
    smaller.faults.erase(smaller.faults.begin() + static_cast<std::ptrdiff_t>(i));
    if (oracle(smaller) == Trial::fails) return false;
  }
  return true;
}

TEST(MinimizerProperty, OfMonotoneOraclesTheEssentialFaultsRemainForAnyNumberOfWorkers) {
  base::Stream stream(5, "oracles", 0);
  for (int trial = 0; trial < 60; ++trial) {
    const auto count = static_cast<std::uint32_t>(1 + stream.below(14));
    std::set<std::uint32_t> essential;
    for (std::uint64_t i = 0, most = 1 + stream.below(4); i < most; ++i)
      essential.insert(static_cast<std::uint32_t>(1 + stream.below(count)));
    const auto oracle = fails_with(essential);
    std::optional<std::size_t> executions;
    for (const std::size_t workers : {1, 3, 64}) {
      Minimizer minimizer(plan_of_size(count), 1000);
      drive(minimizer, oracle, workers, stream.next());
      ASSERT_EQ(numbers(minimizer.best()), essential);
      ASSERT_TRUE(minimizer.one_minimal());
      ASSERT_EQ(minimizer.executions(), executions.value_or(minimizer.executions()));
      executions = minimizer.executions();
    }
  }
}

TEST(MinimizerProperty, WhateverTheOracleTheResultFailsAndItsClaimIsTrue) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const auto whole = plan_of_size(static_cast<std::uint32_t>(1 + seed % 11));
    const Oracle oracle = [&](const Plan& plan) {
      if (plan == whole) return Trial::fails;
      std::string text = std::to_string(seed);
      for (const auto n : numbers(plan)) text += "," + std::to_string(n);
      const auto roll = base::split_mix(base::fnv1a(text)) % 10;
      return roll < 3 ? Trial::fails : roll < 9 ? Trial::passes : Trial::unresolved;
    };
    Minimizer one(whole, 1000), many(whole, 1000);
    drive(one, oracle, 1);
    drive(many, oracle, 7, seed);
    ASSERT_EQ(one.best(), many.best());
    ASSERT_EQ(oracle(one.best()), Trial::fails);
    ASSERT_TRUE(is_one_minimal(one.best(), oracle));
    ASSERT_TRUE(one.best().faults.size() > 1 || one.one_minimal());
  }
}

TEST(MinimizerProperty, KnownOutcomesSaveExecutionsAndChangeNothing) {
  base::Stream stream(6, "known", 0);
  for (int trial = 0; trial < 30; ++trial) {
    const auto oracle =
        fails_with({static_cast<std::uint32_t>(1 + stream.below(8)), static_cast<std::uint32_t>(1 + stream.below(8))});
    Minimizer ignorant(plan_of_size(8), 1000), informed(plan_of_size(8), 1000);
    for (std::uint32_t n = 1; n <= 8; ++n) {
      Plan single;
      single.faults = {fault(n)};
      informed.know(single, oracle(single));
    }
    drive(ignorant, oracle, 4);
    drive(informed, oracle, 4);
    ASSERT_EQ(informed.best(), ignorant.best());
    ASSERT_LE(informed.executions(), ignorant.executions());
  }
}

TEST(Minimizer, NeedsFewExecutionsForATypicalPlan) {
  Minimizer minimizer(plan_of_size(10), 1000);
  drive(minimizer, fails_with({4}), 1);
  EXPECT_LE(minimizer.executions(), 16u);
}

TEST(MinimizerSimplifies, ToTheSimplestKindThatStillFails) {
  Plan plan;
  plan.faults = {{"blackhole", {"shop -> broker", "connect", "tcp"}, 1, Value::object()}};
  Minimizer any(plan), reset_at_least(plan);
  drive(
      any, [](const Plan&) { return Trial::fails; }, 2);
  EXPECT_EQ(any.best().faults[0].kind, "refuse");
  drive(
      reset_at_least, [](const Plan& p) { return p.faults[0].kind == "refuse" ? Trial::passes : Trial::fails; }, 2);
  EXPECT_EQ(reset_at_least.best().faults[0].kind, "reset");
}

TEST(MinimizerSimplifies, ToTheShortestDurationThatStillFails) {
  Plan plan;
  plan.faults = {{"delay", {"shop", "write", "data:a"}, 1, {{"for", "2s"}}}};
  const Oracle not_quick = [](const Plan& p) {
    const auto& f = p.faults[0];
    return f.kind == "delay" && (f.params["for"] == "2s" || f.params["for"] == "1s" || f.params["for"] == "500ms")
               ? Trial::fails
               : Trial::passes;
  };
  Minimizer minimizer(plan);
  drive(minimizer, not_quick, 1);
  EXPECT_EQ(minimizer.best().faults[0].params["for"], "500ms");
  Minimizer bottomless(plan);
  drive(
      bottomless, [](const Plan&) { return Trial::fails; }, 1);
  EXPECT_EQ(bottomless.best().faults[0].params["for"], "31ms");  // six halvings, no more
}

TEST(MinimizerSimplifies, AndChecksAgainThatNoFaultCanBeLeftOut) {
  Plan plan;
  plan.faults = {{"blackhole", {"shop -> broker", "connect", "tcp"}, 1, Value::object()}, fault(1)};
  // Both are needed as they are; with the first refused, it alone is enough.
  const Oracle oracle = [](const Plan& p) {
    if (p.faults.size() == 2) return Trial::fails;
    return p.faults[0].kind == "refuse" ? Trial::fails : Trial::passes;
  };
  Minimizer minimizer(plan);
  drive(minimizer, oracle, 2);
  ASSERT_EQ(minimizer.best().faults.size(), 1u);
  EXPECT_EQ(minimizer.best().faults[0].kind, "refuse");
  EXPECT_TRUE(minimizer.one_minimal());
}

}  // namespace
}  // namespace leafcutter::coordinator
