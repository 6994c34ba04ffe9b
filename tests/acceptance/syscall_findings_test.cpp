// The ready scenarios of single defects at the system-call boundary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "findings.hpp"
#include "support.hpp"

namespace {

using acceptance::Defect;
using acceptance::expect_clean_when_fixed;
using acceptance::expect_found;
using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter;
using testing::HasSubstr;

const Defect fsync_retry = {
    .scenario = "fsync-retry",
    .property = "an acknowledged record survives",
    .faults = {"fsync-lost store fsync data:records.log", "power-loss store step the record is read back"},
    .wider = {{"repeat: 1", "repeat: 6"}, {"occurrences: 2", "occurrences: 6"}}};  // six records, any of their syncs

TEST(FsyncRetry, AFailedSyncAndALossOfPowerLoseAnAcknowledgedRecord) { expect_found(Folder(), fsync_retry); }
TEST(FsyncRetry, IsCleanWhenFixed) { expect_clean_when_fixed(fsync_retry); }

const Defect short_rename = {.scenario = "short-rename",
                             .property = "the price list is never damaged",
                             .faults = {"short prices write data:prices.tmp"}};

TEST(ShortRename, OneShortWriteDamagesThePriceList) { expect_found(Folder(), short_rename); }
TEST(ShortRename, IsCleanWhenFixed) { expect_clean_when_fixed(short_rename); }

const Defect eintr_lost = {.scenario = "eintr-lost",
                           .property = "an order is filled at most once",
                           .faults = {"errno desk receive market:orders"}};

TEST(EintrLost, OneInterruptedReadFillsAnOrderTwice) {
  const auto finding = expect_found(Folder(), eintr_lost);
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["plan"]["faults"][0]["params"]["error"], "EINTR");
}
TEST(EintrLost, IsCleanWhenFixed) { expect_clean_when_fixed(eintr_lost); }

const Defect short_resend = {.scenario = "short-resend",
                             .property = "the ledger has what the kiosk calls booked",
                             .faults = {"short kiosk send ledger:entries"}};

TEST(ShortResend, OneShortSendBooksAnotherAmount) { expect_found(Folder(), short_resend); }
TEST(ShortResend, IsCleanWhenFixed) { expect_clean_when_fixed(short_resend); }

const Defect full_disk = {.scenario = "full-disk",
                          .property = "the settings are never damaged",
                          .faults = {"no-space settings write data:settings.json"}};

TEST(FullDisk, ADiskThatIsFullHalfWayDamagesTheSettings) { expect_found(Folder(), full_disk); }
TEST(FullDisk, IsCleanWhenFixed) { expect_clean_when_fixed(full_disk); }

TEST(ScenarioRules, AreTriedExplainedAndSaidToHaveNeverFired) {
  const Folder folder;
  const auto scenario = folder.copy_scenario(
      "config-save", "syscalls: { families: [open, write, fsync, rename], errors: [EIO, ENOSPC], crash: true }",
      "rules: [\"write=ENOSPC path=*.tmp #2\", \"fsync=EIO path=*.wal\"]");
  const auto outcome = leafcutter({"run", scenario, "--format", "json", "--out", folder / "out"}, folder.path());
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  const auto json = acceptance::document(outcome);
  ASSERT_EQ(json["findings"].size(), 1u) << outcome.out;
  const auto plan = json["findings"][0]["plan"]["faults"];
  ASSERT_EQ(plan.size(), 1u) << plan;
  EXPECT_EQ(plan[0]["kind"], "errno");
  EXPECT_THAT(plan[0]["site"].dump(), HasSubstr("write"));
  EXPECT_EQ(plan[0]["aim"]["path"], "*.tmp");
  EXPECT_EQ(plan[0]["aim"]["occurrences"], (Json{{"nth", 2}}));
  EXPECT_THAT(outcome.out, HasSubstr("rule \\\"fsync=EIO path=*.wal\\\" of conf: it never fired"));
}

}  // namespace
