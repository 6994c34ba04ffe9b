#include "findings.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace acceptance {

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

}  // namespace acceptance
