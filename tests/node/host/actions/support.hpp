// A host of a test's own: a profile over its folder, a state folder, processes that it may signal, and what is seen of
// it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "node/host/actions/action.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::node::host::testing {

class Host {
 public:
  /// `more` is added to the profile.
  explicit Host(const std::string& more = "");
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  /// Whatever is left is undone, and its keeper has ended.
  ~Host();

  std::string operator/(const std::string& name) const { return folder_ / name; }
  std::string state_folder() const { return folder_ / "state"; }
  State state() const { return *State::open(state_folder()); }
  Profile profile() const;

  ActionResult run(const Request& request, ActionOptions options = {}) const;
  /// In a process of its own, which is killed when it has got to that step; true when it got there.
  bool run_and_die(const Request& request, Step step) const;

  /// What an action could have changed, in words; equal before and after.
  std::string snapshot() const;
  /// Until it is that again; the empty text, or what differs.
  std::string wait_for_snapshot(const std::string& wanted, std::chrono::milliseconds patience) const;

  void kill_keeper() const;
  bool keeper_runs() const;
  std::string audit_flaw() const;
  std::vector<protocols::AuditRecord> audit() const;

  /// A process that sleeps, with a pid file: what "sleeper" of the profile names.
  pid_t start_sleeper() const;
  void stop_sleeper() const;

 private:
  tests::Folder folder_;
  std::string profile_text_;
  mutable pid_t sleeper_ = -1;
};

std::string program();
ActionOptions options_of_test();

/// In user and network namespaces of its own, in a process of its own; what `body` returns, or why it could not.
std::string in_own_network(const std::function<std::string()>& body);

}  // namespace leafcutter::node::host::testing
