// What a campaign leaves for people and for other programs: an HTML page that a browser shows without a network, JUnit
// XML, and the same text again from the ledger.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace {

using acceptance::document;
using acceptance::Folder;
using acceptance::leafcutter;
using acceptance::Program;
using testing::HasSubstr;
using testing::Not;

class Report : public testing::Test {
 protected:
  void SetUp() override {
    const auto scenario = folder_.copy_scenario("double-charge", "leaves: 200", "leaves: 30");
    json_ = document(leafcutter({"run", scenario, "--format", "json", "--out", folder_ / "out"}, folder_.path()));
    ASSERT_FALSE(json_["findings"].empty());
  }

  std::string report(const std::string& format) const {
    const auto outcome = leafcutter({"report", "--format", format, "--out", folder_ / "out"}, folder_.path());
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return outcome.out;
  }

  Folder folder_;
  acceptance::Json json_;
};

TEST_F(Report, ABrowserShowsThePageWithoutANetwork) {
  const auto html = report("html");
  for (const auto* reach : {"src=\"http", "href=\"http", "src='http", "@import", "url(http"})
    EXPECT_THAT(html, Not(HasSubstr(reach)));
  folder_.write("report.html", html);
  Program browser({"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--user-data-dir=" + (folder_ / "profile"), "--dump-dom", "file://" + (folder_ / "report.html")},
                  folder_.path());
  const auto shown = browser.wait(std::chrono::seconds(120));
  EXPECT_EQ(shown.exit, 0) << shown.err;
  const auto& finding = json_["findings"][0];
  for (const std::string text : {finding["signature"], finding["property"], finding["leaf"]})
    EXPECT_THAT(shown.out, HasSubstr(text));
  EXPECT_THAT(shown.out, HasSubstr("lose-response"));
  EXPECT_THAT(shown.out, HasSubstr("leafcutter replay"));
}

TEST_F(Report, OtherProgramsReadJUnit) {
  const auto xml = report("junit");
  EXPECT_THAT(xml, HasSubstr("<testsuite"));
  EXPECT_THAT(xml, HasSubstr("<failure"));
  EXPECT_THAT(xml, HasSubstr("an order is charged at most once"));
}

TEST_F(Report, TheLedgerRemembers) {
  EXPECT_EQ(acceptance::Json::parse(report("json"), nullptr, false)["result_digest"], json_["result_digest"]);
  EXPECT_THAT(report("text"), HasSubstr(json_["findings"][0]["signature"].get<std::string>()));
}

}  // namespace
