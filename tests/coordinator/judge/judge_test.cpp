#include "coordinator/judge/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/judge/trace_builder.hpp"

namespace leafcutter::coordinator {
namespace {

using namespace testing;
using scenarios::Reason;
using scenarios::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Judgement judge_one(Property property, const TraceBuilder& trace, scenarios::Plan plan = {}) {
  return judge(scenario_with({std::move(property)}), plan, trace.events);
}

void expect(const Judgement& judgement, Verdict verdict, Reason reason) {
  EXPECT_EQ(scenarios::name(judgement.verdict), scenarios::name(verdict)) << judgement.detail;
  EXPECT_EQ(scenarios::name(judgement.reason), scenarios::name(reason)) << judgement.detail;
  EXPECT_EQ(judgement.detail.empty(), reason == Reason::held);
}

// --- eventually ---

TEST(Eventually, HoldsWhenTheAnnouncementPrecedesTheReply) {
  expect(judge_one(order_is_announced(), TraceBuilder().order("order-1").order("order-2").settled().end()),
         Verdict::pass, Reason::held);
}

TEST(Eventually, HoldsWhenItComesLater) {
  expect(judge_one(order_is_announced(), TraceBuilder().order("order-1", false).announce("order-1").settled().end()),
         Verdict::pass, Reason::held);
}

TEST(Eventually, UnmetInASettledLeafIsAViolationOfItsKeyAlone) {
  const auto trace = TraceBuilder().order("order-1").order("order-2", false).settled().end();
  const auto judgement = judge_one(order_is_announced(), trace);
  expect(judgement, Verdict::fail, Reason::property_violated);
  ASSERT_THAT(judgement.violations, SizeIs(1));
  EXPECT_EQ(judgement.violations[0].property, "an accepted order is announced");
  EXPECT_EQ(judgement.violations[0].key, "order-2");
  EXPECT_THAT(judgement.violations[0].message, HasSubstr("never came, and nothing moves any more"));
  EXPECT_THAT(judgement.violations[0].events, ElementsAre(EventRef{"workload -> shop", 2}));
}

TEST(Eventually, AnAnnouncementThatWasRefusedDoesNotCount) {
  expect(
      judge_one(order_is_announced(), TraceBuilder().order("order-1", false).announce("order-1", 500).settled().end()),
      Verdict::fail, Reason::property_violated);
}

TEST(Eventually, AnotherKeyDoesNotCount) {
  expect(judge_one(order_is_announced(), TraceBuilder().order("order-1", false).announce("order-2").settled().end()),
         Verdict::fail, Reason::property_violated);
}

TEST(Eventually, TooLateDoesNotCount) {
  TraceBuilder trace;
  trace.order("order-1", false).later(milliseconds(5001)).announce("order-1").settled().end();
  const auto judgement = judge_one(order_is_announced(), trace);
  expect(judgement, Verdict::fail, Reason::property_violated);
  EXPECT_THAT(judgement.violations.at(0).message, HasSubstr("came only after the 5s"));
  EXPECT_THAT(judgement.violations.at(0).events, SizeIs(2));
}

TEST(Eventually, TheTimeRunsFromTheLastRestart) {
  TraceBuilder trace;
  trace.order("order-1", false);
  trace.add("shop", events::exit, {{"attempt", 1}, {"signal", 9}, {"injected", true}});
  trace.later(milliseconds(4000)).add("shop", events::ready, {{"attempt", 2}, {"after_ms", 3000}});
  trace.later(milliseconds(4000)).announce("order-1").settled().end();
  expect(judge_one(order_is_announced(), trace), Verdict::pass, Reason::held);
}

TEST(Eventually, UnmetWhenTimedOutIsInconclusive) {
  const auto judgement = judge_one(order_is_announced(), TraceBuilder().order("order-1", false).end("timeout"));
  expect(judgement, Verdict::inconclusive, Reason::timed_out);
  EXPECT_THAT(judgement.open, SizeIs(1));
  EXPECT_THAT(judgement.detail, HasSubstr("order-1"));
}

TEST(Eventually, UnmetWhenNotSettledIsInconclusive) {
  const auto trace =
      TraceBuilder().order("order-1", false).settled(false, {"request shop -> broker POST /announce"}).end();
  const auto judgement = judge_one(order_is_announced(), trace);
  expect(judgement, Verdict::inconclusive, Reason::not_settled);
  EXPECT_THAT(judgement.detail, HasSubstr("still busy: request shop -> broker POST /announce"));
}

TEST(Eventually, MetWhenNotSettledHolds) {
  expect(judge_one(order_is_announced(), TraceBuilder().order("order-1").settled(false, {"x"}).end()), Verdict::pass,
         Reason::held);
}

TEST(Eventually, UnmetWithoutAnySettleIsInconclusive) {
  const auto judgement = judge_one(order_is_announced(), TraceBuilder().order("order-1", false).end());
  expect(judgement, Verdict::inconclusive, Reason::not_settled);
  EXPECT_THAT(judgement.detail, HasSubstr("no settle step"));
}

TEST(Eventually, AWindowThatWasSeenToCloseIsDecidedEvenUnsettled) {
  TraceBuilder trace;
  trace.order("order-1", false).later(milliseconds(6000)).settled(false, {"x"}).end();
  const auto judgement = judge_one(order_is_announced(), trace);
  expect(judgement, Verdict::fail, Reason::property_violated);
  EXPECT_THAT(judgement.violations.at(0).message, HasSubstr("did not come within 5s"));
}

TEST(Eventually, AWindowDoesNotCloseWhileAServiceIsDown) {
  TraceBuilder trace;
  trace.order("order-1", false);
  trace.add("shop", events::exit, {{"attempt", 1}, {"signal", 9}, {"injected", true}});
  trace.later(milliseconds(6000)).settled(false, {"restart shop"}).end();
  expect(judge_one(order_is_announced(), trace), Verdict::inconclusive, Reason::not_settled);
}

TEST(Eventually, WithoutForEachOneMatchIsEnough) {
  const auto wanted = property("something is announced", Property::Kind::eventually, announcement());
  expect(judge_one(wanted, TraceBuilder().announce("a").settled().end()), Verdict::pass, Reason::held);
  expect(judge_one(wanted, TraceBuilder().settled().end()), Verdict::fail, Reason::property_violated);
}

TEST(Eventually, WithoutAntecedentIsVacuous) {
  const auto judgement = judge_one(order_is_announced(), TraceBuilder().order("order-1", false, 503).settled().end());
  expect(judgement, Verdict::pass, Reason::held);
  EXPECT_THAT(judgement.vacuous, ElementsAre("an accepted order is announced"));
}

TEST(Eventually, AnAntecedentWithoutItsKeyIsNotPassedOver) {
  TraceBuilder trace;
  trace.add("workload -> shop", events::reply, {{"from", "shop"}, {"status", 201}, {"body", "created"}});
  const auto judgement = judge_one(order_is_announced(), trace.settled().end());
  expect(judgement, Verdict::inconclusive, Reason::check_unavailable);
  EXPECT_THAT(judgement.detail, HasSubstr("has no json.id"));
}

// --- never, always, count ---

TEST(Never, AnyMatchIsAViolation) {
  auto never = property("nothing fails", Property::Kind::never,
                        Pattern{events::reply, {status_class({"status"}, 5)}, {}, "", "reply, status: 5xx"});
  expect(judge_one(never, TraceBuilder().order("a").settled().end()), Verdict::pass, Reason::held);
  const auto judgement = judge_one(never, TraceBuilder().order("a").order("b", true, 503).settled().end());
  expect(judgement, Verdict::fail, Reason::property_violated);
  EXPECT_THAT(judgement.violations.at(0).events, ElementsAre(EventRef{"workload -> shop", 2}));
}

TEST(Never, ViolationsAreBoundedInNumber) {
  auto never = property("nothing fails", Property::Kind::never, Pattern{events::reply, {}, {}, "", "reply"});
  TraceBuilder trace;
  for (int i = 0; i < 100; ++i) trace.order(std::to_string(i));
  EXPECT_THAT(judge_one(never, trace.settled().end()).violations, SizeIs(16));
}

TEST(Never, WithForEachOnlyItsKeysCount) {
  auto never = property("a refused order is not announced", Property::Kind::never, announcement());
  never.for_each = Pattern{events::reply, {equals({"status"}, 503)}, {"json", "id"}, "", "reply, status: 503"};
  expect(judge_one(never, TraceBuilder().order("a").order("b", false, 503).settled().end()), Verdict::pass,
         Reason::held);
  const auto judgement = judge_one(never, TraceBuilder().order("a").order("b", true, 503).settled().end());
  expect(judgement, Verdict::fail, Reason::property_violated);
  EXPECT_EQ(judgement.violations.at(0).key, "b");
}

TEST(Never, TimedOutIsNeverAPass) {
  auto never = property("nothing fails", Property::Kind::never,
                        Pattern{events::reply, {status_class({"status"}, 5)}, {}, "", "reply, status: 5xx"});
  expect(judge_one(never, TraceBuilder().order("a").end("timeout")), Verdict::inconclusive, Reason::timed_out);
  expect(judge_one(never, TraceBuilder().order("a", true, 500).end("timeout")), Verdict::fail,
         Reason::property_violated);
}

TEST(Always, EveryMatchMustSatisfyHolds) {
  auto always = property("replies carry an id", Property::Kind::always, Pattern{events::reply, {}, {}, "", "reply"});
  Matcher exists;
  exists.test = Matcher::Test::exists;
  exists.path = {"json", "id"};
  exists.value = true;
  always.holds = {exists};
  expect(judge_one(always, TraceBuilder().order("a").settled().end()), Verdict::pass, Reason::held);
  TraceBuilder trace;
  trace.order("a").add("workload -> shop", events::reply, {{"from", "shop"}, {"status", 201}, {"body", "created"}});
  const auto judgement = judge_one(always, trace.settled().end());
  expect(judgement, Verdict::fail, Reason::property_violated);
  EXPECT_THAT(judgement.violations.at(0).message, HasSubstr("json.id exists"));
  EXPECT_THAT(judge_one(always, TraceBuilder().settled().end()).vacuous, SizeIs(1));
}

TEST(Always, LuaDecidesToo) {
  auto always = property("status is 201 or 503", Property::Kind::always, Pattern{events::reply, {}, {}, "", "reply"});
  always.holds_lua = "status == 201 or status == 503";
  expect(judge_one(always, TraceBuilder().order("a", true, 503).settled().end()), Verdict::pass, Reason::held);
  expect(judge_one(always, TraceBuilder().order("a", true, 500).settled().end()), Verdict::fail,
         Reason::property_violated);
}

TEST(Always, ALuaErrorIsInconclusiveWithItsMessage) {
  auto always = property("nonsense", Property::Kind::always, Pattern{events::reply, {}, {}, "", "reply"});
  always.holds_lua = "nowhere.at.all == 1";
  const auto judgement = judge_one(always, TraceBuilder().order("a").settled().end());
  expect(judgement, Verdict::inconclusive, Reason::check_unavailable);
  EXPECT_THAT(judgement.detail, HasSubstr("nowhere"));
}

TEST(Count, AtMostForEachKey) {
  auto count = property("at most once", Property::Kind::count, announcement());
  count.at_most = 1;
  expect(judge_one(count, TraceBuilder().announce("a").announce("b").settled().end()), Verdict::pass, Reason::held);
  const auto judgement = judge_one(count, TraceBuilder().announce("a").announce("b").announce("a").settled().end());
  expect(judgement, Verdict::fail, Reason::property_violated);
  EXPECT_EQ(judgement.violations.at(0).key, "a");
  EXPECT_THAT(judgement.violations.at(0).events,
              ElementsAre(EventRef{"shop -> broker", 3}, EventRef{"shop -> broker", 1}));
  // A surplus stays one however the leaf ends.
  expect(judge_one(count, TraceBuilder().announce("a").announce("a").end("infra", 0, "runner-failed", "proxy lost")),
         Verdict::fail, Reason::property_violated);
}

TEST(Count, AtLeastIsJudgedAtTheEndForEveryAntecedent) {
  auto count = property("twice", Property::Kind::count, announcement());
  count.at_least = 2;
  count.for_each = accepted_order();
  expect(judge_one(count, TraceBuilder().order("a").announce("a").settled().end()), Verdict::pass, Reason::held);
  expect(judge_one(count, TraceBuilder().order("a").settled().end()), Verdict::fail, Reason::property_violated);
  expect(judge_one(count, TraceBuilder().order("a", false).settled().end()), Verdict::fail, Reason::property_violated);
  expect(judge_one(count, TraceBuilder().order("a").end("timeout")), Verdict::inconclusive, Reason::timed_out);
  expect(judge_one(count, TraceBuilder().order("a").settled(false).end()), Verdict::inconclusive, Reason::not_settled);
}

TEST(Count, WithoutAKeyItIsOneTally) {
  auto pattern = announcement();
  pattern.key.clear();
  auto count = property("two", Property::Kind::count, pattern);
  count.at_least = count.at_most = 2;
  expect(judge_one(count, TraceBuilder().announce("a").announce("b").settled().end()), Verdict::pass, Reason::held);
  expect(judge_one(count, TraceBuilder().announce("a").settled().end()), Verdict::fail, Reason::property_violated);
  expect(judge_one(count, TraceBuilder().settled().end()), Verdict::fail, Reason::property_violated);
  expect(judge_one(count, TraceBuilder().announce("a").announce("a").announce("c").settled().end()), Verdict::fail,
         Reason::property_violated);
}

// --- check, expectations ---

TEST(Check, SpeaksThroughItsEvent) {
  const auto check = property("stored", Property::Kind::check);
  const auto with = [&](Value attrs) {
    TraceBuilder trace;
    attrs["property"] = "stored";
    trace.settled().add("workload", events::check, std::move(attrs));
    return judge_one(check, trace.end());
  };
  expect(with({{"ok", true}, {"exit", 0}}), Verdict::pass, Reason::held);
  const auto failed = with({{"ok", false}, {"exit", 1}, {"stdout", "order-3 is missing\n"}});
  expect(failed, Verdict::fail, Reason::property_violated);
  EXPECT_EQ(failed.violations.at(0).message, "the check ended with exit status 1 (0 expected): order-3 is missing");
  expect(with({{"ok", false}, {"status", 500}}), Verdict::fail, Reason::property_violated);
  expect(with({{"ok", false}, {"detail", "no such program"}}), Verdict::inconclusive, Reason::check_unavailable);
  expect(judge_one(check, TraceBuilder().settled().end()), Verdict::inconclusive, Reason::check_unavailable);
  expect(judge_one(check, TraceBuilder().end("timeout")), Verdict::inconclusive, Reason::timed_out);
}

TEST(Expectations, ABrokenOneFailsUnlessAPropertyNamesTheFailure) {
  TraceBuilder trace;
  trace.add("workload", events::step,
            {{"label", "get shop/orders"},
             {"outcome", "replied"},
             {"status", 404},
             {"expected", false},
             {"detail", "status: 200 expected"}});
  const auto alone = judge_one(order_is_announced(), TraceBuilder(trace).settled().end());
  expect(alone, Verdict::fail, Reason::expectation_broken);
  EXPECT_EQ(alone.violations.at(0).property, "expectations");
  EXPECT_THAT(alone.violations.at(0).message, HasSubstr("\"get shop/orders\" was answered with status 404"));

  const auto both = judge_one(order_is_announced(), trace.order("a", false).settled().end());
  expect(both, Verdict::fail, Reason::property_violated);
  EXPECT_THAT(both.violations, SizeIs(2));
}

// --- the leaf's end, faults ---

TEST(LeafEnd, InfraKeepsItsReason) {
  expect(judge_one(order_is_announced(), TraceBuilder().end("infra", 0, "not-ready", "broker")), Verdict::infra,
         Reason::not_ready);
  expect(judge_one(order_is_announced(), TraceBuilder().end("infra")), Verdict::infra, Reason::runner_failed);
  // A reason that is not an infrastructure reason is not believed.
  expect(judge_one(order_is_announced(), TraceBuilder().end("infra", 0, "held")), Verdict::infra,
         Reason::runner_failed);
  expect(judge_one(order_is_announced(), TraceBuilder().end("nonsense")), Verdict::infra, Reason::runner_failed);
}

TEST(LeafEnd, AMissingEndIsInfraEvenWhereAnObligationIsUnmet) {
  expect(judge_one(order_is_announced(), TraceBuilder().order("a", false).settled()), Verdict::infra,
         Reason::runner_failed);
  expect(judge_one(order_is_announced(), TraceBuilder()), Verdict::infra, Reason::runner_failed);
}

TEST(LeafEnd, DroppedEventsProveNoAbsence) {
  expect(judge_one(order_is_announced(), TraceBuilder().order("a", false).settled().end("completed", 3)),
         Verdict::infra, Reason::events_dropped);
  expect(judge_one(order_is_announced(), TraceBuilder().order("a").settled().end("completed", 3)), Verdict::infra,
         Reason::events_dropped);
  auto never = property("nothing fails", Property::Kind::never,
                        Pattern{events::reply, {status_class({"status"}, 5)}, {}, "", "x"});
  expect(judge_one(never, TraceBuilder().order("a", true, 500).settled().end("completed", 3)), Verdict::fail,
         Reason::property_violated);
}

TEST(LeafEnd, ATimeoutWithEverythingMetIsStillNoPass) {
  expect(judge_one(order_is_announced(), TraceBuilder().order("a").end("timeout")), Verdict::inconclusive,
         Reason::timed_out);
  expect(judge(scenario_with({}), {}, TraceBuilder().end("timeout").events), Verdict::inconclusive, Reason::timed_out);
}

TEST(Faults, AnUnfiredOneMakesThePassVacuous) {
  const scenarios::Plan plan{{crash_fault(), crash_fault()}, {}, ""};
  const auto judgement = judge_one(order_is_announced(), TraceBuilder().fired(1).order("a").settled().end(), plan);
  expect(judgement, Verdict::pass, Reason::vacuous);
  EXPECT_THAT(judgement.fired, ElementsAre(false, true));
  EXPECT_THAT(judgement.detail, HasSubstr("shop"));
  const auto both = judge_one(order_is_announced(), TraceBuilder().fired(0).fired(1).order("a").settled().end(), plan);
  expect(both, Verdict::pass, Reason::held);
  // An index that the plan does not have is no fault of ours.
  EXPECT_THAT(judge_one(order_is_announced(), TraceBuilder().fired(7).fired(-1).settled().end(), plan).fired,
              ElementsAre(false, false));
}

TEST(Judge, IsFreshForEveryTrace) {
  const auto scenario = scenario_with({order_is_announced()});
  const auto bad = TraceBuilder().order("a", false).settled().end(), good = TraceBuilder().order("a").settled().end();
  for (int i = 0; i < 2; ++i) {
    expect(judge(scenario, {}, bad.events), Verdict::fail, Reason::property_violated);
    expect(judge(scenario, {}, good.events), Verdict::pass, Reason::held);
  }
}

TEST(Judge, SurvivesAttributesOfAnyShape) {
  TraceBuilder trace;
  for (const auto* kind : {events::reply, events::request, events::step, events::settled, events::check,
                           events::fault_fired, events::sites})
    for (const auto& attrs :
         {Value(nullptr), Value("text"), Value::array({1, 2}), Value{{"json", 3}, {"status", "x"}, {"sites", {{1}}}}})
      trace.add("workload", kind, attrs);
  EXPECT_EQ(judge_one(order_is_announced(), trace.settled().end()).verdict, Verdict::pass);
  EXPECT_THAT(sites_of(trace.events), IsEmpty());
}

TEST(Sites, AreSorted) {
  TraceBuilder trace;
  trace.add("leaf", events::sites,
            {{"sites", {{"shop", "write", "data:orders.log", 5}, {"broker", "connect", "tcp", 2}}}});
  const auto sites = sites_of(trace.events);
  ASSERT_THAT(sites, SizeIs(2));
  EXPECT_EQ(sites[0], (scenarios::SiteCount{{"broker", "connect", "tcp"}, 2}));
  EXPECT_EQ(sites[1].count, 5u);
}

}  // namespace
}  // namespace leafcutter::coordinator
