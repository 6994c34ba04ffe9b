// The ready scenarios of single defects at the system-call boundary.
#include <gtest/gtest.h>

#include "findings.hpp"

namespace {

using acceptance::Defect;
using acceptance::expect_clean_when_fixed;
using acceptance::expect_found;
using acceptance::Folder;

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

}  // namespace
