// Rules of links, as a user writes them into a ready scenario: one rule can be all that a defect takes, one that never
// strikes is said to cover nothing, and what is drawn is the same in every run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "findings.hpp"

namespace {

using acceptance::document;
using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter;
using acceptance::Outcome;
using testing::HasSubstr;

/// The pool of two connections, under nothing but this rule of the link behind it.
std::string ruled_pool(const Folder& folder, const std::string& rule) {
  const auto scenario = folder.copy_scenario("pool-leak", "network: [refuse, reset, blackhole, { latency: 100ms }]",
                                             "rules: ['" + rule + "']");
  acceptance::replace_in(scenario + "/scenario.yaml", "at-once: 2", "at-once: 1");
  return scenario;
}

Outcome run_pool(const Folder& folder, const std::string& scenario, const std::string& out,
                 const std::string& slots = "2") {
  return leafcutter({"run", scenario, "--slots", slots, "--format", "json", "--out", folder / out}, folder.path());
}

TEST(LinkRules, OneThatResetsAsManyConnectionsAsThePoolHasEmptiesIt) {
  const Folder folder;
  const auto outcome = run_pool(folder, ruled_pool(folder, "reset first 2 caller=reception"), "out");
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  const auto json = document(outcome);
  const auto findings = json.value("findings", Json::array());
  ASSERT_EQ(findings.size(), 1U) << json.dump(2);
  acceptance::expect_well_formed(findings[0]);
  EXPECT_EQ(findings[0]["property"], "when all is well again, guests are served");
  EXPECT_THAT(acceptance::faults_of(findings[0]), testing::ElementsAre("reset reception -> rooms connect "));
  acceptance::expect_fails_again(folder, findings[0], 3);
}

TEST(LinkRules, OneThatResetsASingleConnectionDoesNot) {
  const Folder folder;
  const auto outcome = run_pool(folder, ruled_pool(folder, "reset #1 caller=reception"), "out");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_TRUE(document(outcome).value("findings", Json::array()).empty());
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("it never fired")));
}

TEST(LinkRules, ThatNeverStrikeAreSaidToCoverNothing) {
  for (const std::string rule : {"reset #90", "reset probability=0", "latency:5ms after=\"exit service=rooms\""}) {
    const Folder folder;
    const auto outcome = run_pool(folder, ruled_pool(folder, rule), "out");
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    const auto json = document(outcome);
    EXPECT_THAT(json["coverage"].dump(),
                HasSubstr(Json("rule \"" + rule + "\" of reception -> rooms: it never fired").dump()))
        << json.dump(2);
  }
}

TEST(LinkRules, DrawTheSameInTwoRunsAndInAnyNumberOfSlots) {
  const Folder folder;
  const auto scenario = ruled_pool(folder, "latency:20ms probability=0.5");
  const auto digest = [&](const std::string& out, const std::string& slots) {
    const auto json = document(run_pool(folder, scenario, out, slots));
    return std::pair(json.value("result_digest", ""), json.value("leaves", Json()));
  };
  const auto first = digest("a", "2");
  EXPECT_NE(first.first, "");
  EXPECT_EQ(digest("b", "2"), first);
  EXPECT_EQ(digest("c", "1"), first);
}

}  // namespace
