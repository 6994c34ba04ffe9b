// What this host can do, found out by doing it: each capability has a self-test that must observe its effect before the
// node advertises it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::node {

struct Capability {
  std::string name;  ///< "user-namespace", "network-namespace", "syscall-notify", "process-read", ...
  bool seen = false;
  std::string detail;  ///< what was observed, or why not
  std::string remedy;  ///< what would enable it; empty when seen
  /// The fault kinds that alone need it: "clock-offset". Empty: every leaf does.
  std::string only_for = {};
};

/// Runs every self-test; takes well under a second. Leaves nothing behind. In this order: user-namespace,
/// network-namespace, mount-proc, read-only-root, syscall-notify, process-read, pidfd-getfd, ipc, time-namespace,
/// process-limit, disk-space (of the folder for temporary files).
std::vector<Capability> examine_host();

/// Whether this host can carry out every fault of a plan, as far as more is needed than every leaf needs: its
/// self-tests are run then. Called while the process has a single thread. Errors: unavailable, naming fault and reason.
base::Status can_carry_out(const scenarios::Plan& plan);

/// Whether `folder` has room for `bytes` more.
Capability examine_disk(const std::string& folder, std::uint64_t bytes = std::uint64_t{512} << 20);

}  // namespace leafcutter::node
