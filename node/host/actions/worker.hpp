// What a worker of an action does: compute, hold memory, or attend to one command. It reads its intent, does nothing
// without one, and ends by itself when the intent's time is over.
#pragma once

#include <string>

#include "node/host/actions/execute.hpp"
#include "node/host/actions/intent.hpp"

namespace leafcutter::node::host {

/// The descriptor on which the worker of a command reports its end.
inline constexpr int report_fd = 3;

int run_worker(const State& state, const std::string& id);

/// Starts the worker of a command and waits for its report: "lost" when none comes. `stop`: as in ExecuteOptions.
CommandEnd run_under_worker(const State& state, const std::string& program, const Intent& intent, int stop);

}  // namespace leafcutter::node::host
