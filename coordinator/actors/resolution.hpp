// From what came back about an execution, its node's report and its trace, to the result that is remembered.
#pragma once

#include "actors/messages.hpp"
#include "coordinator/actors/intake.hpp"
#include "coordinator/ledger/ledger.hpp"

namespace leafcutter::coordinator {

/// Judged by its trace when the leaf ended by itself and the trace is whole; otherwise INFRA(runner_failed), with what
/// is known. Never throws.
Result resolve(const scenarios::Scenario& scenario, const actors::LeafOrder& order, const actors::LeafReport& report,
               const FinishedTrace& trace);

/// For an order that was lost with its nodes as often as it may be.
Result lost(const actors::LeafOrder& order);

actors::LeafOrder to_leaf_order(std::string execution, const scenarios::Address& address, Purpose purpose,
                                const scenarios::Plan& plan, std::string avoid_slot);

}  // namespace leafcutter::coordinator
