// Calls that the kernel answers, what is said of them, and what keeps a rule with the supervisor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness.hpp"
#include "node/syscalls/filter.hpp"

namespace leafcutter::node::tests {
namespace {

scenarios::Fault kernel_rule(const std::string& kind, const std::string& family, Value params, bool uncounted = true) {
  auto out = fault(kind, family, "", 1, std::move(params));
  out.aim = scenarios::Aim{};
  out.aim->uncounted = uncounted;
  return out;
}

scenarios::Fault no_randomness(bool uncounted = true) {
  return kernel_rule("errno", "random", {{"error", "EIO"}}, uncounted);
}

FilterPlan plan_of(std::vector<scenarios::Fault> faults) {
  return filter_plan({std::move(faults), {}, {}}, "shop", {"random"}, scenarios::Scope::leaf);
}

TEST(FilterPlan, PutsAnAlwaysErrorIntoTheKernel) {
  const auto plan = plan_of({no_randomness()});
  EXPECT_THAT(plan.answers, testing::ElementsAre(testing::Pair("getrandom", EIO)));
  ASSERT_EQ(plan.in_kernel.size(), 1u);
  EXPECT_EQ(plan.in_kernel[0].fault, 0u);
}

TEST(FilterPlan, LeavesItToTheSupervisorWhenAnotherFaultMeetsTheCall) {
  EXPECT_TRUE(plan_of({no_randomness(), kernel_rule("delay", "random", {{"for", "1ms"}})}).answers.empty());
  EXPECT_TRUE(plan_of({no_randomness(), no_randomness()}).answers.empty());
  auto elsewhere = kernel_rule("delay", "random", {{"for", "1ms"}});
  elsewhere.site.lane = "broker";
  EXPECT_EQ(plan_of({no_randomness(), elsewhere}).answers.size(), 1u);
  EXPECT_EQ(plan_of({no_randomness(), kernel_rule("delay", "sleep", {{"for", "1ms"}})}).answers.size(), 1u);
  EXPECT_TRUE(plan_of({no_randomness(false)}).answers.empty()) << "it is to be counted";
}

TEST(FilterPlan, OfAnotherServiceIsEmpty) {
  auto elsewhere = no_randomness();
  elsewhere.site.lane = "broker";
  const auto plan = filter_plan({{elsewhere}, {}, {}}, "shop", {}, scenarios::Scope::leaf);
  EXPECT_TRUE(plan.empty());
  EXPECT_TRUE(build_filter(plan)->empty());
}

TEST(FilterPlan, NeverAnswersACallOfTheHandover) {
  const auto filter = build_filter({.answers = {{"sendmsg", EIO}}});
  ASSERT_FALSE(filter);
  EXPECT_THAT(filter.error().message, testing::HasSubstr("sendmsg"));
}

TEST(KernelAnswer, IsTheRulesErrorAndIsNotCounted) {
  const auto outcome = run({program("steps"), "random"},
                           {.families = {"random"}, .data_folder = "/nowhere", .faults = {no_randomness()}});
  EXPECT_EQ(outcome.output, "random -1 " + std::to_string(EIO) + "\n");
  EXPECT_EQ(outcome.sites(), 0u) << "nobody saw the call";
  const auto evidence = outcome.fired()["evidence"];
  EXPECT_EQ(evidence["decided"], "in the kernel: in force from the start, not counted");
  EXPECT_EQ(evidence["calls"], Value::array({"getrandom"}));
  EXPECT_EQ(evidence["errno_name"], "EIO");
  EXPECT_EQ(outcome.undone()["how"], "the leaf and everything in it ended");
  EXPECT_FALSE(outcome.undone().contains("strikes"));
}

TEST(KernelAnswer, HasACountedTwin) {
  const auto outcome =
      run({program("steps"), "random"}, {.families = {"random"},
                                         .data_folder = "/nowhere",
                                         .faults = {fault("errno", "random", "getrandom", 1, {{"error", "EIO"}})}});
  EXPECT_GE(outcome.count("random", "getrandom"), 1u) << "the C library may draw, too";
  EXPECT_FALSE(outcome.fired()["evidence"].contains("decided"));
  EXPECT_EQ(outcome.fired()["evidence"]["call"], "getrandom");
}

TEST(KernelAnswer, LeavesOtherCallsOfTheFamilyToTheSupervisor) {
  const ScratchFolder folder;
  const auto a = folder / "a";
  const auto outcome = run({program("steps"), "write," + a + ",x", "fsync," + a},
                           {.families = {"fsync", "write"},
                            .data_folder = folder.path(),
                            .faults = {kernel_rule("errno", "fsync", {{"error", "EDQUOT"}})},
                            .scope = scenarios::Scope::program});
  EXPECT_THAT(outcome.output, testing::HasSubstr("fsync -1 " + std::to_string(EDQUOT)));
  EXPECT_EQ(outcome.count("fsync", "data:a"), 0u);
  EXPECT_EQ(outcome.count("write", "data:a"), 1u);
}

TEST(KernelAnswer, IsSaidOnceHoweverOftenTheServiceStarts) {
  std::vector<Event> events;
  Recorder recorder([] { return std::chrono::nanoseconds(0); }, [&](Event event) { events.push_back(event); });
  SiteBook book({{no_randomness()}, {}, {}}, recorder);
  record_in_kernel(plan_of({no_randomness()}), book);
  record_in_kernel(plan_of({no_randomness()}), book);
  EXPECT_EQ(events.size(), 1u);
  book.finish();
  ASSERT_EQ(events.at(1).kind, "fault.undone");
  EXPECT_FALSE(events.at(1).attrs.contains("strikes")) << "two starts are not two strikes";
}

}  // namespace
}  // namespace leafcutter::node::tests
