#include "coordinator/search/candidates.hpp"

#include <gtest/gtest.h>

namespace leafcutter::coordinator {
namespace {

using scenarios::Fault;
using scenarios::FaultChoice;
using scenarios::Site;

FaultChoice choice(const std::string& glob) { return {"errno", "shop", "write", glob, {{"error", "EIO"}}}; }

TEST(Fits, WantsLaneAndOperation) {
  EXPECT_TRUE(fits(choice(""), {"shop", "write", "data:a"}));
  EXPECT_FALSE(fits(choice(""), {"broker", "write", "data:a"}));
  EXPECT_FALSE(fits(choice(""), {"shop", "fsync", "data:a"}));
}

TEST(Fits, KeepsToTheDataFolderWithoutAGlob) {
  EXPECT_FALSE(fits(choice(""), {"shop", "write", "/var/log/shop"}));
  EXPECT_TRUE(fits(choice("/var/log/*"), {"shop", "write", "/var/log/shop"}));
}

TEST(Fits, TakesGlobsWithAndWithoutThePrefix) {
  EXPECT_TRUE(fits(choice("*.log"), {"shop", "write", "data:orders.log"}));
  EXPECT_TRUE(fits(choice("data:*.log"), {"shop", "write", "data:orders.log"}));
  EXPECT_FALSE(fits(choice("*.log"), {"shop", "write", "data:orders.idx"}));
  EXPECT_TRUE(fits(choice("wal-[0-9]?"), {"shop", "write", "data:wal-1#"}));
}

TEST(FaultsAt, GivesEveryOccurrenceOfEveryFittingChoice) {
  const Site site{"shop", "write", "data:a"};
  const auto faults = faults_at({choice(""), choice("b"), {"delay", "shop", "write", "", {{"for", "1s"}}}}, site, 2, 3);
  ASSERT_EQ(faults.size(), 4u);
  EXPECT_EQ(faults[0].kind, "errno");
  EXPECT_EQ(faults[0].occurrence, 2u);
  EXPECT_EQ(faults[1].occurrence, 3u);
  EXPECT_EQ(faults[2].kind, "delay");
  EXPECT_TRUE(faults_at({choice("")}, site, 3, 2).empty());
}

TEST(FaultLess, TellsFaultsApartByEveryPart) {
  const Fault base{"errno", {"shop", "write", "data:a"}, 1, {{"error", "EIO"}}};
  auto kind = base, resource = base, occurrence = base, params = base;
  kind.kind = "delay";
  resource.site.resource = "data:b";
  occurrence.occurrence = 2;
  params.params = {{"error", "ENOSPC"}};
  const FaultLess less;
  EXPECT_FALSE(less(base, base));
  for (const auto& other : {kind, resource, occurrence, params})
    EXPECT_NE(less(base, other), less(other, base)) << other.text();
}

}  // namespace
}  // namespace leafcutter::coordinator
