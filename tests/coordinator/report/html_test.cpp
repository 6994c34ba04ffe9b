// The page in a real browser, offline: its script runs without an error and draws what the data says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "tests/coordinator/ledger/ledger_fixture.hpp"
#include "tests/coordinator/report/sample_report.hpp"

namespace leafcutter::coordinator {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* browser = "/usr/bin/chromium";

/// The document after its script ran. `address` may have a fragment.
std::string dump_dom(const std::string& profile, const std::string& address) {
  const auto command =
      "timeout 120 " + std::string(browser) +
      " --headless --no-sandbox --disable-gpu --window-size=1300,900 --no-first-run --disable-background-networking "
      "--disable-component-update "
      "--disable-sync --disable-quic --disable-extensions --user-data-dir=" +
      profile + " --virtual-time-budget=3000 --dump-dom '" + address + "' 2>/dev/null";
  std::string dom;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return dom;
  std::array<char, 65536> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) dom.append(buffer.data(), n);
  ::pclose(pipe);
  return dom;
}

/// Only what the script made: without the script and its data.
std::string drawn(std::string dom) {
  for (auto at = dom.find("<script"); at != std::string::npos; at = dom.find("<script"))
    dom.erase(at, dom.find("</script>", at) + 9 - at);
  return dom;
}

class HtmlInABrowser : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::access(browser, X_OK), 0)
        << browser << " is needed (package chromium): without it the page is not tested";
  }

  std::string show(const CampaignReport& report, const std::string& fragment = {},
                   const TraceSource& traces = sample_traces(), const std::string& probe = {}) {
    const auto file = folder_.path() + "/report.html";
    std::ofstream(file, std::ios::binary) << html_report(report, traces) << probe;
    return drawn(dump_dom(folder_.path() + "/profile", "file://" + file + fragment));
  }
  Folder folder_;
};

TEST_F(HtmlInABrowser, DrawsLanesAndLeaves) {
  const auto dom = show(sample_report());
  ASSERT_THAT(dom, HasSubstr("data-ready=\"yes\"")) << dom.substr(0, 2000);
  EXPECT_THAT(dom, Not(HasSubstr("data-error")));
  // The failing trace is shown first, what matters of it: the fault, the evidence, where the runs part.
  EXPECT_EQ(occurrences(dom, "class=\"head-row\""), 1u);
  EXPECT_GE(occurrences(dom, "class=\"row"), 10u);
  EXPECT_EQ(occurrences(dom, "class=\"bolt\""), 1u);
  EXPECT_GE(occurrences(dom, "breaks the property</span></span>"), 1u);
  EXPECT_GE(occurrences(dom, "parts here"), 1u);
  EXPECT_THAT(dom, HasSubstr("class=\"life down\""));
  EXPECT_THAT(dom, HasSubstr("events not shown"));
  // The other finding's trace is gone, and the page says so.
  EXPECT_THAT(dom, HasSubstr("the trace of gone#1 cannot be shown: the trace was not kept"));
  EXPECT_THAT(dom, HasSubstr("data-found=\"123\""));
  EXPECT_EQ(occurrences(dom, "data-copy=\"leafcutter replay 0a1b2c3d/1/"),
            100u - 3u + 2u + 2u);  // a page of leaves, and the findings
  // Hostile text stayed text.
  EXPECT_THAT(dom, Not(HasSubstr("<img")));
  EXPECT_THAT(dom, HasSubstr("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
}

TEST_F(HtmlInABrowser, ShowsAllThatAFaultProvesWithoutScrolling) {
  auto report = sample_report();
  TraceBuilder trace;
  const std::string lost = std::string("3 files changed (") + std::string(120, 'f') + "), 18 bytes lost, 1 sync failed";
  trace.order("order-1");
  trace.add("shop", events::fault_fired,
            {{"fault", 0}, {"kind", "power-loss"}, {"evidence", {{"lost", {{"text", lost}}}, {"pid", 5}}}});
  trace.order("order-2", false).settled().end();
  const auto dom = show(
      report, "", [&](const std::string&) { return base::Expected<std::vector<Event>>(trace.events); },
      R"(<script>for (const row of document.querySelectorAll(".row.fault")) {
        const text = row.querySelector(".text"), view = row.closest(".view").getBoundingClientRect();
        row.dataset.seen = text.getBoundingClientRect().right <= view.right && text.scrollWidth <= text.clientWidth;
      }</script>)");
  EXPECT_THAT(dom, HasSubstr(lost + "}"));
  EXPECT_EQ(occurrences(dom, "data-seen=\"true\""), 2U) << "not in view, or no such row";
}

TEST_F(HtmlInABrowser, CountsThePlansFaultsInTheOrderInWhichTheyStruck) {
  auto report = sample_report();
  report.findings.resize(1);
  report.findings[0].plan.faults = {{"power-loss", {"shop", "step", "later"}, 1, Value::object()}, crash_fault()};
  TraceBuilder trace;
  trace.fired(1).order("order-2", false).fired(0).settled().end();
  const auto page = [&](const TraceSource& traces) { return html_report(report, traces); };
  const auto told = page([&](const std::string&) { return base::Expected<std::vector<Event>>(trace.events); });
  EXPECT_LT(told.find("class=\"kind\">crash-after"), told.find("class=\"kind\">power-loss"));
  const auto gone = page([](const std::string&) { return base::Error{base::ErrorCode::unavailable, "gone", {}}; });
  EXPECT_GT(gone.find("class=\"kind\">crash-after"), gone.find("class=\"kind\">power-loss"));
}

TEST_F(HtmlInABrowser, FiltersLeavesFromItsFragment) {
  const auto dom = show(sample_report(), "#filter=property-violated%20%2F7");
  EXPECT_THAT(dom, HasSubstr("data-found=\"1\""));
  EXPECT_THAT(dom, HasSubstr("1 of 123 leaves"));
}

TEST_F(HtmlInABrowser, AnEmptyCampaignIsAPageToo) {
  CampaignReport report;
  report.scenario = outbox_scenario();
  const auto dom = show(report);
  EXPECT_THAT(dom, HasSubstr("data-ready=\"yes\""));
  EXPECT_THAT(dom, Not(HasSubstr("data-error")));
  EXPECT_THAT(dom, HasSubstr("no leaf was run"));
}

}  // namespace
}  // namespace leafcutter::coordinator
