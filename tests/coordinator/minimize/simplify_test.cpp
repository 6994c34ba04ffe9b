#include "coordinator/minimize/simplify.hpp"

#include <gtest/gtest.h>

#include "scenarios/fault_kinds.hpp"
#include "scenarios/link_rule.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Fault;
using scenarios::Value;

std::vector<std::string> kinds(const std::vector<Fault>& faults) {
  std::vector<std::string> names;
  for (const auto& fault : faults) names.push_back(fault.kind);
  return names;
}

TEST(SimplerKinds, OfABlackholedConnectionAreRefusedAndReset) {
  const Fault hole{"blackhole", {"shop -> broker", "connect", "tcp"}, 1, Value::object()};
  EXPECT_EQ(kinds(simpler_kinds(hole)), (std::vector<std::string>{"refuse", "reset"}));
}

TEST(SimplerKinds, KeepToWhatTheOperationAllows) {
  const Fault hole{"blackhole", {"shop -> broker", "request", "POST /announce"}, 3, Value::object()};
  const auto simpler = simpler_kinds(hole);
  ASSERT_EQ(kinds(simpler), (std::vector<std::string>{"reset"}));  // a request cannot be refused
  EXPECT_EQ(simpler[0].site, hole.site);
  EXPECT_EQ(simpler[0].occurrence, 3u);
}

TEST(SimplerKinds, DoNotInventParameters) {
  const Fault late{"crash-after", {"shop", "write", "data:a"}, 1, Value::object()};
  EXPECT_EQ(kinds(simpler_kinds(late)), (std::vector<std::string>{"crash-before"}));  // errno would need an error
}

TEST(SimplerKinds, OfAFaultThatKillsNobodyKillNobody) {
  const Fault full{"no-space", {"shop", "write", "data:a"}, 1, {{"after", 100}}};
  EXPECT_TRUE(simpler_kinds(full).empty());
  const Fault torn{"torn", {"shop", "write", "data:a"}, 1, {{"bytes", 100}}};
  EXPECT_EQ(kinds(simpler_kinds(torn)), (std::vector<std::string>{"crash-before", "short"}));
}

TEST(SimplerKinds, OfTheSimplestOrAnUnknownKindAreNone) {
  EXPECT_TRUE(simpler_kinds({"refuse", {"a -> b", "connect", "tcp"}, 1, Value::object()}).empty());
  EXPECT_TRUE(simpler_kinds({"no such kind", {"a -> b", "connect", "tcp"}, 1, Value::object()}).empty());
}

TEST(SimplerKinds, AreAlwaysValidAndLessComplex) {
  for (const auto& kind : scenarios::fault_kinds())
    for (const auto& operation : kind.operations) {
      Fault fault{kind.name, {"lane", operation, "r"}, 1, Value::object()};
      for (const auto& p : kind.parameters)
        fault.params[p.name] = p.type == scenarios::FaultParameter::Type::duration     ? Value("2s")
                               : p.type == scenarios::FaultParameter::Type::error_name ? Value("EIO")
                                                                                       : Value(1u);
      for (const auto& simpler : simpler_kinds(fault)) {
        const auto* to = scenarios::fault_kind(simpler.kind);
        ASSERT_NE(to, nullptr);
        EXPECT_LT(to->complexity, kind.complexity);
        EXPECT_EQ(to->mechanism, kind.mechanism);
        EXPECT_TRUE(kind.kills || !to->kills) << kind.name << " to " << to->name;
        EXPECT_TRUE(scenarios::check_params(*to, simpler.params).ok());
      }
    }
}

Fault aimed(const std::string& kind, scenarios::Occurrences occurrences) {
  Fault fault{kind, {"shop", "write", ""}, 1, scenarios::Value::object(), scenarios::Aim{}};
  fault.aim->path = "*.wal";
  fault.aim->occurrences = occurrences;
  return fault;
}

TEST(SimplerKinds, KeepTheAim) {
  using Which = scenarios::Occurrences::Which;
  const auto simpler = simpler_kinds(aimed("crash-after", {Which::nth, 2}));
  ASSERT_FALSE(simpler.empty());
  for (const auto& fault : simpler) EXPECT_EQ(fault.aim, aimed("x", {Which::nth, 2}).aim) << fault.text();
}

TEST(SimplerKinds, OfWhatBeginsAtAByteBeginThereToo) {
  Fault slow{"bandwidth", {"a -> b", "connect", ""}, 1, {{"bytes-per-second", 9u}}, scenarios::Aim{}};
  EXPECT_EQ(kinds(simpler_kinds(slow)), (std::vector<std::string>{"refuse", "reset", "blackhole"}));
  slow.aim->after_bytes = 9;
  EXPECT_EQ(kinds(simpler_kinds(slow)), (std::vector<std::string>{"reset", "blackhole"}))
      << "before a connection is open no byte has passed";
}

/// What a report says of a rule is the rule: pasted into a scenario it strikes the same.
TEST(SimplerKinds, OfARuleOfALinkReadAsTheSameRuleAgain) {
  for (const auto protocol : {scenarios::Protocol::http, scenarios::Protocol::tcp}) {
    scenarios::LinkRuleScope scope;
    scope.links = {{"a", "b", "main", protocol, 80, true}};
    scenarios::Mistake mistake;
    std::size_t checked = 0;
    for (const auto* rule : {"cut:100 #2", "bandwidth:9 first 3", "latency:5ms,uniform,2ms every 2", "jitter:3ms",
                             "blackhole:stall", "reset:both", "half-open:service", "slice:3 after-bytes=9"}) {
      const auto given = scenarios::read_link_rule(rule, scope, mistake);
      ASSERT_TRUE(given) << rule << ": " << mistake.message;
      for (const auto& fault : simpler_kinds(given->front())) {
        const auto again = scenarios::read_link_rule(scenarios::link_rule_text(fault), scope, mistake);
        ASSERT_TRUE(again) << fault.text() << ": " << mistake.message;
        ASSERT_EQ(again->size(), 1u);
        EXPECT_EQ(again->front(), fault) << rule << " to " << fault.text();
        ++checked;
      }
    }
    EXPECT_GT(checked, 8u);
  }
}

TEST(Narrowed, StrikesTheFirstOfThemAlone) {
  using Which = scenarios::Occurrences::Which;
  const auto of = [](Which which, std::uint32_t n) { return narrowed(aimed("crash-before", {which, n})); };
  const auto only = [](std::uint32_t n) { return std::optional(aimed("crash-before", {Which::nth, n})); };
  EXPECT_EQ(of(Which::from, 1), only(1));
  EXPECT_EQ(of(Which::from, 4), only(4));
  EXPECT_EQ(of(Which::every, 3), only(3));
  EXPECT_EQ(of(Which::first, 5), only(1));
  EXPECT_EQ(of(Which::nth, 2), std::nullopt);
  EXPECT_EQ(of(Which::first, 1), std::nullopt);
  EXPECT_EQ(narrowed(aimed("slow", {Which::from, 1})), std::nullopt) << "it lasts";
  EXPECT_EQ(narrowed({"crash-before", {"shop", "write", "data:a"}, 1}), std::nullopt) << "no rule";
  auto in_kernel = aimed("errno", {Which::from, 1});
  in_kernel.aim->uncounted = true;
  EXPECT_FALSE(narrowed(in_kernel)->aim->uncounted);
}

TEST(HalfAsLong, HalvesDownToAMillisecond) {
  Fault delay{"delay", {"shop", "write", "data:a"}, 1, {{"for", "5ms"}}};
  auto half = half_as_long(delay);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->params["for"], "2ms");
  half = half_as_long(*half);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->params["for"], "1ms");
  EXPECT_FALSE(half_as_long(*half));
}

TEST(HalfAsLong, LeavesFaultsWithoutADurationAlone) {
  EXPECT_FALSE(half_as_long({"errno", {"shop", "write", "data:a"}, 1, {{"error", "EIO"}}}));
  EXPECT_FALSE(half_as_long({"refuse", {"a -> b", "connect", "tcp"}, 1, Value::object()}));
}

}  // namespace
}  // namespace leafcutter::coordinator
