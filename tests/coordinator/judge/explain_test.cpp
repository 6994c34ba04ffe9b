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
