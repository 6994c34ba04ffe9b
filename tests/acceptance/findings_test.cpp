// The ready scenarios: each defect is found with the one fault it takes, and its cure passes the same search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "findings.hpp"
#include "support.hpp"

namespace {

using acceptance::document;
using acceptance::expect_well_formed;
using acceptance::Folder;
using acceptance::Json;
using acceptance::leafcutter;
using acceptance::library;
using acceptance::slower;
using testing::AnyOf;
using testing::HasSubstr;

/// Runs a ready scenario and returns the faults of its findings, each as "kind lane operation resource".
std::set<std::string> faults_found(const std::string& name, Json* whole = nullptr) {
  const Folder folder;
  const auto outcome = leafcutter({"run", library(name), "--format", "json", "--out", folder / "out"}, folder.path());
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  const auto json = document(outcome);
  std::set<std::string> faults;
  for (const auto& finding : json.value("findings", Json::array())) {
    expect_well_formed(finding);
    for (auto& fault : acceptance::faults_of(finding)) faults.insert(std::move(fault));
  }
  if (whole != nullptr) *whole = json;
  return faults;
}

void expect_clean_when_fixed(const std::string& name) {
  const Folder folder;
  const auto outcome = leafcutter(
      {"run", library(name), "--variant", "fixed", "--format", "json", "--out", folder / "out"}, folder.path());
  EXPECT_EQ(outcome.exit, 0) << outcome.err << outcome.out;
  EXPECT_EQ(document(outcome).value("findings", Json::array()).size(), 0U);
}

TEST(Outbox, OneCrashBetweenStoringAndAnnouncingLosesTheAnnouncement) {
  const auto begin = std::chrono::steady_clock::now();
  Json json;
  const auto faults = faults_found("outbox", &json);
  EXPECT_THAT(faults, testing::Contains("crash-before shop connect broker:http"));
  for (const auto& fault : faults)
    EXPECT_THAT(fault, AnyOf("crash-before shop connect broker:http", "crash-after shop connect broker:http"));
  for (const auto& finding : json["findings"]) EXPECT_EQ(finding["property"], "an accepted order is announced");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, slower * std::chrono::seconds(120))
      << "it is meant to take less than 60 s on an idle machine";
}

TEST(Outbox, TheDocumentIsAContract) {
  const Folder folder;
  const auto scenario = folder.copy_scenario("outbox", "leaves: 400", "leaves: 30");
  const auto json = document(
      leafcutter({"run", scenario, "--seed", "11", "--format", "json", "--out", folder / "out"}, folder.path()));
  for (const auto* key : {"campaign", "seed", "leaves", "coverage", "result_digest", "findings"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["seed"], 11);
  EXPECT_EQ(json["leaves"]["total"], 30);
  std::uint64_t verdicts = 0, reasons = 0;
  for (const auto& [verdict, count] : json["leaves"]["by_verdict"].items()) verdicts += count.get<std::uint64_t>();
  for (const auto& [reason, count] : json["leaves"]["by_reason"].items()) reasons += count.get<std::uint64_t>();
  EXPECT_EQ(verdicts, 30U);
  EXPECT_EQ(reasons, 30U);
  EXPECT_EQ(json["result_digest"].get<std::string>().size(), 64U);
}

TEST(Outbox, IsCleanWhenFixed) { expect_clean_when_fixed("outbox"); }

TEST(ConfigSave, OneFailedWriteDamagesTheConfiguration) {
  EXPECT_THAT(faults_found("config-save"), testing::ElementsAre("errno conf write data:config.tmp"));
}

TEST(ConfigSave, IsCleanWhenFixed) { expect_clean_when_fixed("config-save"); }

TEST(NameLost, OneWrongAnswerOfTheResolverIsRememberedForGood) {
  EXPECT_THAT(faults_found("name-lost"), testing::ElementsAre("dns-nx-domain front -> dns query stock A"));
}

TEST(NameLost, IsCleanWhenFixed) { expect_clean_when_fixed("name-lost"); }

TEST(Replay, AFindingFailsEveryTimeWithTheSameSignature) {
  const Folder folder;
  const auto scenario = folder.copy_scenario("outbox", "leaves: 400", "leaves: 120");
  const auto json = document(leafcutter({"run", scenario, "--format", "json", "--out", folder / "out"}, folder.path()));
  ASSERT_FALSE(json["findings"].empty()) << json.dump(2);
  acceptance::expect_fails_again(folder, json["findings"][0], 20);
}

TEST(Replay, ALeafWithoutFaultsPasses) {
  const Folder folder;
  const auto scenario = folder.copy_scenario("outbox", "leaves: 400", "leaves: 5");
  const auto json = document(leafcutter({"run", scenario, "--format", "json", "--out", folder / "out"}, folder.path()));
  const auto replayed =
      leafcutter({"replay", json["campaign"].get<std::string>() + "/0/0", "--out", folder / "out"}, folder.path());
  EXPECT_EQ(replayed.exit, 0) << replayed.err << replayed.out;
  EXPECT_THAT(replayed.out, HasSubstr("0 of 1 failed"));
}

/// A service that is ready as long as the test keeps a file, and a campaign of it that can be run again.
class ReplayOnAPoorMachine : public testing::Test {
 protected:
  ReplayOnAPoorMachine() {
    folder_.write("up", "");
    folder_.write("scenario.yaml", R"(leafcutter: 1
name: poor-machine
services:
  idle:
    run: [tail, -f, /dev/null]
    ready: { run: [test, -e, )" + (folder_ / "up") +
                                       R"(], within: 1s }
workload:
  - run: [/bin/true]
properties:
  - name: nothing is logged
    never: { event: log }
explore:
  faults:
    - { on: idle, process: [crash] }
  budget: { leaves: 1 }
)");
    const auto json = document(leafcutter({"run", ".", "--format", "json", "--out", "out"}, folder_.path()));
    if (json.contains("campaign")) address_ = json["campaign"].get<std::string>() + "/0/0";
    std::filesystem::remove(folder_ / "up");
  }

  Folder folder_;
  std::string address_;
};

TEST_F(ReplayOnAPoorMachine, WhatTheMachineFailedIsRunOnceMore) {
  acceptance::Program program(acceptance::leafcutter_command({"replay", address_, "--out", "out"}), folder_.path());
  ASSERT_TRUE(program.wait_for_output_text("; once more\n", std::chrono::seconds(20)));
  folder_.write("up", "");
  const auto replayed = program.wait(std::chrono::seconds(20));
  EXPECT_EQ(replayed.exit, 0) << replayed.err << replayed.out;
  EXPECT_THAT(replayed.out, testing::AllOf(HasSubstr("1/1"), HasSubstr("PASS"), HasSubstr("0 of 1 failed")));
}

TEST_F(ReplayOnAPoorMachine, ThatNeverGetsBetterItIsSaid) {
  const auto replayed = leafcutter({"replay", address_, "--out", "out"}, folder_.path());
  EXPECT_EQ(replayed.exit, 3) << replayed.err << replayed.out;
  EXPECT_THAT(replayed.out,
              testing::ContainsRegex("once more(.|\n)*once more(.|\n)*once more\n(.|\n)*INFRA[^;]*\n0 of 1"));
}

}  // namespace
