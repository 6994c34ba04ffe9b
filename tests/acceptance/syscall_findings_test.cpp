// The ready scenarios of single defects at the system-call boundary: a small budget finds each with exactly the faults
// it takes, and the mended service stays clean over ten times as many leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "findings.hpp"
#include "support.hpp"

namespace {

using acceptance::document;
using acceptance::faults_of;
using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter;
using testing::ElementsAre;

/// The one finding of a ready scenario, well formed; nothing when there is none, or another.
Json only_finding(const std::string& name, std::size_t faults = 1) {
  const Folder folder;
  const auto outcome =
      leafcutter({"run", acceptance::library(name), "--format", "json", "--out", folder / "out"}, folder.path());
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  const auto findings = document(outcome).value("findings", Json::array());
  EXPECT_EQ(findings.size(), 1U) << findings.dump(2);
  if (findings.size() != 1) return {};
  acceptance::expect_well_formed(findings[0], faults);
  return findings[0];
}

void expect_clean_over_ten_times_as_many_leaves(const std::string& name, int leaves) {
  const Folder folder;
  const auto budget = "leaves: " + std::to_string(leaves), more = "leaves: " + std::to_string(10 * leaves);
  const auto scenario = folder.copy_scenario(name, budget + ",", more + ",");
  const auto outcome =
      leafcutter({"run", scenario, "--variant", "fixed", "--format", "json", "--out", folder / "out"}, folder.path());
  EXPECT_EQ(outcome.exit, 0) << outcome.err << outcome.out;
  const auto json = document(outcome);
  EXPECT_EQ(json.value("findings", Json::array()).size(), 0U);
  EXPECT_EQ(json["leaves"]["total"], 10 * leaves) << "the space has fewer leaves than the budget";
  EXPECT_EQ(json["leaves"]["by_verdict"].value("PASS", 0), 10 * leaves) << json["leaves"].dump(2);
}

TEST(FsyncRetry, AFailedSyncAndALossOfPowerLoseAnAcknowledgedRecord) {
  const auto finding = only_finding("fsync-retry", 2);
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "an acknowledged record survives");
  EXPECT_THAT(faults_of(finding),
              ElementsAre("fsync-lost store fsync data:records.log", testing::StartsWith("power-loss store step ")));
}

TEST(FsyncRetry, IsCleanWhenFixed) { expect_clean_over_ten_times_as_many_leaves("fsync-retry", 30); }

TEST(ShortRename, OneShortWriteDamagesThePriceList) {
  const auto finding = only_finding("short-rename");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "the price list is never damaged");
  EXPECT_THAT(faults_of(finding), ElementsAre("short prices write data:prices.tmp"));
}

TEST(ShortRename, IsCleanWhenFixed) { expect_clean_over_ten_times_as_many_leaves("short-rename", 30); }

TEST(EintrLost, OneInterruptedReadFillsAnOrderTwice) {
  const auto finding = only_finding("eintr-lost");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "an order is filled at most once");
  EXPECT_THAT(faults_of(finding), ElementsAre("errno desk receive market:orders"));
  EXPECT_EQ(finding["plan"]["faults"][0]["params"]["error"], "EINTR");
}

TEST(EintrLost, IsCleanWhenFixed) { expect_clean_over_ten_times_as_many_leaves("eintr-lost", 30); }

TEST(ShortResend, OneShortSendBooksAnotherAmount) {
  const auto finding = only_finding("short-resend");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "the ledger has what the kiosk calls booked");
  EXPECT_THAT(faults_of(finding), ElementsAre("short kiosk send ledger:entries"));
}

TEST(ShortResend, IsCleanWhenFixed) { expect_clean_over_ten_times_as_many_leaves("short-resend", 30); }

TEST(FullDisk, ADiskThatIsFullHalfWayDamagesTheSettings) {
  const auto finding = only_finding("full-disk");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "the settings are never damaged");
  EXPECT_THAT(faults_of(finding), ElementsAre("no-space settings write data:settings.json"));
}

TEST(FullDisk, IsCleanWhenFixed) { expect_clean_over_ten_times_as_many_leaves("full-disk", 30); }

}  // namespace
