#include "node/actors/workbench.hpp"

#include <gtest/gtest.h>

using namespace leafcutter;
using node::Workbench;

namespace {

actors::Lease lease(std::uint64_t fence, const std::vector<std::string>& executions, const std::string& avoid = {}) {
  actors::Lease out;
  out.session = 1;
  out.fence = fence;
  for (const auto& execution : executions) {
    actors::LeafOrder order;
    order.execution = execution;
    order.avoid_slot = avoid;
    out.orders.push_back(order);
  }
  return out;
}

}  // namespace

TEST(Workbench, FillsItsSlotsAndKeepsTheRest) {
  Workbench bench("n", 2);
  EXPECT_EQ(bench.free(), 2u);
  bench.add(lease(1, {"a", "b", "c"}));
  const auto started = bench.start();
  ASSERT_EQ(started.size(), 2u);
  EXPECT_EQ(bench.slot_name(started[1].slot), "n/2");
  EXPECT_EQ(bench.free(), 0u);
  EXPECT_EQ(bench.finished(started[0].slot)->order.execution, "a");
  EXPECT_EQ(bench.free(), 0u) << "the slot has something to do next";
  EXPECT_EQ(bench.start().at(0).task.order.execution, "c");
  EXPECT_FALSE(bench.idle());
  bench.finished(0);
  bench.finished(1);
  EXPECT_TRUE(bench.idle());
}

TEST(Workbench, AnOrderWaitsForASlotThatItNeedNotAvoid) {
  Workbench bench("n", 2);
  bench.add(lease(1, {"a"}));
  ASSERT_EQ(bench.start().at(0).slot, 0u);
  bench.add(lease(2, {"b"}));
  ASSERT_EQ(bench.start().at(0).slot, 1u);
  bench.add(lease(3, {"again"}, "n/1"));
  bench.add(lease(4, {"other"}));
  bench.finished(0);
  const auto started = bench.start();
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0].task.order.execution, "other") << "it does not hold up the next";
  bench.finished(1);
  EXPECT_EQ(bench.start().at(0).task.order.execution, "again");
}

TEST(Workbench, TheOnlySlotRunsWhatItShouldRatherNot) {
  Workbench bench("n", 1);
  bench.add(lease(1, {"again"}, "n/1"));
  EXPECT_EQ(bench.start().size(), 1u);
}

TEST(Workbench, CancellingAFenceStopsItsTasksOnly) {
  Workbench bench("n", 2);
  bench.add(lease(1, {"a"}));
  bench.add(lease(2, {"b", "c"}));
  bench.start();
  const auto running = bench.cancel(2);
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0].execution, "b");
  EXPECT_TRUE(bench.start().empty()) << "its slot is busy until the leaf is dead";
  EXPECT_FALSE(bench.finished(running[0].slot)) << "nothing is reported for it";
  EXPECT_EQ(bench.free(), 1u);
  EXPECT_EQ(bench.finished(0)->order.execution, "a");
}
