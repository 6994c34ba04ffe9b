// Which rules the kernel can carry out alone, and each thing that makes a look necessary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "scenarios/fault_kinds.hpp"
#include "scenarios/kernel_rule.hpp"

namespace leafcutter::scenarios {
namespace {

Fault always(const std::string& family, const std::string& error = "EIO") {
  Fault fault{"errno", {"shop", family, ""}, 1, {{"error", error}}, Aim{}};
  fault.aim->uncounted = true;
  return fault;
}

TEST(KernelRule, DecidesWhatActsOnNothingAndEverySocket) {
  const auto rule = kernel_rule(always("connect", "ECONNREFUSED"), Scope::leaf);
  EXPECT_THAT(rule.calls, testing::ElementsAre("connect"));
  EXPECT_EQ(rule.error, error_number("ECONNREFUSED"));
  EXPECT_EQ(rule.why_not, "");
  EXPECT_THAT(kernel_rule(always("accept"), Scope::leaf).calls, testing::ElementsAre("accept", "accept4"));
  EXPECT_THAT(kernel_rule(always("sleep"), Scope::leaf).calls, testing::ElementsAre("nanosleep", "clock_nanosleep"));
  EXPECT_THAT(kernel_rule(always("random"), Scope::leaf).calls, testing::ElementsAre("getrandom"));
}

TEST(KernelRule, DecidesFilesOnlyForAProgramAlone) {
  EXPECT_THAT(kernel_rule(always("fsync"), Scope::leaf).calls, testing::IsEmpty());
  EXPECT_THAT(kernel_rule(always("fsync"), Scope::leaf).why_not, testing::HasSubstr("which file a call of fsync"));
  EXPECT_THAT(kernel_rule(always("fsync"), Scope::program).calls,
              testing::UnorderedElementsAre("fsync", "fdatasync", "sync_file_range", "syncfs"));
  for (const auto& family : syscall_families()) {
    const auto rule = kernel_rule(always(family.name), Scope::program);
    const std::vector<std::string> alone = {"fsync", "allocate", "connect", "accept", "sleep", "random", "clock"};
    EXPECT_EQ(!rule.calls.empty(), std::ranges::find(alone, family.name) != alone.end()) << family.name;
    EXPECT_EQ(rule.calls.empty(), !rule.why_not.empty()) << family.name;
  }
}

TEST(KernelRule, OfOneCallAnswersThatCall) {
  auto fault = always("accept");
  fault.aim->call = "accept4";
  EXPECT_THAT(kernel_rule(fault, Scope::leaf).calls, testing::ElementsAre("accept4"));
  fault = always("fsync");
  fault.aim->call = "msync";
  EXPECT_THAT(kernel_rule(fault, Scope::program).calls, testing::IsEmpty());
}

TEST(KernelRule, NeedsALookForEverythingThatNarrows) {
  const std::vector<std::pair<std::string, std::function<void(Fault&)>>> narrowings = {
      {"uncounted", [](Fault& f) { f.aim->uncounted = false; }},
      {"uncounted", [](Fault& f) { f.aim.reset(); }},
      {"late", [](Fault& f) { f.params["late"] = "1s"; }},
      {"only an error", [](Fault& f) { f.kind = "delay"; }},
      {"path", [](Fault& f) { f.aim->path = "*"; }},
      {"peer", [](Fault& f) { f.aim->peer = "broker"; }},
      {"object", [](Fault& f) { f.aim->object = "socket-tcp"; }},
      {"size",
       [](Fault& f) {
         f.aim->size = Range{1, 2};
       }},
      {"offset",
       [](Fault& f) {
         f.aim->offset = Range{1, 2};
       }},
      {"flags", [](Fault& f) { f.aim->flags = {"O_CREAT"}; }},
      {"event", [](Fault& f) { f.aim->after = "ready shop"; }},
      {"probability", [](Fault& f) { f.aim->per_million = 999'999; }},
      {"#1",
       [](Fault& f) {
         f.aim->occurrences = {Occurrences::Which::nth, 1};
       }},
      {"from 2",
       [](Fault& f) {
         f.aim->occurrences = {Occurrences::Which::from, 2};
       }},
      {"first 9",
       [](Fault& f) {
         f.aim->occurrences = {Occurrences::Which::first, 9};
       }},
      {"error is not known",
       [](Fault& f) {
         f.params = {{"error", "EWRONG"}};
       }},
  };
  for (const auto& [word, narrow] : narrowings) {
    auto fault = always("connect");
    narrow(fault);
    const auto rule = kernel_rule(fault, Scope::leaf);
    EXPECT_THAT(rule.calls, testing::IsEmpty()) << word;
    EXPECT_THAT(rule.why_not, testing::HasSubstr(word));
  }
}

TEST(KernelRule, UncountedSurvivesAValueAndIsSaid) {
  const auto fault = always("connect");
  EXPECT_EQ(fault.aim->text(), "uncounted");
  EXPECT_THAT(fault.text(), testing::EndsWith("at shop connect uncounted"));
  const auto again = fault_from(to_value(fault));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, fault);
  EXPECT_TRUE(again->aim->uncounted);
  EXPECT_FALSE(to_value(Aim{}).contains("uncounted")) << "plans without it keep their digest";
  EXPECT_FALSE(aim_from({{"uncounted", 1}}));
}

}  // namespace
}  // namespace leafcutter::scenarios
