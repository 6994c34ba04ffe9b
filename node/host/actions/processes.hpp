// Processes of this host as actions see them: who one is, and which are the workers of an intent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node::host {

/// A process, told apart from a later one with its number by when it was started.
struct HostProcess {
  pid_t pid = 0;
  std::uint64_t started = 0;  ///< clock ticks since boot
  pid_t session = 0;
  char state = '?';
  std::string name;  ///< comm
};

std::optional<HostProcess> host_process(pid_t pid);

/// The process that a pid file names, held: it is not another with the same number. Errors: unavailable, with what is
/// wrong: no file, no number, no such process, another name, started after the file was written.
struct HeldProcess {
  HostProcess process;
  base::UniqueFd handle;
};
base::Expected<HeldProcess> held_process(const std::string& pid_file, const std::string& name);

/// False when it has gone, or its number is another's now.
bool signal_process_of(pid_t pid, std::uint64_t started, int signal);

/// The words by which a process of ours is known in its command line: ".. host-worker STATE ID ..".
inline constexpr const char* worker_word = "host-worker";

/// Our own processes of that intent, and everything that is in a session that one of them began.
std::vector<HostProcess> workers_of(const std::string& state_folder, const std::string& id,
                                    const std::optional<HostProcess>& session_leader);

}  // namespace leafcutter::node::host
