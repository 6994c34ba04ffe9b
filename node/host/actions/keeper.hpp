// The keeper: a process of its own that outlives whoever started it, reads the intents of a state folder, and undoes
// each when its time is over, whatever has become of the node, its coordinator or the network. It ends when nothing is
// left.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/host/actions/effect.hpp"
#include "node/host/actions/intent.hpp"
#include "node/host/audit_log.hpp"

namespace leafcutter::node::host {

/// Undoes one intent, sees it gone, notes it in the audit log and forgets it; the caller holds it. Errors: what is
/// left; the intent stays, and it can be tried again.
base::Status undo_intent(const Intent& intent, const EffectContext& context, const std::string& who);

struct Recovery {
  std::vector<std::string> undone;  ///< ids
  std::vector<std::string> held;    ///< by a process that is still at it; not overdue
  std::vector<std::string> left;    ///< id and why
};
/// What is overdue or whose actor has gone (`all`: whatever is not held). From any state.
Recovery recover(const State& state, const std::string& program, bool all);

/// Starts one unless there is one; returns when it watches. The caller holds the state's lock. Errors: timeout, io.
base::Status start_keeper(const State& state, const std::string& program);
/// A pidfd of it; none when there is none.
base::UniqueFd keeper_of(const State& state);

/// What `program host-keeper STATE` and `program host-worker STATE ID` do; an exit status. From main(), before anything
/// else: 0 < argc, and nothing for other command lines.
bool is_host_process(int argc, char** argv);
int run_host_process(int argc, char** argv);

}  // namespace leafcutter::node::host
