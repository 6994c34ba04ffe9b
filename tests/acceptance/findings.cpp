#include "findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

namespace acceptance {
namespace {

/// A copy in `folder` of the defect's scenario, with another budget.
std::string copy_of(const Folder& folder, const Defect& defect, const std::string& budget,
                    const Replacements& changed) {
  const auto scenario = folder.copy_scenario(defect.scenario, defect.budget, budget);
  for (const auto& [from, to] : changed) replace_in(scenario + "/scenario.yaml", from, to);
  return scenario;
}

Outcome run(const Folder& folder, const std::string& scenario, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"run", scenario, "--format", "json", "--out", folder / "out"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return leafcutter(arguments, folder.path());
}

/// Every single fault was tried: what was not found is not there.
void expect_all_singles_run(const Json& json) {
  EXPECT_EQ(json["coverage"]["singles"]["run"], json["coverage"]["singles"]["known"]) << json["coverage"].dump(2);
  EXPECT_GT(json["coverage"]["singles"]["run"], 0);
}

std::string budget_of(int leaves, const std::string& time) {
  return "leaves: " + std::to_string(leaves) + ", time: " + time;
}

/// Of a printed finding, what is the same in every run.
std::vector<std::string> lasting_lines(const std::string& text) {
  static const std::regex time(" *\\+[0-9.]+m?s"), measured("actual_ms: [0-9.]+");
  std::vector<std::string> lasting;
  std::istringstream lines(text.substr(std::min(text.find("FAIL "), text.size())));
  bool events = false;
  for (std::string line; std::getline(lines, line) && line.rfind("```", 0) != 0;) {
    if (line.rfind("Where the passing neighbour", 0) == 0) break;
    if (!events || line.rfind("!", 0) == 0 || line.rfind(">", 0) == 0)
      lasting.push_back(std::regex_replace(std::regex_replace(line, time, " TIME"), measured, "actual_ms: N"));
    events = events || line.rfind("What happened", 0) == 0;
  }
  return lasting;
}

}  // namespace

std::string library(const std::string& name) { return (build_folder() / "library" / name).string(); }

void expect_well_formed(const Json& finding, std::size_t faults) {
  SCOPED_TRACE(finding.dump(2));
  for (const auto* key : {"signature", "property", "leaf", "rate", "plan", "explanation"})
    EXPECT_TRUE(finding.contains(key)) << key;
  EXPECT_EQ(finding["signature"].get<std::string>().size(), 12U);
  EXPECT_TRUE(finding["plan"].contains("schedule"));
  ASSERT_EQ(finding["plan"]["faults"].size(), faults);
  const auto& explanation = finding["explanation"];
  std::size_t lines = explanation.size();
  if (explanation.is_string()) {
    std::istringstream text(explanation.get<std::string>());
    lines = 0;
    for (std::string line; std::getline(text, line);) ++lines;
  }
  EXPECT_GT(lines, 3U);
  EXPECT_LE(lines, 40U);
}

std::vector<std::string> faults_of(const Json& finding) {
  std::vector<std::string> faults;
  for (const auto& fault : finding["plan"]["faults"]) {
    const auto& site = fault["site"];
    faults.push_back(fault["kind"].get<std::string>() + " " +
                     (site.is_string() ? site.get<std::string>()
                                       : site["lane"].get<std::string>() + " " + site["operation"].get<std::string>() +
                                             " " + site["resource"].get<std::string>()));
  }
  return faults;
}

Json expect_found(const Folder& folder, const Defect& defect) {
  const auto outcome = run(folder, copy_of(folder, defect, budget_of(defect.leaves, "1m"), {}));
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  auto json = document(outcome);
  const auto findings = json.value("findings", Json::array());
  expect_all_singles_run(json);
  EXPECT_GT(json.value("elapsed_ms", 0), 0);
  EXPECT_EQ(findings.size(), 1U) << findings.dump(2);
  if (findings.size() != 1) return {};
  expect_well_formed(findings[0], defect.faults.size());
  EXPECT_EQ(findings[0]["property"], defect.property);
  EXPECT_THAT(faults_of(findings[0]), testing::UnorderedElementsAreArray(defect.faults));
  return findings[0];
}

void expect_fails_again(const Folder& folder, const Json& finding, int times) {
  const auto replayed =
      leafcutter({"replay", finding["leaf"], "--times", std::to_string(times), "--out", folder / "out"}, folder.path());
  EXPECT_EQ(replayed.exit, 1) << replayed.err;
  const auto count = std::to_string(times);
  EXPECT_THAT(replayed.out, testing::HasSubstr(count + " of " + count + " failed"));
  const std::string signature = finding["signature"];
  int said = 0;
  std::istringstream lines(replayed.out);
  for (std::string line; std::getline(lines, line);)
    if (line.find("FAIL") != std::string::npos && line.find(signature) != std::string::npos) ++said;
  EXPECT_EQ(said, times) << replayed.out;
}

void expect_page_shows(const Folder& folder, const Defect& defect) {
  const auto page = source_folder() / "docs" / "library" / (defect.scenario + ".md");
  std::ifstream file(page);
  const auto shown = lasting_lines({std::istreambuf_iterator<char>(file), {}});
  const auto printed = leafcutter({"report", "--format", "text", "--out", folder / "out"}, folder.path());
  EXPECT_GT(shown.size(), 5U) << page;
  EXPECT_EQ(shown, lasting_lines(printed.out)) << page << " does not show it as it is printed:\n" << printed.out;
}

void expect_clean_when_fixed(const Defect& defect) {
  const Folder folder;
  const int leaves = 10 * defect.leaves;
  const auto outcome =
      run(folder, copy_of(folder, defect, budget_of(leaves, "10m"), defect.wider), {"--variant", "fixed"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err << outcome.out;
  auto json = document(outcome);
  EXPECT_EQ(json.value("findings", Json::array()).size(), 0U);
  EXPECT_EQ(json["leaves"]["total"], leaves) << "the space has fewer leaves than the budget, or the time was over";
  EXPECT_EQ(json["leaves"]["by_verdict"].value("PASS", 0), leaves) << json["leaves"].dump(2);
}

void expect_not_found(const Defect& defect, const Replacements& changed) {
  const Folder folder;
  const auto outcome = run(folder, copy_of(folder, defect, budget_of(defect.leaves, "1m"), changed));
  EXPECT_EQ(outcome.exit, 0) << outcome.err << outcome.out;
  auto json = document(outcome);
  expect_all_singles_run(json);
  EXPECT_EQ(json.value("findings", Json::array()).size(), 0U);
}

}  // namespace acceptance
