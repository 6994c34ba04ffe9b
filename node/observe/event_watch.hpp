// Which faults of a plan wait for an event: rules with an `after`, and holds with an `until`. Told of every event as it
// is recorded, it says so to the site book.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/observe/site_book.hpp"
#include "scenarios/predicate.hpp"

namespace leafcutter::node {

/// Used under the recorder's lock: it records nothing and waits for nothing.
class EventWatch {
 public:
  /// Errors: bad_input (a pattern that does not read as one; a plan that was checked has none).
  static base::Expected<EventWatch> create(const scenarios::Plan& plan);

  /// Nothing waits for any event.
  bool idle() const { return watches_.empty(); }

  void see(const protocols::Event& event, SiteBook& sites);

 private:
  struct Watch {
    std::size_t fault = 0;
    bool releases = false;  ///< a hold; else a rule that waits, until it was seen once
    scenarios::CompiledPattern pattern;
  };
  std::multimap<std::string, Watch, std::less<>> watches_;  ///< by the kind of event
};

}  // namespace leafcutter::node
