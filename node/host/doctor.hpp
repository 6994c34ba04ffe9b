// What this host can do, found out by doing it: each capability has a self-test that must observe its effect before the
// node advertises it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leafcutter::node {

struct Capability {
  std::string name;  ///< "user-namespace", "network-namespace", "syscall-notify", "process-read", ...
  bool seen = false;
  std::string detail;  ///< what was observed, or why not
  std::string remedy;  ///< what would enable it; empty when seen
};

/// Runs every self-test; takes well under a second. Leaves nothing behind. In this order: user-namespace,
/// network-namespace, mount-proc, read-only-root, syscall-notify, process-read, pidfd-getfd, ipc, disk-space (of the
/// folder for temporary files).
std::vector<Capability> examine_host();

/// Whether `folder` has room for `bytes` more.
Capability examine_disk(const std::string& folder, std::uint64_t bytes = std::uint64_t{512} << 20);

}  // namespace leafcutter::node
