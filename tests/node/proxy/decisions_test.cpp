#include "node/proxy/decisions.hpp"

#include <gtest/gtest.h>

#include "node/proxy/gate.hpp"
#include "node/proxy/latency_draw.hpp"

namespace leafcutter::node::proxy {
namespace {

using namespace std::chrono_literals;

constexpr auto no_edge = std::numeric_limits<std::uint64_t>::max();

TEST(Decisions, BytesAreFoundByTheirOffsets) {
  FaultDecisions decisions;
  decisions.strike({2, 100, 50, 3ms});
  decisions.strike({1, 10, 5, 1ms});  // in any order
  EXPECT_EQ(decisions.at(0, 9), nullptr);
  ASSERT_NE(decisions.at(0, 10), nullptr);
  EXPECT_EQ(decisions.at(99, 14)->delay, 1ms);
  EXPECT_EQ(decisions.at(0, 15), nullptr);
  EXPECT_EQ(decisions.at(0, 149)->delay, 3ms);
  EXPECT_EQ(decisions.at(0, 150), nullptr);
  EXPECT_EQ(decisions.edge_after(0), 10U);
  EXPECT_EQ(decisions.edge_after(10), 5U);
  EXPECT_EQ(decisions.edge_after(12), 3U);
  EXPECT_EQ(decisions.edge_after(15), 85U);
  EXPECT_EQ(decisions.edge_after(150), no_edge);
}

TEST(Decisions, DatagramsAreFoundByTheirNumbers) {
  FaultDecisions decisions(true);
  decisions.strike({3, 0, 50, 3ms});
  EXPECT_EQ(decisions.at(2, 0), nullptr);
  EXPECT_NE(decisions.at(3, 0), nullptr);
  EXPECT_EQ(decisions.at(4, 0), nullptr);
  EXPECT_EQ(decisions.edge_after(0), no_edge);
}

TEST(Decisions, OfAConnectionThatIsNotKnownThereAreNone) {
  Decisions decisions;
  decisions.know("a", 1);
  decisions.of({"a", 1, Direction::to_client, "f", 2}, false).pass_over();
  EXPECT_TRUE(decisions.find({"a", 1, Direction::to_client, "f", 2})->passed_over());
  // It was there, and nothing was decided against it.
  for (const Decisions::Key& other :
       {Decisions::Key{"a", 1, Direction::to_upstream, "f", 2}, Decisions::Key{"a", 1, Direction::to_client, "g", 2},
        Decisions::Key{"a", 1, Direction::to_client, "f", 1}}) {
    ASSERT_NE(decisions.find(other), nullptr);
    EXPECT_FALSE(decisions.find(other)->passed_over());
  }
  EXPECT_EQ(decisions.find({"a", 2, Direction::to_client, "f", 2}), nullptr);
  EXPECT_EQ(decisions.find({"b", 1, Direction::to_client, "f", 2}), nullptr);
}

Fault drawn_fault(Effect effect, double probability) {
  Fault fault{"f", {}, std::move(effect)};
  fault.selector.probability = probability;
  return fault;
}

TEST(Decisions, AGateDoesAsTheyTellItWhereItWouldDraw) {
  FaultDecisions against, none;
  against.pass_over();
  const auto passed_over = [&](double probability, const FaultDecisions& recorded) {
    const Gate gate(drawn_fault(Limit{}, probability), {1, "l", 1, Direction::to_client, "f", &recorded}, true);
    return gate.passed_over();
  };
  for (const double probability : {0.001, 0.999}) {
    EXPECT_TRUE(passed_over(probability, against)) << probability;
    EXPECT_FALSE(passed_over(probability, none)) << probability;
  }
  EXPECT_FALSE(passed_over(1, against));  // nothing was drawn there
}

TEST(Decisions, AGateStrikesTheBytesThatWereStruck) {
  FaultDecisions recorded;
  recorded.strike({1, 10, 5, 7ms});
  const auto fault = drawn_fault(Jitter{1ms, 2ms}, 0.5);
  Gate gate(fault, {1, "l", 1, Direction::to_client, "f", &recorded}, true);
  EXPECT_EQ(gate.edge_after(0), 10U);
  EXPECT_FALSE(gate.next(0).struck);
  EXPECT_EQ(gate.edge_after(10), 5U);
  EXPECT_TRUE(gate.next(10).struck);
  EXPECT_FALSE(gate.next(15).struck);
  LatencyDraw draw(Latency{UniformTime{1ms, 2ms}}, {1, "l", 1, Direction::to_client, "f", &recorded});
  EXPECT_EQ(draw.next(1, 12), 7ms);
  EXPECT_LE(draw.next(1, 15), 2ms);  // not recorded: drawn
}

}  // namespace
}  // namespace leafcutter::node::proxy
