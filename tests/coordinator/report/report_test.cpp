#include "coordinator/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/digest.hpp"
#include "coordinator/judge/layout.hpp"
#include "coordinator/report/markup.hpp"
#include "tests/coordinator/ledger/ledger_fixture.hpp"
#include "tests/coordinator/report/sample_report.hpp"

namespace leafcutter::coordinator {
namespace {

using namespace testing;
using scenarios::Reason;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

CampaignReport with_results(std::vector<Result> results) {
  CampaignReport report;
  report.scenario = outbox_scenario();
  report.results = std::move(results);
  return report;
}

TEST(ExitCode, SaysTheWorst) {
  EXPECT_EQ(exit_code(with_results({leaf_result(0, 0, Reason::held), leaf_result(0, 1, Reason::vacuous)})), 0);
  EXPECT_EQ(exit_code(with_results({leaf_result(0, 0, Reason::held), leaf_result(0, 1, Reason::timed_out)})), 3);
  EXPECT_EQ(exit_code(with_results({leaf_result(0, 0, Reason::held), leaf_result(0, 1, Reason::node_lost)})), 3);
  EXPECT_EQ(
      exit_code(with_results({leaf_result(0, 0, Reason::node_lost), leaf_result(0, 1, Reason::property_violated)})), 1);
  EXPECT_EQ(exit_code(with_results({})), 3);
  auto report = with_results({leaf_result(0, 0, Reason::held)});
  report.findings = {outbox_finding()};
  EXPECT_EQ(exit_code(report), 1);
  report.interrupted = true;
  EXPECT_EQ(exit_code(report), 130);
}

TEST(Gather, ReadsACampaignFromItsLedger) {
  Folder folder;
  auto ledger = open_ledger(folder.path());
  ASSERT_FALSE(gather(*ledger, "0a1b2c3d", outbox_scenario()).ok());
  auto row = campaign_row();
  row.state = "complete";
  ASSERT_TRUE(ledger->save_campaign(row));
  EpochHeader header;
  header.campaign = row.name;
  header.leaves = 3;
  ASSERT_TRUE(ledger->save_epoch(header));
  for (std::uint64_t i : {2, 0, 1}) {
    auto result = leaf_result(0, i, Reason::held);
    ASSERT_TRUE(ledger->accept(row.name, result).ok());
    result.execution += "9";
    result.purpose = Purpose::control;
    ASSERT_TRUE(ledger->accept(row.name, result).ok());
  }
  ASSERT_TRUE(ledger->save_finding(row.name, outbox_finding()));
  const auto report = gather(*ledger, row.name, outbox_scenario());
  ASSERT_TRUE(report.ok()) << report.error().text();
  ASSERT_THAT(report->results, SizeIs(3));
  EXPECT_EQ(report->results[0].address, "0a1b2c3d/0/0");
  EXPECT_EQ(report->executions, 6u);
  EXPECT_EQ(report->digest, base::sha256("0a1b2c3d/0/0 PASS held\n0a1b2c3d/0/1 PASS held\n0a1b2c3d/0/2 PASS held\n"));
  EXPECT_THAT(report->findings, SizeIs(1));
  EXPECT_THAT(report->epochs, SizeIs(1));
  EXPECT_EQ(report->elapsed_ms, row.elapsed_ms);
  EXPECT_FALSE(report->interrupted);
}

TEST(Json, HasTheKeysThatGatesRead) {
  const auto json = json_report(sample_report());
  std::set<std::string> keys;
  for (const auto& [name, value] : json.items()) keys.insert(name);
  for (const auto* name : {"campaign", "seed", "variant", "scenario", "leaves", "coverage", "result_digest", "findings",
                           "exit_code", "elapsed_ms", "executions", "interrupted"})
    EXPECT_TRUE(keys.contains(name)) << name;
  EXPECT_EQ(json["campaign"], "0a1b2c3d");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["scenario"], "outbox");
  EXPECT_EQ(json["leaves"]["total"], 123);
  EXPECT_EQ(json["leaves"]["by_verdict"], (Value{{"PASS", 117}, {"FAIL", 2}, {"INFRA", 1}, {"INCONCLUSIVE", 3}}));
  std::uint64_t sum = 0;
  for (const auto& [reason, count] : json["leaves"]["by_reason"].items()) sum += count.get<std::uint64_t>();
  EXPECT_EQ(sum, 123u);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["interrupted"], false);
  EXPECT_EQ(json["result_digest"].get<std::string>().size(), 64u);

  ASSERT_EQ(json["findings"].size(), 2u);
  const auto& second = json["findings"][1];
  for (const auto* name : {"signature", "property", "leaf", "rate", "runs", "fails", "confirmed", "plan", "explanation",
                           "seen", "exemplars", "message"})
    EXPECT_TRUE(second.contains(name)) << name;
  EXPECT_EQ(second["rate"], 0.6);
  EXPECT_EQ(second["leaf"], "0a1b2c3d/1/7");
  const auto& fault = second["plan"]["faults"][0];
  EXPECT_EQ(fault["kind"], "lose-response");
  EXPECT_EQ(fault["site"],
            (Value{{"lane", "shop -> broker"}, {"operation", "request"}, {"resource", "POST /announce"}}));
  EXPECT_EQ(fault["occurrence"], 3);
  EXPECT_EQ(fault["params"], (Value{{"after", "50ms"}}));
  EXPECT_EQ(fault["text"], sample_report().findings[1].plan.faults[0].text());
  EXPECT_EQ(second["plan"]["schedule"], Value::array());
  EXPECT_THAT(json["findings"][0]["explanation"].get<std::string>(), HasSubstr("\n      key order-2: "));
  // Bytes that a service wrote cannot make the document undumpable.
  EXPECT_NO_THROW(json.dump(2));
}

TEST(Json, RoundTripsThroughText) {
  const auto json = json_report(sample_report());
  EXPECT_EQ(Value::parse(json.dump()), json);
  EXPECT_EQ(json_report(sample_report()), json);
}

TEST(Terminal, FindingsFirstThenVerdictsAndReplay) {
  const auto text = terminal_report(sample_report(), false);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  const auto finding = text.find("Finding 1 of 2"), leaves = text.find("Leaves"), coverage = text.find("Coverage"),
             digest = text.find("Digest");
  ASSERT_NE(finding, std::string::npos);
  EXPECT_LT(finding, leaves);
  EXPECT_LT(leaves, coverage);
  EXPECT_LT(coverage, digest);
  EXPECT_THAT(text, HasSubstr("123 explored in 2 epochs, 151 executions in all, 1 min 23 s"));
  EXPECT_THAT(text, HasSubstr("PASS"));
  EXPECT_THAT(text, HasSubstr("held 114, vacuous 3"));
  EXPECT_THAT(text, HasSubstr("leafcutter replay 0a1b2c3d/1/7"));
  EXPECT_THAT(text, HasSubstr("2 findings"));
  EXPECT_THAT(text, HasSubstr(sample_report().digest));
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin))
    EXPECT_LE(columns(text.substr(begin, end - begin)), 100u) << text.substr(begin, end - begin);
}

TEST(Terminal, ColourAddsNothingButColour) {
  auto coloured = terminal_report(sample_report(), true);
  EXPECT_THAT(coloured, HasSubstr("\x1b["));
  for (auto at = coloured.find("\x1b["); at != std::string::npos; at = coloured.find("\x1b["))
    coloured.erase(at, coloured.find('m', at) - at + 1);
  EXPECT_EQ(coloured, terminal_report(sample_report(), false));
}

TEST(Report, SaysWhatTheLeavesDependOnOutsideOfThemselves) {
  auto report = sample_report();
  EXPECT_EQ(terminal_report(report, false).find("Outside"), std::string::npos);
  EXPECT_TRUE(json_report(report)["egress"].empty());
  report.scenario.ways_out = {{"shop", "api.example.org", 443, "127.0.0.1", 8443, {}}};
  const std::string way = "shop -> api.example.org:443 (at 127.0.0.1:8443)";
  const auto text = terminal_report(report, false);
  EXPECT_NE(text.find("\nOutside   leaves depend on what is outside of them: " + way), std::string::npos) << text;
  EXPECT_EQ(json_report(report)["egress"], Value::array({way}));
  EXPECT_NE(html_report(report, sample_traces()).find("shop -&gt; api.example.org:443"), std::string::npos);
}

TEST(Terminal, AllHeldIsShort) {
  auto report = with_results({leaf_result(0, 0, Reason::held)});
  const auto text = terminal_report(report, false);
  EXPECT_THAT(text, HasSubstr("all properties held in 1 leaf"));
  EXPECT_THAT(text, Not(HasSubstr("Finding")));
  EXPECT_THAT(text, Not(HasSubstr("Undecided")));
}

// --- JUnit: a small strict reader, enough for well-formedness and order ---

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::vector<Element> children;
  std::string text;
};

class Reader {
 public:
  explicit Reader(const std::string& xml) : xml_(xml) {}
  Element document() {
    expect("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    auto root = element();
    while (at_ < xml_.size() && xml_[at_] == '\n') ++at_;
    if (at_ != xml_.size()) fail("text after the root");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + " at " + xml_.substr(at_, 40)); }
  void expect(const std::string& text) {
    if (xml_.compare(at_, text.size(), text) != 0) fail("expected " + text);
    at_ += text.size();
  }
  std::string name() {
    const auto begin = at_;
    while (at_ < xml_.size() && (std::isalnum(static_cast<unsigned char>(xml_[at_])) || xml_[at_] == '-')) ++at_;
    if (begin == at_) fail("expected a name");
    return xml_.substr(begin, at_ - begin);
  }
  std::string text_until(char end) {
    std::string out;
    while (at_ < xml_.size() && xml_[at_] != end) {
      if (xml_[at_] == '<') fail("a bare <");
      if (static_cast<unsigned char>(xml_[at_]) < 0x20 && xml_[at_] != '\n' && xml_[at_] != '\t')
        fail("a control character");
      if (xml_[at_] != '&') {
        out += xml_[at_++];
        continue;
      }
      static const std::map<std::string, char> entities = {
          {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
      const auto entity = entities.find(xml_.substr(at_, xml_.find(';', at_) - at_ + 1));
      if (entity == entities.end()) fail("an unknown entity");
      out += entity->second;
      at_ += entity->first.size();
    }
    return out;
  }
  Element element() {
    Element e;
    expect("<");
    e.name = name();
    while (xml_.compare(at_, 1, " ") == 0) {
      ++at_;
      const auto key = name();
      expect("=\"");
      if (!e.attributes.emplace(key, text_until('"')).second) fail("attribute twice");
      expect("\"");
    }
    if (xml_.compare(at_, 2, "/>") == 0) {
      at_ += 2;
      return e;
    }
    expect(">");
    for (;;) {
      e.text += text_until('<');
      if (xml_.compare(at_, 2, "</") == 0) break;
      e.children.push_back(element());
    }
    expect("</" + e.name + ">");
    return e;
  }
  const std::string& xml_;
  std::size_t at_ = 0;
};

TEST(Junit, IsWellFormedWithOneCaseForEachProperty) {
  const auto report = sample_report();
  const auto xml = junit_report(report);
  const auto root = Reader(xml).document();
  EXPECT_EQ(root.name, "testsuites");
  ASSERT_THAT(root.children, SizeIs(1));
  const auto& suite = root.children[0];
  EXPECT_EQ(suite.name, "testsuite");
  EXPECT_EQ(suite.attributes.at("name"), "outbox");
  ASSERT_FALSE(suite.children.empty());
  EXPECT_EQ(suite.children[0].name, "properties");  // the schema has them first
  std::map<std::string, const Element*> cases;
  std::size_t failures = 0, errors = 0;
  for (std::size_t i = 1; i < suite.children.size(); ++i) {
    const auto& test = suite.children[i];
    ASSERT_EQ(test.name, "testcase");
    for (const auto* key : {"name", "classname", "time"}) EXPECT_TRUE(test.attributes.contains(key));
    cases[test.attributes.at("name")] = &test;
    for (const auto& child : test.children) {
      failures += child.name == "failure";
      errors += child.name == "error";
      EXPECT_TRUE(child.attributes.contains("message") && child.attributes.contains("type"));
    }
  }
  for (const auto& each : report.scenario.properties) EXPECT_TRUE(cases.contains(each.name)) << each.name;
  EXPECT_EQ(suite.attributes.at("tests"), std::to_string(suite.children.size() - 1));
  EXPECT_EQ(suite.attributes.at("failures"), std::to_string(failures));
  EXPECT_EQ(suite.attributes.at("errors"), std::to_string(errors));
  EXPECT_EQ(failures, 2u);
  EXPECT_EQ(errors, 1u);  // leaves that were not decided
  EXPECT_TRUE(cases.at("expectations")->children.empty());
  const auto& failure = cases.at("an accepted order is announced")->children.at(0);
  EXPECT_THAT(failure.text, HasSubstr("What happened"));
  EXPECT_THAT(failure.text, HasSubstr("leafcutter replay 0a1b2c3d/1/7"));
  EXPECT_THAT(cases.at("an order is announced at most once")->children.at(0).attributes.at("message"),
              HasSubstr("</script><img src=x"));
}

TEST(Junit, AHeldCampaignHasNeitherFailureNorError) {
  const auto root = Reader(junit_report(with_results({leaf_result(0, 0, Reason::held)}))).document();
  EXPECT_EQ(root.attributes.at("failures"), "0");
  EXPECT_EQ(root.attributes.at("errors"), "0");
  EXPECT_EQ(root.attributes.at("tests"), "2");  // the property and the steps' expectations
}

TEST(Junit, AFindingThatIsOfNoPropertyHasACaseOfItsOwn) {
  auto report = with_results({leaf_result(0, 0, Reason::held)});
  report.findings = {outbox_finding(), outbox_finding()};
  for (auto& finding : report.findings) finding.property = "nondeterminism";
  const auto xml = junit_report(report);
  const auto root = Reader(xml).document();
  EXPECT_EQ(root.attributes.at("tests"), "3");
  EXPECT_EQ(root.attributes.at("failures"), "1");
  EXPECT_THAT(xml, HasSubstr("name=\"nondeterminism\""));
}

TEST(Junit, NothingDecidedIsNotGreen) {
  for (const auto& report : {with_results({}), with_results({leaf_result(0, 0, Reason::unavailable)})})
    EXPECT_NE(Reader(junit_report(report)).document().attributes.at("errors"), "0");
}

TEST(Junit, AFailingLeafWithoutAFindingFailsItsProperty) {
  const auto xml = junit_report(
      with_results({leaf_result(0, 0, Reason::held), leaf_result(1, 3, Reason::property_violated, "never came")}));
  EXPECT_EQ(Reader(xml).document().attributes.at("failures"), "1");
  EXPECT_THAT(xml, HasSubstr("leafcutter replay 0a1b2c3d/1/3"));
}

TEST(Markup, LeavesNothingDangerous) {
  EXPECT_EQ(escape("a<b>&\"'\x01\n\xff"), "a&lt;b&gt;&amp;&quot;&#39; \n\xef\xbf\xbd");
  const auto json = script_json(Value{{"x", "</script><!--&"}});
  EXPECT_EQ(json.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(Value::parse(json)["x"], "</script><!--&");
}

TEST(Html, IsSelfContainedAndSafe) {
  const auto html = html_report(sample_report(), sample_traces());
  EXPECT_EQ(occurrences(html, "<script"), 2u);
  EXPECT_EQ(occurrences(html, "</script>"), 2u);
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  for (const auto* outside : {" src=", " href=", "url(", "@import", "fetch(", "XMLHttpRequest", "innerHTML"})
    EXPECT_THAT(html, Not(HasSubstr(std::string("<link") + outside))) << outside;
  EXPECT_EQ(occurrences(html, "http://"), 1u);  // the SVG namespace, which is a name and nothing to load
  EXPECT_THAT(html, HasSubstr("http://www.w3.org/2000/svg"));
  EXPECT_EQ(occurrences(html, "https://"), 0u);
  EXPECT_EQ(occurrences(html, "innerHTML"), 0u);
  EXPECT_EQ(occurrences(html, "@import"), 0u);
  EXPECT_EQ(occurrences(html, "url("), 0u);
}

TEST(Html, ReadsWithoutItsScript) {
  auto html = html_report(sample_report(), sample_traces());
  html.resize(html.find("<script"));
  for (const auto* text :
       {"an accepted order is announced", "FAILED", "Minimal plan", "crash-after", "leafcutter replay 0a1b2c3d/1/7",
        "not-settled", "Pairs that were not run", "budget", "schedules: messages are not held back", "What happened"})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST(Html, StaysBoundedWhateverTheTrace) {
  TraceBuilder huge;
  for (int i = 0; i < 400; ++i) {
    huge.order("order-" + std::to_string(i));
    huge.add("shop", events::log, {{"line", std::string(10'000, 'x')}});
  }
  huge.order("order-2", false).fired(0).settled().end();
  auto report = sample_report();
  for (std::uint64_t i = 0; i < 20'000; ++i) report.results.push_back(leaf_result(2, i, Reason::held));
  for (int i = 0; i < 40; ++i) report.findings.push_back(report.findings[0]);
  const auto html =
      html_report(report, [&](const std::string&) { return base::Expected<std::vector<Event>>(huge.events); });
  EXPECT_LT(html.size(), 16u << 20);
  const auto begin = html.find("id=\"data\">") + 10;
  const auto data = Value::parse(html.substr(begin, html.find("</script>", begin) - begin));
  EXPECT_EQ(data["findings"].size(), 12u);
  const auto& trace = data["findings"][0]["failing"];
  EXPECT_EQ(trace["rows"].size(), 400u);
  EXPECT_EQ(trace["total"], huge.events.size());
  std::uint64_t accounted = trace["after"].get<std::uint64_t>() + trace["rows"].size();
  for (const auto& row : trace["rows"]) accounted += row.value("gap", std::uint64_t{0});
  EXPECT_EQ(accounted, huge.events.size());  // what is left out is counted where it is left out
  EXPECT_EQ(data["leaves"].size(), 4000u);
  EXPECT_EQ(data["leaves_left_out"], 20'123 - 4000);
  EXPECT_EQ(data["leaves"][0][1], "FAIL");
}

}  // namespace
}  // namespace leafcutter::coordinator
