// An execution that a campaign wants to have run.
#pragma once

#include <string>

#include "coordinator/ledger/ledger.hpp"

namespace leafcutter::coordinator {

/// An execution to run. Names are `<address>#<what>`, and every attempt has its own:
///   `#0`             an explored leaf; `#1`, `#2`: again, after its node or runner failed
///   `#c1`, `#c2`...  the leaf's plan again, to confirm its failure
///   `#k1`            without faults, at the same time: the control
///   `#m<hex>-1`      a smaller plan, while minimizing (digits of its digest, n-th run)
///   `#v<hex>-1`      the minimal plan again, to confirm it
/// A later attempt at anything but an explored leaf ends in `.1`, `.2`.
struct Order {
  std::string execution;
  scenarios::Address address;  ///< of the explored leaf that it is or serves
  Purpose purpose = Purpose::explore;
  scenarios::Plan plan;
  std::string avoid_slot;  ///< Result::node of the run that it repeats, or empty
};

/// The name of the next attempt at the same thing: `a/1/2#0` -> `a/1/2#1`, `a/1/2#c1` -> `a/1/2#c1.1`. For whoever
/// loses an execution before it has a result; a run book takes a result under any attempt's name.
std::string next_attempt(const std::string& execution);

}  // namespace leafcutter::coordinator
