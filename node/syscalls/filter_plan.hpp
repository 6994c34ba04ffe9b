// What one program's filter does, computed from its plan and from what is watched, never from text: calls that the
// supervisor must look at, and calls that the kernel answers by itself.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "node/observe/site_book.hpp"
#include "scenarios/kernel_rule.hpp"

namespace leafcutter::node {

struct FilterPlan {
  std::vector<std::string> families = {};   ///< notified, but for the calls that are answered
  std::map<std::string, int> answers = {};  ///< call -> errno, always
  struct InKernel {
    std::size_t fault = 0;  ///< in the plan
    std::vector<std::string> calls;
  };
  std::vector<InKernel> in_kernel = {};  ///< what the answers carry out
  bool empty() const { return families.empty() && answers.empty(); }
};

/// `families`: all that faults and observation need of `lane`. A rule that the kernel could carry out stays with the
/// supervisor when another fault of the lane meets the same calls: the kernel would answer before that one is asked.
FilterPlan filter_plan(const scenarios::Plan& plan, const std::string& lane, std::vector<std::string> families,
                       scenarios::Scope scope);

/// Before the program starts: says of each fault in the kernel that it is in force, once however often the program is
/// started again.
void record_in_kernel(const FilterPlan& filter, SiteBook& sites);

}  // namespace leafcutter::node
