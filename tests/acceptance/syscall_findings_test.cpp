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
using testing::UnorderedElementsAre;

/// The one finding of a ready scenario, well formed; nothing when there is none, or another.
Json only_finding(const std::string& name, std::size_t faults = 1) {
  const Folder folder;
  const auto outcome =
      leafcutter({"run", acceptance::library(name), "--format", "json", "--out", folder / "out"}, folder.path());
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  auto json = document(outcome);
  const auto findings = json.value("findings", Json::array());
  // Every single fault was tried: what was not found is not there.
  EXPECT_EQ(json["coverage"]["singles"]["run"], json["coverage"]["singles"]["known"]) << json["coverage"].dump(2);
  EXPECT_GT(json.value("elapsed_ms", 0), 0);
  EXPECT_EQ(findings.size(), 1U) << findings.dump(2);
  if (findings.size() != 1) return {};
  acceptance::expect_well_formed(findings[0], faults);
  return findings[0];
}

constexpr int leaves = 30;  // the budget of each

/// The scenario in `folder`, its budget ten times as large.
std::string with_ten_times_as_many_leaves(const Folder& folder, const std::string& name) {
  return folder.copy_scenario(name, "leaves: " + std::to_string(leaves) + ", time: 1m",
                              "leaves: " + std::to_string(10 * leaves) + ", time: 10m");
}

void expect_clean_when_fixed(const Folder& folder, const std::string& scenario) {
  const auto outcome =
      leafcutter({"run", scenario, "--variant", "fixed", "--format", "json", "--out", folder / "out"}, folder.path());
  EXPECT_EQ(outcome.exit, 0) << outcome.err << outcome.out;
  auto json = document(outcome);
  EXPECT_EQ(json.value("findings", Json::array()).size(), 0U);
  EXPECT_EQ(json["leaves"]["total"], 10 * leaves) << "the space has fewer leaves than the budget, or the time was over";
  EXPECT_EQ(json["leaves"]["by_verdict"].value("PASS", 0), 10 * leaves) << json["leaves"].dump(2);
}

void expect_clean_when_fixed(const std::string& name) {
  const Folder folder;
  expect_clean_when_fixed(folder, with_ten_times_as_many_leaves(folder, name));
}

TEST(FsyncRetry, AFailedSyncAndALossOfPowerLoseAnAcknowledgedRecord) {
  const auto finding = only_finding("fsync-retry", 2);
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "an acknowledged record survives");
  EXPECT_THAT(faults_of(finding), UnorderedElementsAre("fsync-lost store fsync data:records.log",
                                                       "power-loss store step the record is read back"));
}

// Its own space is smaller than that; six records, and any of their syncs, make it wide enough.
TEST(FsyncRetry, IsCleanWhenFixed) {
  const Folder folder;
  const auto scenario = with_ten_times_as_many_leaves(folder, "fsync-retry");
  acceptance::replace_in(scenario + "/scenario.yaml", "repeat: 1", "repeat: 6");
  acceptance::replace_in(scenario + "/scenario.yaml", "occurrences: 2", "occurrences: 6");
  expect_clean_when_fixed(folder, scenario);
}

TEST(ShortRename, OneShortWriteDamagesThePriceList) {
  const auto finding = only_finding("short-rename");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "the price list is never damaged");
  EXPECT_THAT(faults_of(finding), ElementsAre("short prices write data:prices.tmp"));
}

TEST(ShortRename, IsCleanWhenFixed) { expect_clean_when_fixed("short-rename"); }

TEST(EintrLost, OneInterruptedReadFillsAnOrderTwice) {
  const auto finding = only_finding("eintr-lost");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "an order is filled at most once");
  EXPECT_THAT(faults_of(finding), ElementsAre("errno desk receive market:orders"));
  EXPECT_EQ(finding["plan"]["faults"][0]["params"]["error"], "EINTR");
}

TEST(EintrLost, IsCleanWhenFixed) { expect_clean_when_fixed("eintr-lost"); }

TEST(ShortResend, OneShortSendBooksAnotherAmount) {
  const auto finding = only_finding("short-resend");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "the ledger has what the kiosk calls booked");
  EXPECT_THAT(faults_of(finding), ElementsAre("short kiosk send ledger:entries"));
}

TEST(ShortResend, IsCleanWhenFixed) { expect_clean_when_fixed("short-resend"); }

TEST(FullDisk, ADiskThatIsFullHalfWayDamagesTheSettings) {
  const auto finding = only_finding("full-disk");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["property"], "the settings are never damaged");
  EXPECT_THAT(faults_of(finding), ElementsAre("no-space settings write data:settings.json"));
}

TEST(FullDisk, IsCleanWhenFixed) { expect_clean_when_fixed("full-disk"); }

}  // namespace
