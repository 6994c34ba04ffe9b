#include "scenarios/rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "bad_rules.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::scenarios {
namespace {

RuleScope program() {
  RuleScope scope;
  scope.lane = "program";
  scope.kernel = Scope::program;
  scope.events.events = events_of_a_program();
  return scope;
}

RuleScope scenario() {
  RuleScope scope;
  scope.lane = "shop";
  scope.services = {"shop", "broker"};
  scope.events.services = {"shop", "broker", "workload"};
  return scope;
}

Fault good(const std::string& text, const RuleScope& scope = scenario()) {
  Mistake mistake;
  const auto fault = read_rule(text, scope, mistake);
  EXPECT_TRUE(fault) << mistake.message << "\n" << marked(text, mistake);
  return fault.value_or(Fault{});
}

struct Same {
  const char* written;
  const char* canonical;
};

TEST(Rule, IsWrittenInOneWay) {
  const Same rules[] = {
      {"fsync=EIO", "fsync=EIO"},
      {"fsync=5", "fsync=EIO"},
      {"fsync=4000", "fsync=4000"},
      {"fsync=EIO path=*.wal #2", "fsync=EIO path=*.wal #2"},
      {"fsync=EIO #2 path=*.wal", "fsync=EIO path=*.wal #2"},
      {"fsync=EIO from 1", "fsync=EIO"},
      {"write=short:100 path=/var/db/*.tmp first 3", "write=short:100 path=/var/db/*.tmp first 3"},
      {"pwrite64=EIO every 5", "write=EIO call=pwrite64 every 5"},
      {"write=EIO call=write", "write=EIO call=write"},
      {"writev=short:4k object=socket-tcp", "send=short:4096 call=writev object=socket-tcp"},
      {"writev=EIO object=file", "write=EIO call=writev object=file"},
      {"writev=EIO path=a", "write=EIO call=writev path=a"},
      {"readv=EIO peer=broker", "receive=EIO call=readv peer=broker"},
      {"sendfile=EIO object=pipe", "write=EIO call=sendfile object=pipe"},
      {"copy_file_range=EIO", "write=EIO call=copy_file_range"},
      {"read=EIO call=copy_file_range", "read=EIO call=copy_file_range"},
      {"splice=EIO path=a", "write=EIO call=splice path=a"},
      {"splice=EIO peer=broker", "send=EIO call=splice peer=broker"},
      {"receive=EIO call=splice", "receive=EIO call=splice"},
      {"connect=ETIMEDOUT:2000ms peer=broker:http", "connect=ETIMEDOUT:2s peer=broker:http"},
      {"read=delay:10ms size=1..100 offset=4k..", "read=delay:10ms size=1..100 offset=4096.."},
      {"read=EIO size=100", "read=EIO size=100"},
      {"write=torn:10", "write=torn:10"},
      {"write=crash #4", "write=crash-before #4"},
      {"rename=power-loss", "rename=power-loss-before"},
      {"rename=crash-after from 2", "rename=crash-after from 2"},
      {"write=no-space:1M", "write=no-space:1048576"},
      {"write=no-space:0,EDQUOT", "write=no-space:0,EDQUOT"},
      {"read=corrupt:17,3", "read=corrupt:17,3"},
      {"send=slow:1G", "send=slow:1073741824"},
      {"fsync=fsync-lost", "fsync=fsync-lost"},
      {"fdatasync=fsync-lie", "fsync=fsync-lie call=fdatasync"},
      {"nanosleep=skip", "sleep=skip call=nanosleep"},
      {"write=pause-at:1s", "write=pause-at:1s"},
      {"open=EMFILE flags=O_CREAT|O_TRUNC", "open=EMFILE flags=O_CREAT|O_TRUNC"},
      {"send=EPIPE flags=MSG_MORE object=socket-unix", "send=EPIPE object=socket-unix flags=MSG_MORE"},
      {"fsync=EIO probability=25%", "fsync=EIO probability=0.25"},
      {"fsync=EIO probability=.000001", "fsync=EIO probability=0.000001"},
      {"fsync=EIO probability=12.50%", "fsync=EIO probability=0.125"},
      {"fsync=EIO probability=1.0", "fsync=EIO"},
      {"fsync=EIO after=\"reply from=shop status=2xx\"", "fsync=EIO after=\"reply from=shop status=2xx\""},
      {"fsync=EIO after=exit", "fsync=EIO after=exit"},
      {"fsync=EIO after=\"log line=\\\"a \\\\b\\\"\"", "fsync=EIO after=\"log line=\\\"a \\\\b\\\"\""},
      {"write=hold:5s until=\"ready service=broker\"", "write=hold:5s until=\"ready service=broker\""},
      {"write=EIO path=\"a file\"", "write=EIO path=\"a file\""},
      {"getrandom=EAGAIN size=..256", "random=EAGAIN call=getrandom size=..256"},
      {"accept=EMFILE", "accept=EMFILE"},
      {"connect=ENETUNREACH uncounted", "connect=ENETUNREACH uncounted"},
      {"getrandom=ENOSYS uncounted from 1", "random=ENOSYS call=getrandom uncounted"},
      {"  fsync=EIO\t ", "fsync=EIO"},
      {"crash after=exit", "crash after=exit"},
      {"crash service=broker after=\"reply from=shop status=2xx\"", "crash after=\"reply from=shop status=2xx\""},
      {"power-loss after=\"syscall family=rename\"", "power-loss after=\"syscall family=rename\""},
      {"pause:2000ms after=\"ready service=broker\"", "pause:2s after=\"ready service=broker\""},
      {"restart-storm:3 after=ready", "restart-storm:3 after=ready"},
  };
  for (const auto& rule : rules) {
    const auto fault = good(rule.written);
    EXPECT_EQ(rule_text(fault), rule.canonical) << rule.written;
    auto again = good(rule.canonical);
    again.site.lane = fault.site.lane;  // which rule_text() leaves out
    EXPECT_EQ(again, fault) << rule.written;
    const auto kept = fault_from(to_value(fault));
    ASSERT_TRUE(kept) << rule.written;
    EXPECT_EQ(*kept, fault) << rule.written;
    const auto* kind = fault_kind(fault.kind);
    ASSERT_NE(kind, nullptr) << rule.written;
    EXPECT_TRUE(check_params(*kind, fault.params)) << rule.written;
  }
}

TEST(Rule, SaysWhereAndWhatAndWhich) {
  const auto fault = good(
      "writev=short:100 service=broker object=socket-tcp peer=shop size=200.. flags=MSG_MORE "
      "probability=0.5 after=\"ready service=shop\" every 2");
  EXPECT_EQ(fault.site, (Site{"broker", "send", ""}));
  EXPECT_EQ(fault.kind, "short");
  EXPECT_EQ(fault.params, (Value{{"bytes", 100}}));
  EXPECT_EQ(fault.occurrence, 1u);
  ASSERT_TRUE(fault.aim);
  EXPECT_EQ(fault.aim->call, "writev");
  EXPECT_EQ(fault.aim->object, "socket-tcp");
  EXPECT_EQ(fault.aim->peer, "shop");
  EXPECT_EQ(fault.aim->size, (Range{200, std::nullopt}));
  EXPECT_EQ(fault.aim->flags, std::vector<std::string>{"MSG_MORE"});
  EXPECT_EQ(fault.aim->per_million, 500'000u);
  EXPECT_EQ(fault.aim->after, "ready service=shop");
  EXPECT_EQ(fault.aim->occurrences, (Occurrences{Occurrences::Which::every, 2}));
  EXPECT_EQ(fault.aim->seed, 0u);
  EXPECT_EQ(good("fsync=EIO").aim->occurrences, (Occurrences{Occurrences::Which::from, 1}));
  EXPECT_EQ(good("connect=EIO:2s").params, (Value{{"error", "EIO"}, {"late", "2s"}}));
}

TEST(Rule, KnowsWhatMustBeSeen) {
  EXPECT_EQ(families_of(good("fsync=EIO")), std::vector<std::string>{"fsync"});
  EXPECT_EQ(families_of(good("fsync=fsync-lie")), (std::vector<std::string>{"fsync", "write"}));
  EXPECT_EQ(event_patterns_of(good("write=hold:1s until=exit after=\"start attempt=1\"")),
            (std::vector<std::string>{"start attempt=1", "exit"}));
  EXPECT_TRUE(event_patterns_of(good("fsync=EIO")).empty());
  EXPECT_EQ(families_awaited(good("fsync=EIO after=\"syscall family=rename\"")), std::vector<std::string>{"rename"});
  EXPECT_EQ(families_awaited(good("write=hold:1s until=\"syscall call=writev\"")),
            (std::vector<std::string>{"write", "send"}));
  EXPECT_TRUE(families_awaited(good("fsync=EIO after=exit")).empty());
}

TEST(Rule, MistakesMarkThePlaceAndNameWhatWouldDo) {
  for (const auto& entry : bad_rules()) {
    Mistake mistake;
    EXPECT_FALSE(read_rule(entry.rule, program(), mistake)) << entry.rule;
    EXPECT_EQ(mistake.message, entry.message) << entry.rule;
    EXPECT_EQ(marked(entry.rule, mistake), "  " + std::string(entry.rule) + "\n  " + entry.marks) << mistake.message;
  }
}

TEST(Rule, ScopeDecidesWhatMayBeSaid) {
  Mistake mistake;
  EXPECT_FALSE(read_rule("fsync=EIO service=shp", scenario(), mistake));
  EXPECT_EQ(mistake.message, "the rule's \"on\" has no service \"shp\"; did you mean \"shop\"?");
  EXPECT_FALSE(read_rule("fsync=EIO after=\"reply from=shp\"", scenario(), mistake));
  EXPECT_EQ(mistake.message, "\"after\": there is no service \"shp\"; did you mean \"shop\"?");
  EXPECT_EQ(marked("fsync=EIO after=\"reply from=shp\"", mistake),
            "  fsync=EIO after=\"reply from=shp\"\n                              ^~~");
  auto scope = program();
  scope.without_image = "needs a data folder; say which with --data DIR";
  EXPECT_FALSE(read_rule("fsync=fsync-lie", scope, mistake));
  EXPECT_EQ(mistake.message, "\"fsync-lie\" needs a data folder; say which with --data DIR");
  EXPECT_FALSE(read_rule("write=power-loss", scope, mistake));
  EXPECT_TRUE(read_rule("write=crash", scope, mistake));
  EXPECT_FALSE(read_rule("fsync=EIO " + std::string(5000, 'x'), scope, mistake));
  EXPECT_EQ(mistake.message, "a rule has at most 4096 bytes");
}

TEST(Rule, OfAWholeServiceNeedsAnEventAndTakesNothingElse) {
  const BadRule rules[] = {
      {"crash", "^~~~~",
       "\"crash\" needs the event that it strikes after, such as after=\"ready service=shop\"; before steps of the "
       "workload it stands under \"process\""},
      {"crash after=exit #2", "                 ^~",
       "\"crash\" strikes a whole service, once: it takes after= and service=; found \"#2\""},
      {"crash after=exit path=a", "                 ^~~~~~",
       "\"crash\" strikes a whole service, once: it takes after= and service=; found \"path\""},
      {"crash after=exit after=exit", "                 ^~~~~~~~~~", "\"after\" is given twice"},
      {"crash:1s after=exit", "      ^~", "\"crash\" takes no argument; found \"1s\" beyond"},
      {"pause after=exit", "^~~~~", "\"pause\" needs an argument, how long it stands still: write pause:2s"},
      {"pause:soon after=exit", "      ^~~~",
       "parameter \"for\" of fault \"pause\": \"soon\" is not a duration: expected a whole number and a unit, such as "
       "300ms, 5s or 2m"},
      {"restart-storm:1 after=exit", "              ^",
       "parameter \"times\" of fault \"restart-storm\": expected a whole number from 2 to 100, found \"1\""},
      {"crash after=\"reply from=shp\"", "                        ^~~",
       "\"after\": there is no service \"shp\"; did you mean \"shop\"?"},
      {"crash after=exit service=shp", "                         ^~~",
       "the rule's \"on\" has no service \"shp\"; did you mean \"shop\"?"},
      {"limit-files:3 after=exit", "^~~~~~~~~~~",
       "\"limit-files\" is in force from the start of a service and waits for no event; it stands under \"process\""},
      {"clock-offset:1h after=exit", "^~~~~~~~~~~~",
       "\"clock-offset\" is in force from the start of a service and waits for no event; it stands under \"process\""},
  };
  for (const auto& entry : rules) {
    Mistake mistake;
    EXPECT_FALSE(read_rule(entry.rule, scenario(), mistake)) << entry.rule;
    EXPECT_EQ(mistake.message, entry.message) << entry.rule;
    EXPECT_EQ(marked(entry.rule, mistake), "  " + std::string(entry.rule) + "\n  " + entry.marks) << mistake.message;
  }
  EXPECT_EQ(families_of(good("power-loss after=exit")), (std::vector<std::string>{"fsync", "write"}));
}

TEST(Rule, EveryErrorAndEveryKindCanBeAskedFor) {
  for (const auto& error : error_names()) EXPECT_EQ(good("fsync=" + error).params, (Value{{"error", error}})) << error;
  for (const auto& kind : fault_kinds()) {
    if (kind.mechanism != Mechanism::syscall || kind.name == "errno") continue;
    std::string argument;
    if (!kind.parameters.empty() && kind.parameters.front().required)
      argument = kind.parameters.front().type == FaultParameter::Type::count ? ":3" : ":3s";
    for (const auto& family : syscall_families()) {
      Mistake mistake;
      const auto rule = family.name + "=" + kind.name + argument;
      const auto& strikes = kind.operations;
      const bool can = std::find(strikes.begin(), strikes.end(), family.name) != strikes.end();
      EXPECT_EQ(read_rule(rule, scenario(), mistake).has_value(), can) << rule << ": " << mistake.message;
    }
  }
}

}  // namespace
}  // namespace leafcutter::scenarios
