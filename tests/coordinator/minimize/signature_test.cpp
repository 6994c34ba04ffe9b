#include <gtest/gtest.h>

#include "coordinator/minimize/minimize.hpp"

namespace leafcutter::coordinator {
namespace {

using scenarios::Fault;
using scenarios::Plan;
using scenarios::Value;

Plan plan(std::vector<Fault> faults) {
  Plan p;
  p.faults = std::move(faults);
  return p;
}

const Fault crash_after{"crash-after", {"shop", "write", "data:orders.log"}, 2, Value::object()};
const Fault crash{"crash", {"shop", "step", "post shop/orders"}, 1, Value::object()};
const Fault reset{"reset", {"shop -> broker", "request", "POST /announce"}, 1, Value::object()};

TEST(Signature, IsTwelveHexDigits) {
  const auto s = signature("p", plan({crash}));
  EXPECT_EQ(s.size(), 12u);
  EXPECT_EQ(s.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Signature, TakesEveryWayToKillAServiceForTheSame) {
  EXPECT_EQ(signature("p", plan({crash})), signature("p", plan({crash_after})));
  auto other_lane = crash;
  other_lane.site.lane = "broker";
  EXPECT_NE(signature("p", plan({crash})), signature("p", plan({other_lane})));
}

TEST(Signature, LooksPastResourceOccurrenceAndParameters) {
  auto elsewhere = reset;
  elsewhere.site.resource = "GET /";
  elsewhere.occurrence = 5;
  elsewhere.params = {{"for", "1s"}};
  EXPECT_EQ(signature("p", plan({reset})), signature("p", plan({elsewhere})));
}

TEST(Signature, TellsKindsOperationsAndPropertiesApart) {
  auto kind = reset, operation = reset;
  kind.kind = "blackhole";
  operation.site.operation = "connect";
  const auto s = signature("p", plan({reset}));
  EXPECT_NE(s, signature("p", plan({kind})));
  EXPECT_NE(s, signature("p", plan({operation})));
  EXPECT_NE(s, signature("q", plan({reset})));
  EXPECT_NE(s, signature("p", plan({})));
  EXPECT_NE(s, signature("p", plan({reset, reset})));
}

TEST(Signature, DoesNotDependOnTheOrderOfFaults) {
  EXPECT_EQ(signature("p", plan({crash, reset})), signature("p", plan({reset, crash})));
}

}  // namespace
}  // namespace leafcutter::coordinator
