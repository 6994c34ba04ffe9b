#include "scenarios/event_pattern.hpp"

#include <gtest/gtest.h>

#include "scenarios/predicate.hpp"

namespace leafcutter::scenarios {
namespace {

bool seen(const std::string& pattern, const std::string& lane, const std::string& kind, const Value& attrs) {
  const auto parsed = parse_event_pattern(pattern);
  EXPECT_TRUE(parsed) << pattern << ": " << (parsed ? "" : parsed.error().message);
  if (!parsed) return false;
  auto compiled = CompiledPattern::compile(*parsed);
  protocols::Event happened;
  happened.lane = lane;
  happened.kind = kind;
  happened.attrs = attrs;
  return *compiled->matches(happened);
}

TEST(EventPattern, ValuesMeanWhatTheyMeanInAScenario) {
  const Value reply = {{"from", "shop"}, {"status", 201}, {"path", "/orders/7"}, {"json", {{"id", "order-7"}}}};
  for (const auto* pattern : {"reply", "reply from=shop", "reply status=201", "reply status=2xx",
                              "reply status=200..299", "reply path=/^.orders/", "reply path=/orders/7",
                              "reply json.id=order-7", "  reply\tfrom=\"shop\"  status=2xx "})
    EXPECT_TRUE(seen(pattern, "workload -> shop", "reply", reply)) << pattern;
  for (const auto* pattern : {"request", "reply from=broker", "reply status=503", "reply status=5xx",
                              "reply status=100..199", "reply path=/^.goods/", "reply status=\"201\"",
                              "reply json.id=\"2xx\"", "reply json.name=x", "reply lane=shop"})
    EXPECT_FALSE(seen(pattern, "workload -> shop", "reply", reply)) << pattern;
}

TEST(EventPattern, KnowsTheLaneAndTheService) {
  EXPECT_TRUE(seen("ready service=shop attempt=2", "shop", "ready", {{"attempt", 2}}));
  EXPECT_FALSE(seen("ready service=shop attempt=2", "broker", "ready", {{"attempt", 2}}));
  EXPECT_TRUE(seen("log line=\"got \\\"it\\\" \\\\o/\"", "shop", "log", {{"line", "got \"it\" \\o/"}}));
}

/// What is proposed for a glob matches what the glob was to match.
TEST(EventPattern, AGlobIsProposedAsARegularExpression) {
  Mistake mistake;
  EXPECT_FALSE(read_event_pattern("syscall path=/a/*.w(l", {}, mistake));
  EXPECT_NE(mistake.message.find(" path=/^/a/.*[.]w[(]l$/ "), std::string::npos) << mistake.message;
  EXPECT_TRUE(seen("syscall path=/^/a/.*[.]w[(]l$/", "shop", "syscall", {{"path", "/a/b.w(l"}}));
  EXPECT_FALSE(seen("syscall path=/^/a/.*[.]w[(]l$/", "shop", "syscall", {{"path", "/a/bxw(l"}}));
  EXPECT_TRUE(
      seen("syscall path=\"*\" call=io_uring_setup", "shop", "syscall", {{"path", "*"}, {"call", "io_uring_setup"}}));
}

struct Bad {
  const char* text;
  const char* message;
  std::size_t at, bytes;
};

TEST(EventPattern, MistakesNameThePlaceAndWhatWouldDo) {
  EventScope scope;
  scope.services = {"shop", "broker"};
  const Bad bad[] = {
      {"", "expected an event pattern such as \"reply from=shop status=201\", found nothing", 0, 0},
      {"replay from=shop", "unknown event \"replay\"; did you mean \"reply\"?", 0, 6},
      {"from=shop",
       "an event pattern begins with a kind of event: one of fault.fired, start, ready, exit, log, "
       "syscall, unresolved, egress.refused, connect, close, request, reply, step and settled",
       0, 9},
      {"reply statsu=201", "event \"reply\" has no attribute \"statsu\"; did you mean \"status\"?", 6, 6},
      {"reply from=shp", "there is no service \"shp\"; did you mean \"shop\"?", 11, 3},
      {"reply status", "expected attribute=value, found \"status\"", 6, 6},
      {"reply status=", "\"status\" has no value; an empty one is written \"\"", 6, 7},
      {"reply status=9..3", "nothing lies in this range: it begins above its end", 13, 4},
      {"reply path=/(/", "the regular expression /(/ does not compile: missing ): (", 11, 3},
      {"syscall path=*/a+b.wal",
       "values of events are no globs; as a regular expression this is path=/^.*/a[+]b[.]wal$/ (a \"*\" that is meant "
       "as such stands in quotes)",
       13, 9},
      {"syscall family=renam",
       "there is no family of system calls \"renam\" that can be seen; did you mean \"rename\"?", 15, 5},
      {"syscall call=ioctl", "there is no system call \"ioctl\" that can be seen", 13, 5},
      {"reply from=\"shop", "this quote is not closed", 11, 5},
      {"reply from=\"shop\"status=1", "a word goes on after its quote; a blank separates words", 17, 1},
      {"reply from=sh\"op", "a quote within a word; put the whole value in quotes", 13, 1},
      {"reply\nfrom=shop", "a control character; this is one line of text", 5, 1},
      {"sites",
       "unknown event \"sites\"; known: fault.fired, start, ready, exit, log, syscall, unresolved, egress.refused, "
       "connect, close, "
       "request, reply, step and settled",
       0, 5},
  };
  for (const auto& entry : bad) {
    Mistake mistake;
    EXPECT_FALSE(read_event_pattern(entry.text, scope, mistake)) << entry.text;
    EXPECT_EQ(mistake.message, entry.message) << entry.text;
    EXPECT_EQ(mistake.at, entry.at) << entry.text;
    EXPECT_EQ(mistake.bytes, entry.bytes) << entry.text;
  }
  scope.events = {"syscall", "exit"};
  Mistake mistake;
  EXPECT_FALSE(read_event_pattern("reply status=201", scope, mistake));
  EXPECT_EQ(mistake.message, "there is no event \"reply\" here; there is syscall and exit");
}

TEST(Words, AValueInQuotesIsReadBack) {
  for (const std::string text :
       {"plain", "two words", "a \"quote\"", "back\\slash", "\\ and \"", "", "tab\there", "="}) {
    Mistake mistake;
    const auto words = split_words("key=" + quoted_word(text), mistake);
    ASSERT_TRUE(words) << text << ": " << mistake.message;
    ASSERT_EQ(words->size(), 1u) << text;
    EXPECT_EQ(words->front().value, text);
  }
}

TEST(Words, MarksStandUnderWhatIsMeant) {
  EXPECT_EQ(marked("write=EIOO path=x", {"", 6, 4}), "  write=EIOO path=x\n        ^~~~");
  EXPECT_EQ(marked("über=x", {"", 6, 1}), "  über=x\n       ^");
  EXPECT_EQ(marked("x", {"", 1, 0}), "  x\n   ^");
  EXPECT_EQ(marked("", {"", 0, 0}), "  \n  ^");
}

}  // namespace
}  // namespace leafcutter::scenarios
