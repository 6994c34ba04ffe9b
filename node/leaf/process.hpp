// Starts one program in namespaces of its own inside the leaf. A small init of ours is the first process there: it
// waits for the program, tells how it ended and takes everything that is left with it.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "node/leaf/start_conditions.hpp"

namespace leafcutter::node {

struct Spawn {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::string folder;               ///< working directory
  int network = -1;                 ///< descriptor of the network namespace
  std::vector<sock_filter> filter;  ///< empty: none; else its listener is in Process::listener
  /// Of a command: answers its filtered calls for as long as what it returns is kept.
  std::function<std::shared_ptr<void>(base::UniqueFd listener)> supervise = {};
  StartConditions conditions = {};
  bool asks_resolver = false;  ///< its names of hosts come from the leaf's resolver, see use_resolver
};

/// How a program ended.
struct Ending {
  int status = 0;  ///< exit status, when `signal` is 0
  int signal = 0;
  std::string error;  ///< it never ran: why
};

class Process {
 public:
  /// Called from the leaf's main thread. Blocks only while a filter is handed over and while conditions are imposed.
  /// Errors: io, unavailable (the filter, a condition).
  static base::Expected<Process> start(const Spawn& spawn);

  Process(Process&&) noexcept = default;
  Process& operator=(Process&&) noexcept = default;

  pid_t pid() const { return pid_; }
  int handle() const { return handle_.get(); }  ///< pidfd: readable when no process of it is left
  base::UniqueFd& output() { return output_; }  ///< non-blocking
  base::UniqueFd& errors() { return errors_; }
  base::UniqueFd& listener() { return listener_; }

  /// Of the conditions it was started with.
  const StartEvidence& start_evidence() const { return evidence_; }

  /// SIGKILL to all of it, from any thread.
  void kill() const;

  /// The program itself as the leaf sees it; 0 until it is about to be executed. Not after `reap`.
  pid_t program();

  /// After `handle` became readable.
  Ending reap();

 private:
  Process() = default;
  base::Status impose_conditions(const StartConditions& conditions, const Hold& hold);
  base::Error never_began(const base::Error& error);

  pid_t pid_ = -1, program_ = 0;
  StartEvidence evidence_;
  base::UniqueFd handle_, output_, errors_, reports_, listener_;
};

/// Has the program begun to exit? Its connections are closed before anyone can wait for it, so this tells the end of a
/// service at least as early as its peers can see it.
bool is_exiting(pid_t program);

/// PATH, HOME, TMPDIR and LANG; what is in `own` wins.
std::map<std::string, std::string> program_environment(const std::string& home,
                                                       const std::map<std::string, std::string>& own);

}  // namespace leafcutter::node
