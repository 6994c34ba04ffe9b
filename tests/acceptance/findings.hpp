// What a run of a ready scenario found, as its JSON document says it, and what is true of every ready scenario of one
// defect: a small budget finds it with exactly the faults it takes, it fails again whenever it is replayed, and the
// mended service stays clean over ten times as many leaves.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support.hpp"

namespace acceptance {

/// The folder of a ready scenario in the build folder.
std::string library(const std::string& name);

/// What must be true of every finding of a ready scenario: confirmed, explained, addressed, and minimal: so many
/// faults.
void expect_well_formed(const Json& finding, std::size_t faults = 1);

/// The faults of a finding's minimal plan, each as "kind lane operation resource", in the plan's order.
std::vector<std::string> faults_of(const Json& finding);

using Replacements = std::vector<std::pair<std::string, std::string>>;

struct Defect {
  std::string scenario;
  std::string property;                         ///< that it breaks
  std::vector<std::string> faults;              ///< of its minimal plan, in any order, as faults_of() says them
  int leaves = 30;                              ///< which find it
  std::string budget = "leaves: 30, time: 1m";  ///< as the scenario has it
  Replacements wider = {};                      ///< for a space of ten times as many leaves, where its own is too small
};

/// The one finding of the defect's scenario, which is run from `folder`; null, and the test failed, when there is none
/// or another.
Json expect_found(const Folder& folder, const Defect& defect);

/// Replays the finding of a run from `folder`: it fails every time, with the same signature.
void expect_fails_again(const Folder& folder, const Json& finding, int times);

/// The finding as the scenario's page in docs/library shows it is the one that a run from `folder` prints: what fails,
/// the minimal plan, and the lines of the faults and of what breaks the property, whatever time they give.
void expect_page_shows(const Folder& folder, const Defect& defect);

/// The fixed variant, over ten times as many leaves.
void expect_clean_when_fixed(const Defect& defect);

/// The defect is there, and with `changed` in the scenario nothing can show it: nothing is found in the same search.
void expect_not_found(const Defect& defect, const Replacements& changed);

}  // namespace acceptance
