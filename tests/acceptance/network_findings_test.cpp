// The ready scenarios of single defects on the network. Each has a twin: the same defect, where the fault that shows it
// is missing, too short or one too few, so that there is nothing to be found.
#include <gtest/gtest.h>

#include "findings.hpp"

namespace {

using acceptance::Defect;
using acceptance::expect_clean_when_fixed;
using acceptance::expect_fails_again;
using acceptance::expect_found;
using acceptance::expect_not_found;
using acceptance::expect_page_shows;
using acceptance::Folder;

/// It is found, printed as its page shows it, and fails again each time it is replayed.
void expect_found_for_good(const Defect& defect) {
  const Folder folder;
  const auto finding = expect_found(folder, defect);
  if (finding.is_null()) return;
  expect_page_shows(folder, defect);
  expect_fails_again(folder, finding, 5);
}

const Defect double_charge = {.scenario = "double-charge",
                              .property = "an order is charged at most once",
                              .faults = {"lose-response till -> bank request POST /charge"},
                              .budget = "leaves: 200, time: 5m"};

TEST(DoubleCharge, OneLostResponseChargesTwice) { expect_found_for_good(double_charge); }
TEST(DoubleCharge, IsCleanWhenFixed) { expect_clean_when_fixed(double_charge); }
TEST(DoubleCharge, IsNotFoundWhereNoResponseIsLost) { expect_not_found(double_charge, {{"lose-response, ", ""}}); }

const Defect missing_timeout = {.scenario = "missing-timeout",
                                .property = "in the end no worker waits",
                                .faults = {"blackhole portal -> prices request GET /prices/item-#"},
                                .leaves = 32,
                                .budget = "leaves: 32, time: 1m",
                                .wider = {{"repeat: 3", "repeat: 5"}, {"occurrences: 3", "occurrences: 5"}}};

TEST(MissingTimeout, OneBlackholeTakesAWorkerForGood) { expect_found_for_good(missing_timeout); }
TEST(MissingTimeout, IsCleanWhenFixed) { expect_clean_when_fixed(missing_timeout); }
TEST(MissingTimeout, IsNotFoundWhereNobodyIsSilent) { expect_not_found(missing_timeout, {{"blackhole, ", ""}}); }

const std::string broken_pool_connection = "reset reception -> rooms connect tcp";
const Defect pool_leak = {
    .scenario = "pool-leak",
    .property = "when all is well again, guests are served",
    .faults = {broken_pool_connection, broken_pool_connection},  // as many as the pool has connections
    .leaves = 24,
    .budget = "leaves: 24, time: 1m",
    .wider = {{"repeat: 4", "repeat: 18"}, {"occurrences: 4", "occurrences: 18"}}};

TEST(PoolLeak, AsManyResetsAsThePoolHasConnectionsEmptyIt) { expect_found_for_good(pool_leak); }
TEST(PoolLeak, IsCleanWhenFixed) { expect_clean_when_fixed(pool_leak); }
TEST(PoolLeak, TwoResetsDoNotEmptyAPoolOfThree) { expect_not_found(pool_leak, {{"--pool, \"2\"", "--pool, \"3\""}}); }

const Defect reply_desync = {.scenario = "reply-desync",
                             .property = "everyone is shown their own page",
                             .faults = {"latency website -> profiles request POST /profile"},
                             .leaves = 20,
                             .budget = "leaves: 20, time: 1m",
                             .wider = {{"repeat: 4", "repeat: 7"}, {"occurrences: 4", "occurrences: 7"}}};

TEST(ReplyDesync, OneLateResponseIsTakenForTheNext) { expect_found_for_good(reply_desync); }
TEST(ReplyDesync, IsCleanWhenFixed) { expect_clean_when_fixed(reply_desync); }
TEST(ReplyDesync, IsNotFoundWhereEveryResponseIsInTime) {
  expect_not_found(reply_desync, {{"latency: 1500ms", "latency: 100ms"}});
}

}  // namespace
