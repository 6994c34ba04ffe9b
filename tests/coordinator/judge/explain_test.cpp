#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "coordinator/finding.hpp"
#include "coordinator/judge/attributes.hpp"
#include "coordinator/judge/layout.hpp"
#include "coordinator/judge/story.hpp"
#include "tests/coordinator/judge/outbox_traces.hpp"

namespace leafcutter::coordinator {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

void expect_one_screen(const std::vector<std::string>& lines) {
  EXPECT_LE(lines.size(), 40u);
  for (const auto& line : lines) EXPECT_LE(columns(line), 100u) << line;
}

TEST(Explain, TellsTheOutboxStoryInOneScreen) {
  const auto lines = explain(outbox_scenario(), outbox_finding(), failing_outbox().events, passing_outbox().events);
  expect_one_screen(lines);
  const auto text = joined(lines);
  EXPECT_THAT(lines.front(), StartsWith("FAIL  an accepted order is announced"));
  EXPECT_THAT(text, HasSubstr("key order-2"));
  EXPECT_THAT(text, HasSubstr("Minimal plan (failed 5 of 5 runs; without faults it holds)"));
  EXPECT_THAT(text, HasSubstr("  1. crash-after at shop write data:orders.log #2"));
  EXPECT_THAT(text, HasSubstr("FAULT crash-after strikes"));
  EXPECT_THAT(text, HasSubstr("killed by signal 9 (injected)"));
  EXPECT_THAT(text, HasSubstr("starts again (start 2)"));
  EXPECT_THAT(text, HasSubstr("POST /orders  <- 201  {id: order-2}"));
  EXPECT_THAT(text, HasSubstr("Where the passing neighbour differs (without crash-after at shop"));
  EXPECT_THAT(text, HasSubstr("passes: POST /announce  {id: order-2}  -> 200"));
  EXPECT_THAT(text, HasSubstr("more events"));
  EXPECT_EQ(lines.back(), "  leafcutter replay 0a1b2c3d/1/7");
  // The start-up, the same in every leaf, is not part of the story.
  EXPECT_THAT(text, Not(HasSubstr("(start 1)")));
}

/// Everything after the heading of a part, up to the next empty line, with the line breaks taken out.
std::string part(const std::vector<std::string>& lines, const std::string& heading) {
  std::string text;
  auto line = std::find_if(lines.begin(), lines.end(), [&](const auto& one) { return one.starts_with(heading); });
  for (; line != lines.end() && !line->empty(); ++line) {
    const auto at = line->find_first_not_of(' ');
    text += (text.empty() ? "" : " ") + line->substr(at);
  }
  return text;
}

Value lost_power() {
  return {{"before_step", "the record is read back"},
          {"lost",
           {{"bytes_lost", 18},
            {"changed", {"records.log"}},
            {"files_changed", 1},
            {"text", "1 file changed (records.log), no names lost, no returned, 18 bytes lost, 1 sync failed"}}},
          {"pid", 5},
          {"signal", 9}};
}

TEST(Explain, ShowsAllThatAFaultProves) {
  TraceBuilder trace;
  trace.order("order-1");
  trace.add("shop", events::fault_fired, {{"fault", 0}, {"kind", "power-loss"}, {"evidence", lost_power()}});
  trace.order("order-2", false).settled().end();
  const auto lines = explain(outbox_scenario(), outbox_finding(), trace.events, passing_outbox().events);
  expect_one_screen(lines);
  EXPECT_THAT(part(lines, "What happened"),
              HasSubstr("FAULT power-loss strikes  {before_step: the record is read back, lost: 1 file changed "
                        "(records.log), no names lost, no returned, 18 bytes lost, 1 sync failed}"));
}

TEST(Explain, ListsThePlanInTheOrderInWhichItStruck) {
  auto finding = outbox_finding();
  finding.plan.faults = {{"power-loss", {"shop", "step", "later"}, 1, Value::object()},
                         {"short", {"shop", "write", "data:never"}, 1, {{"bytes", 1}}},
                         {"fsync-lost", {"shop", "fsync", "data:orders.log"}, 1, Value::object()}};
  TraceBuilder trace;
  trace.fired(2).order("order-2", false).fired(0).fired(7).fired(-1).settled().end();
  const auto text = part(explain(outbox_scenario(), finding, trace.events, {}), "Minimal plan");
  EXPECT_THAT(text, HasSubstr("1. fsync-lost at shop fsync data:orders.log #1 2. power-loss at shop step later #1 3. "
                              "short(bytes=1)"));
}

TEST(Explain, StaysOneScreenWhateverTheTrace) {
  auto finding = outbox_finding();
  finding.message = std::string(2000, 'x') + "\n" + std::string(500, '\xff');
  for (int i = 0; i < 30; ++i) finding.plan.faults.push_back(crash_fault());
  TraceBuilder long_one;
  for (int i = 0; i < 2000; ++i) {
    long_one.order("order-" + std::to_string(i), i % 2 == 0);
    if (i % 3 == 0)
      long_one.fired(i % 31).add("shop", events::exit, {{"attempt", i}, {"signal", 9}, {"injected", true}});
    long_one.add("a lane of a name that is much longer than any lane should be, ever", events::reply,
                 {{"path", std::string(5000, '\x80')}});
  }
  const auto lines = explain(outbox_scenario(), finding, long_one.settled().end().events, passing_outbox().events);
  expect_one_screen(lines);
  EXPECT_EQ(lines.back(), "  leafcutter replay 0a1b2c3d/1/7");
  EXPECT_NO_THROW(Value(lines).dump());  // valid UTF-8 throughout
}

TEST(Explain, WithoutTracesItStillSaysWhatAndHowToReplay) {
  const auto lines = explain(outbox_scenario(), outbox_finding(), {}, {});
  expect_one_screen(lines);
  EXPECT_THAT(joined(lines), HasSubstr("the trace of this execution is no longer kept"));
  EXPECT_THAT(joined(lines), Not(HasSubstr("Where the passing neighbour differs")));
  EXPECT_EQ(lines.back(), "  leafcutter replay 0a1b2c3d/1/7");
}

TEST(Explain, IsTheSameEveryTime) {
  EXPECT_EQ(explain(outbox_scenario(), outbox_finding(), failing_outbox().events, passing_outbox().events),
            explain(outbox_scenario(), outbox_finding(), failing_outbox().events, passing_outbox().events));
}

TEST(Relevant, EvidenceAndFaultsComeFirst) {
  const auto trace = failing_outbox().events;
  const auto violations = judge(outbox_scenario(), outbox_finding().plan, trace).violations;
  ASSERT_THAT(violations, SizeIs(1));
  const auto two = relevant(trace, violations[0], 2);
  ASSERT_THAT(two, SizeIs(2));
  std::vector<std::string> kinds;
  for (const auto i : two) kinds.push_back(trace[i].kind);
  EXPECT_THAT(kinds, Contains(events::fault_fired));
  EXPECT_THAT(kinds, Contains(events::reply));
}

TEST(Cone, FollowsTheClocks) {
  TraceBuilder trace;
  trace.add("a", events::log, {});
  trace.add("b", events::log, {}, "a");
  trace.add("a", events::log, {});
  EXPECT_TRUE(in_cone(trace.events[0], trace.events[1]));
  EXPECT_FALSE(in_cone(trace.events[2], trace.events[1]));
  EXPECT_FALSE(in_cone(trace.events[1], trace.events[2]));
  EXPECT_TRUE(in_cone(trace.events[0], trace.events[2]));
}

TEST(Divergence, EqualTracesHaveNone) {
  EXPECT_THAT(divergences(passing_outbox().events, passing_outbox().events, "order-2"), SizeIs(0));
}

TEST(Divergence, TimesPortsAndConnectionsDoNotCount) {
  TraceBuilder a, b;
  a.order("x").add("shop", events::ready, {{"attempt", 1}, {"after_ms", 4}});
  b.later(milliseconds(50)).order("x").add("shop", events::ready, {{"attempt", 1}, {"after_ms", 400}});
  for (auto& event : b.events) event.attrs["conn"] = 17;
  EXPECT_THAT(divergences(a.events, b.events, "x"), SizeIs(0));
  b.add("shop", events::exit, {{"attempt", 1}, {"status", 0}});
  const auto found = divergences(a.events, b.events, "x");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].lane, "shop");
  EXPECT_FALSE(found[0].failing);
  EXPECT_TRUE(found[0].passing);
}

TEST(Divergence, WhatServicesWroteSpeaksWhenNothingElseDoes) {
  TraceBuilder a, b;
  a.order("x").fired(0).add("shop", events::log, {{"line", "booked 424200"}});
  b.order("x").add("shop", events::log, {{"line", "booked 4200"}});
  const auto found = divergences(a.events, b.events, "x");
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_TRUE(found[0].failing && found[0].passing);
  EXPECT_EQ(one_line(a.events[*found[0].failing]), "shop  writes: booked 424200");
  EXPECT_EQ(one_line(b.events[*found[0].passing]), "shop  writes: booked 4200");

  b.order("y");  // now something else differs, and lines are as often noise
  const auto other = divergences(a.events, b.events, "x");
  ASSERT_THAT(other, Not(SizeIs(0)));
  for (const auto& one : other) EXPECT_FALSE(one.failing) << one.lane;
}

TEST(OneLine, TellsEvidenceForPeople) {
  TraceBuilder t;
  const auto fired = [&](const char* kind, Value evidence) {
    return one_line(t.add("shop", events::fault_fired, {{"kind", kind}, {"evidence", std::move(evidence)}}));
  };
  EXPECT_EQ(fired("short", {{"asked", 93}, {"call", "write"}, {"carried", 20}, {"path", "/leaf/p/p.tmp"}, {"pid", 6}}),
            "shop  FAULT short strikes  {call: write, asked: 93, carried: 20, path: /leaf/p/p.tmp}");
  EXPECT_EQ(fired("errno", {{"call", "recvfrom"},
                            {"errno", 4},
                            {"errno_name", "EINTR"},
                            {"path", "10.77.0.1:7502"},
                            {"peer", "market:orders"}}),
            "shop  FAULT errno strikes  {call: recvfrom, errno: EINTR, peer: market:orders}");
  EXPECT_EQ(fired("errno", {{"call", "read"}, {"errno", 5}}), "shop  FAULT errno strikes  {call: read, errno: 5}");
  EXPECT_EQ(fired("crash-before", {{"before", true}, {"call", "connect"}, {"peer", "broker:http"}}),
            "shop  FAULT crash-before strikes  {call: connect, peer: broker:http}");
  EXPECT_EQ(fired("crash", {{"pid", 6}, {"signal", 9}}), "shop  FAULT crash strikes");
  EXPECT_EQ(fired("odd", "text"), "shop  FAULT odd strikes  text");
}

TEST(OneLine, SpeaksForEveryKind) {
  TraceBuilder t;
  EXPECT_EQ(one_line(t.announce("order-1").events.back()), "shop -> broker  POST /announce  {id: order-1}  -> 200");
  t.add("shop -> broker", events::request,
        {{"method", "POST"},
         {"path", "/announce"},
         {"query", "q=1"},
         {"body", "hi"},
         {"outcome", "lost"},
         {"reply", {{"status", 200}, {"delivered", false}}}});
  EXPECT_EQ(one_line(t.events.back()), "shop -> broker  POST /announce?q=1  \"hi\"  -> 200 (reply lost), lost");
  EXPECT_EQ(one_line(t.add("shop", events::exit, {{"attempt", 1}, {"status", 3}})), "shop  exits with status 3");
  EXPECT_EQ(one_line(t.add("shop", events::exit, {{"signal", 9}, {"injected", true}})),
            "shop  killed by signal 9 (injected)");
  EXPECT_EQ(one_line(t.add("shop", events::start, {{"attempt", 2}})), "shop  starts again (start 2)");
  EXPECT_EQ(one_line(t.add("shop", events::log, {{"line", "a\tb\x01"}})), "shop  writes: a b");
  EXPECT_EQ(one_line(t.add("shop", events::syscall,
                           {{"call", "write"}, {"resource", "data:x"}, {"n", 2}, {"injected", {{"errno", "EIO"}}}})),
            "shop  write data:x #2  (injected: {errno: EIO})");
  EXPECT_EQ(one_line(t.add("a -> b", events::connect, {{"accepted", false}})), "a -> b  connect refused");
  EXPECT_EQ(one_line(t.add("workload", events::settled, {{"ok", false}, {"busy", {"x"}}})),
            "workload  did not settle; still busy: [x]");
  EXPECT_EQ(
      one_line(t.add("workload", events::check, {{"property", "p"}, {"ok", false}, {"exit", 1}, {"stdout", "gone\n"}})),
      "workload  check \"p\" FAILS, exit status 1: gone");
  for (const auto& kind : scenarios::event_kinds())
    for (const auto& attrs : {Value(nullptr), Value::object(),
                              Value{{"json", 1}, {"reply", 2}, {"busy", 3}, {"site", 4}, {"evidence", 5}}}) {
      const auto line = one_line(t.add("lane", kind.name, attrs));
      EXPECT_THAT(line, StartsWith("lane  "));
      EXPECT_GT(line.size(), 6u) << kind.name;
    }
}

TEST(Layout, CountsColumnsNotBytes) {
  EXPECT_EQ(columns("naïve"), 5u);
  EXPECT_EQ(fit("naïve", 5), "naïve");
  EXPECT_EQ(fit("naïves", 4), "naï…");
  EXPECT_EQ(columns(pad("é", 4)), 4u);
  EXPECT_THAT(wrap("one two three four", 9, 2), ElementsAre("one two", "three fo…"));
  EXPECT_THAT(wrap("abcdefghijkl", 5, 9), ElementsAre("abcd", "efgh", "ijkl"));
  EXPECT_EQ(moment(std::chrono::microseconds(12345)), "+12.3ms");
  EXPECT_EQ(moment(std::chrono::milliseconds(3214)), "+3.214s");
  EXPECT_EQ(valid_text("a\xff\xc3\xa9\xe2\x82"), "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(one_line_text("ééé", 4), "éé…");
}

TEST(FindingJson, RoundTrips) {
  const auto finding = outbox_finding();
  const auto read = finding_from(Value::parse(to_value(finding).dump()));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(to_value(*read), to_value(finding));
  EXPECT_EQ(read->plan, finding.plan);
  EXPECT_EQ(read->leaf, finding.leaf);
}

TEST(FindingJson, EveryMissingOrWrongFieldIsNamed) {
  const auto good = to_value(outbox_finding());
  for (const auto& [name, field] : good.items()) {
    auto missing = good;
    missing.erase(name);
    EXPECT_FALSE(finding_from(missing).ok()) << name;
    auto wrong = good;
    wrong[name] = 1.5;
    const auto read = finding_from(wrong);
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_THAT(read.error().message, HasSubstr(name));
  }
  EXPECT_FALSE(finding_from(Value(3)).ok());
}

}  // namespace
}  // namespace leafcutter::coordinator
