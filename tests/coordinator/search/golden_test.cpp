// Derived plans are a promise: an address that was reported must name the same plan for ever, on every machine. When
// this fails, derivation has changed; that breaks the addresses of every earlier campaign and needs a reason in the
// commit.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "tests/coordinator/search/derive.hpp"

namespace leafcutter::coordinator {
namespace {

Value derived_plans() {
  const auto epochs = synthetic::derive(synthetic::scenario(2, 3, 3 + 47 + 400));
  auto plans = Value::object();
  for (const auto* epoch : {&epochs.baseline, &epochs.singles, &epochs.pairs})
    for (std::uint64_t i = 0; i < epoch->leaves; ++i) {
      const auto plan = plan_of(*epoch, i);
      auto faults = Value::array();
      for (const auto& fault : plan.faults) faults.push_back(fault.text());
      plans[scenarios::Address{epoch->campaign, epoch->number, i}.text()] = {{"plan", scenarios::digest(plan)},
                                                                             {"faults", faults}};
    }
  return {{"keys", {epochs.baseline.key(), epochs.singles.key(), epochs.pairs.key()}}, {"plans", std::move(plans)}};
}

// One plan a line, so that a difference can be read.
std::string as_text(const Value& derived) {
  std::string text = "{\"keys\": " + derived["keys"].dump() + ",\n\"plans\": {";
  for (const auto& [address, plan] : derived["plans"].items())
    text += (text.ends_with("{") ? "\n\"" : ",\n\"") + address + "\": " + plan.dump();
  return text + "}}\n";
}

TEST(Golden, PlansAreDerivedAsEver) {
  const auto actual = derived_plans();
  EXPECT_GT(actual["plans"].size(), 300u);
  const std::string beside = LEAFCUTTER_BINARY_DIR "/golden_plans.actual.json";
  ASSERT_TRUE(base::write_file_atomically(beside, as_text(actual)).ok());
  const auto text = base::read_file(std::string(LEAFCUTTER_SOURCE_DIR) + "/tests/coordinator/search/golden_plans.json");
  ASSERT_TRUE(text.ok()) << text.error().text();
  const auto golden = Value::parse(*text);
  EXPECT_EQ(golden["keys"], actual["keys"]);
  EXPECT_EQ(golden["plans"].size(), actual["plans"].size());
  int shown = 0;
  for (const auto& [address, plan] : golden["plans"].items())
    if (!actual["plans"].contains(address) || actual["plans"][address] != plan) {
      ADD_FAILURE() << address << " was " << plan.dump() << "; what is derived now is in " << beside;
      if (++shown == 5) break;
    }
}

}  // namespace
}  // namespace leafcutter::coordinator
