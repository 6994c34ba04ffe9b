// From concluded failure groups to findings: groups that minimize to the same signature are one finding.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/campaign/inquiry.hpp"
#include "coordinator/finding.hpp"

namespace leafcutter::coordinator {

struct ConcludedGroup {
  const FailureGroup* group = nullptr;
  const Conclusion* conclusion = nullptr;
};

/// By signature. The finding tells of the confirmed conclusion with the fewest faults, then the lowest address; it has
/// been seen in every leaf of every group.
std::map<std::string, Finding> merge(const std::vector<ConcludedGroup>& groups);

/// Equal in everything but the explanation, which is not the campaign's.
bool same_finding(const Finding& a, const Finding& b);

/// A fault-free baseline failed: there is nothing to confirm beside or to minimize. `baselines` are all of them.
Conclusion conclude_baseline(const FailureGroup& group, const std::vector<const Result*>& baselines);

}  // namespace leafcutter::coordinator
