// Counts how often each site of a leaf is visited and says which planned faults strike at a visit; keeps each fault's
// lifecycle (armed, fired with evidence, undone) in the trace. Thread-safe: proxies and supervisors share one book.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "node/observe/recorder.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::node {

using scenarios::Fault;
using scenarios::Site;

class SiteBook {
 public:
  struct Strike {
    std::size_t index = 0;  ///< of the fault in the plan
    Fault fault;
  };
  struct Visit {
    std::uint32_t occurrence = 0;  ///< counts from 1
    std::vector<Strike> strikes;   ///< in plan order; usually empty
  };

  SiteBook(scenarios::Plan plan, Recorder& recorder);

  /// Records `fault.armed` for every planned fault. Call before any service is started.
  void arm();

  /// Something reached this site: counts it and says what strikes. The caller carries the strikes out and reports back.
  Visit visit(const Site& site);

  /// The fault took effect; `evidence` is what its kind's definition demands. Recorded on the lane that was struck.
  /// Firing twice is recorded once.
  void fired(std::size_t index, Value evidence);

  /// The fault's effect is over, and how that is known.
  void undone(std::size_t index, const std::string& how);

  /// Ends the leaf: whatever fired and was not undone is undone by the leaf's end; records the `sites` event.
  void finish();

  /// True when some planned fault may still strike `lane` (or is in effect there).
  bool pending(const std::string& lane) const;

  const scenarios::Plan& plan() const { return plan_; }

 private:
  scenarios::Plan plan_;
  Recorder& recorder_;
  mutable std::mutex mutex_;
  std::map<Site, std::uint32_t> counts_;
  std::set<std::size_t> fired_, undone_;
};

}  // namespace leafcutter::node
