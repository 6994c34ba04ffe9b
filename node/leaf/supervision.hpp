// What the supervisor of one service watches, computed from the plan and from what the scenario wants to be observed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/leaf/context.hpp"
#include "node/leaf/process.hpp"
#include "node/leaf/standstill.hpp"
#include "node/syscalls/supervisor.hpp"

namespace leafcutter::node {

/// Families with a planned fault or an observation, in the order of syscall_families(); empty: the service runs
/// unfiltered.
std::vector<std::string> watched_families(const scenarios::Scenario& scenario, const scenarios::Plan& plan,
                                          const std::string& service);

SupervisorContext supervision_of(LeafContext& context, const std::string& service,
                                 const std::vector<std::string>& families, std::function<void(bool power_lost)> crash);

/// A command that `caller` (a service or the workload) runs: where its dials have to be looked at, they are.
base::Status look_at_dials(LeafContext& context, const std::string& caller, Spawn& spawn);

/// The same for a service's program.
void look_at_dials(LeafContext& context, SupervisorContext& supervisor);

/// Lets the supervisor bring its service to a standstill and end that; while it does, nobody takes the silence for
/// quiescence.
void let_it_pause(SupervisorContext& supervisor, LeafContext& context, const std::shared_ptr<Standstill>& standstill);

}  // namespace leafcutter::node
