// A campaign and its ledger, without actors: what a second result of a leaf leaves in it.
#include "coordinator/actors/campaign_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/loader.hpp"
#include "tests/coordinator/ledger/ledger_fixture.hpp"

namespace leafcutter::coordinator::testing {
namespace {

constexpr const char* one_shop = R"(leafcutter: 1
name: toy
services:
  shop:
    run: [bin/shop]
    ports: { http: { port: 7001, protocol: http } }
workload:
  - { get: shop/orders }
properties:
  - name: nothing is lost
    never: { event: log, line: LOST }
explore:
  faults:
    - on: shop
      syscalls: { families: [write], errors: [EIO] }
)";

class SecondResult : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = scenarios::load_text(one_shop, "/toy/scenario.yaml", {"", false});
    ASSERT_TRUE(loaded.scenario) << loaded.errors.front().text();
    auto opened = CampaignRun::open(*ledger_, *loaded.scenario, "identity", 7);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    run_.emplace(std::move(*opened));
    const auto step = run_->start();
    ASSERT_FALSE(step.orders.empty());
    orders_ = step.orders;
    first_.execution = step.orders[0].execution;
    first_.address = step.orders[0].address;
    run_->take(first_, "");
  }
  Result again(scenarios::Reason reason) const {
    auto result = first_;
    result.reason = reason;
    result.verdict = scenarios::verdict_of(reason);
    return result;
  }
  std::vector<Finding> findings() const { return *ledger_->findings(run_->name()); }
  std::string digest() const { return result_digest(*ledger_->results(run_->name())); }

  Folder folder_;
  std::unique_ptr<Ledger> ledger_ = open_ledger(folder_.path());
  std::optional<CampaignRun> run_;
  Result first_;
  std::vector<actors::LeafOrder> orders_;
};

using RunToItsEnd = SecondResult;

TEST_F(RunToItsEnd, LeavesInTheLedgerHowLongItTook) {
  std::chrono::milliseconds now{1000};
  for (const auto& order : orders_) {
    ASSERT_FALSE(run_->over());
    run_->clock(now += std::chrono::milliseconds(111));
    auto result = first_;
    result.execution = order.execution;
    result.address = order.address;
    run_->take(result, "");
  }
  ASSERT_TRUE(run_->over()) << "baselines that visit no site are all there is to do";
  run_->clock(std::chrono::hours(1));  // nothing is told after the end
  const auto row = ledger_->campaign(run_->name());
  ASSERT_TRUE(row.ok() && *row);
  EXPECT_EQ((*row)->elapsed_ms, now.count());
}

TEST_F(SecondResult, ThatDiffersIsAFinding) {
  const auto before = digest();
  run_->compare(again(scenarios::Reason::property_violated));
  ASSERT_THAT(findings(), ::testing::SizeIs(1));
  EXPECT_EQ(findings()[0].property, "nondeterminism");
  EXPECT_EQ(findings()[0].leaf.text(), first_.address);
  EXPECT_EQ(digest(), before) << "the first result counts";
  EXPECT_THAT(run_->progress().note, ::testing::HasSubstr("nondeterminism"));
}

TEST_F(SecondResult, ThatAgreesIsNone) {
  run_->compare(again(scenarios::Reason::held));
  EXPECT_THAT(findings(), ::testing::IsEmpty());
  EXPECT_THAT(run_->progress().note, ::testing::IsEmpty());
}

TEST_F(SecondResult, ThatTheRunnerSpoiltIsNone) {
  run_->compare(again(scenarios::Reason::node_lost));
  EXPECT_THAT(findings(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace leafcutter::coordinator::testing
