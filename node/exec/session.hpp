// One program under the rules of a plan, on the host itself: no scenario, no namespaces, no root. Its files, network,
// terminal and environment are the caller's own.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/observe/recorder.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::node {

/// The lane of everything that the program does.
inline constexpr const char* program_lane = "program";

/// Kinds of events that there are.
const std::vector<std::string>& session_events();

struct SessionJob {
  std::vector<std::string> argv;
  std::string folder;                ///< working folder, absolute; paths of rules are relative to it
  std::string data;                  ///< folder whose unsynced content a power loss takes, absolute; empty: none
  scenarios::Plan plan;              ///< rules of program_lane
  std::vector<std::string> observe;  ///< families whose sites are watched though no rule asks for them
  bool every_event = false;          ///< `syscall` events without a limit
  bool ignore_pipe = false;          ///< SIGPIPE is ignored when the program begins
};

struct SessionResult {
  int status = 0;            ///< of the program: its exit status, when `signal` is 0
  int signal = 0;            ///< that killed it
  std::string not_executed;  ///< it never ran: why; `status` is 126, or 127 when it was not found
  std::string power_loss;    ///< what one took from the data folder; empty: there was none
  bool supervised = false;   ///< it ran under a filter
};

/// Returns when nothing of the program is left. Single-threaded callers only. Signals that are sent to us go to the
/// program. Errors: unavailable (the host refuses the filter), io, internal (the supervisor failed and the program was
/// ended).
base::Expected<SessionResult> run_session(const SessionJob& job, Recorder::Sink sink);

}  // namespace leafcutter::node
