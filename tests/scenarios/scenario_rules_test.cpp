// `rules` of a scenario: read for each service, with their places when they are wrong.
#include <gtest/gtest.h>

#include "scenarios/loader.hpp"
#include "scenarios/rule.hpp"

namespace leafcutter::scenarios {
namespace {

LoadResult with_rules(const std::string& fault) {
  const std::string document = R"(leafcutter: 1
name: ruled
services:
  shop: { run: [/bin/shop], restart: { on: crash, at-most: 3 } }
  broker: { run: [/bin/broker] }
workload: [{ settle: { quiet: 10ms } }]
properties: [{ name: x, never: { event: log, service: shop } }]
explore:
  faults:
)" + fault;
  LoadOptions options;
  options.check_programs = false;
  return load_text(document, "s.yaml", options);
}

std::string first_error(const LoadResult& result) {
  return result.errors.empty() ? "none" : result.errors.front().text();
}

TEST(ScenarioRules, BecomeFaultsOfEachServiceInTheOrderWritten) {
  const auto result = with_rules(R"(    - on: [shop, broker]
      rules:
        - "fsync=EIO path=*.wal #2"
        - write=short:100 path=*.tmp
        - "rename=crash-after service=shop"
        - fsync=EIO path=*.wal #2
)");
  // The last one is a mistake: YAML ends the rule before the "#".
  EXPECT_EQ(first_error(result),
            "s.yaml:15:11: YAML takes what follows \" #\" for a comment; write the rule in quotes: "
            "\"fsync=EIO path=*.wal #...\"");
  const auto good = with_rules(R"(    - on: [shop, broker]
      rules: ["fsync=EIO path=*.wal #2", write=short:100, "rename=crash-after service=shop", 'fsync=EIO path=*.wal #2']
    - on: shop
      syscalls: { families: [write], errors: [EIO] }
)");
  ASSERT_TRUE(good.scenario) << first_error(good);
  const auto& explore = good.scenario->explore;
  std::string texts;
  for (const auto& rule : explore.rules) texts += rule.site.lane + ": " + rule_text(rule) + "\n";
  EXPECT_EQ(texts,
            "shop: fsync=EIO path=*.wal #2\nbroker: fsync=EIO path=*.wal #2\nshop: write=short:100\nbroker: "
            "write=short:100\nshop: rename=crash-after\n");
  EXPECT_EQ(explore.observe.at("shop"), (std::vector<std::string>{"fsync", "write", "rename"}));
  EXPECT_EQ(explore.observe.at("broker"), (std::vector<std::string>{"fsync", "write"}));
  EXPECT_EQ(explore.faults.size(), 1u);
}

TEST(ScenarioRules, SeeWhatTheyWaitFor) {
  const auto result = with_rules(R"(    - on: shop
      rules: ["fsync=EIO after=\"syscall service=broker call=rename\"", "write=hold:1s until=\"exit service=broker\""]
)");
  ASSERT_TRUE(result.scenario) << first_error(result);
  EXPECT_EQ(result.scenario->explore.observe.at("broker"), std::vector<std::string>{"rename"});
  EXPECT_EQ(result.scenario->explore.rules.at(1).params.at("until"), "exit service=broker");
}

TEST(ScenarioRules, MayWaitForWhatHappensToAServicesLookups) {
  const auto result = with_rules(R"(    - on: shop
      rules: ['fsync=EIO after="fault.fired lane=\"shop -> dns\""']
)");
  EXPECT_TRUE(result.scenario) << first_error(result);
  const auto nobody = with_rules(R"(    - on: shop
      rules: ['fsync=EIO after="fault.fired lane=\"till -> dns\""']
)");
  EXPECT_FALSE(nobody.scenario);
}

TEST(ScenarioRules, MistakesHaveAPlaceInTheDocument) {
  struct Case {
    const char* fault;
    const char* error;
  };
  const Case cases[] = {
      {"    - on: shop\n      rules: [wirte=EIO]\n",
       "s.yaml:11:15: rule \"wirte=EIO\": unknown system call \"wirte\"; did you mean \"write\"?"},
      {"    - on: shop\n      rules:\n        - \"fsync=EIO pth=*.wal\"\n",
       "s.yaml:12:22: rule \"fsync=EIO pth=*.wal\": unknown key \"pth\"; did you mean \"path\"?"},
      {"    - on: [shop, broker]\n      rules: ['fsync=short:3']\n",
       "s.yaml:11:22: rule \"fsync=short:3\": \"short\" strikes read, write, send and receive, never \"fsync\""},
      {"    - on: shop\n      rules: [\"fsync=EIO after=\\\"reply from=shp\\\"\"]\n",
       "s.yaml:11:15: rule \"fsync=EIO after=\"reply from=shp\"\": \"after\": there is no service \"shp\"; did you "
       "mean "
       "\"shop\"?"},
      {"    - on: shop\n      rules: [fsync=EIO service=broker]\n",
       "s.yaml:11:33: rule \"fsync=EIO service=broker\": the rule's \"on\" has no service \"broker\"; known: shop"},
      {"    - on: shop\n      rules: [fsync=EIO path=*.wal uncounted]\n",
       "s.yaml:11:36: rule \"fsync=EIO path=*.wal uncounted\": not without counting: the kernel cannot look at its "
       "path"},
      {"    - on: shop\n      rules: fsync=EIO\n", "s.yaml:11:14: "},
      {"    - on: shop\n      rules: []\n", "s.yaml:11:14: "},
  };
  for (const auto& entry : cases) {
    const auto result = with_rules(entry.fault);
    EXPECT_FALSE(result.scenario) << entry.fault;
    EXPECT_EQ(first_error(result).substr(0, std::string(entry.error).size()), entry.error) << entry.fault;
    EXPECT_EQ(result.errors.size(), 1u) << entry.fault << " is one mistake, also for two services";
  }
}

TEST(ScenarioRules, OfAServiceThatIsNeverRestartedAreDoubted) {
  const auto result = with_rules("    - on: broker\n      rules: [write=crash-after]\n");
  ASSERT_TRUE(result.scenario) << first_error(result);
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_EQ(result.warnings.front().message,
            "service \"broker\" is never restarted: after a crash it stays down (see \"restart\")");
}

}  // namespace
}  // namespace leafcutter::scenarios
