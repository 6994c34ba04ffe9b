// What this host can do, found out by doing it: each capability has a self-test that must observe its effect before the
// node advertises it.
#pragma once

#include <string>
#include <vector>

namespace leafcutter::node {

struct Capability {
  std::string name;      ///< "user-namespace", "network-namespace", "syscall-notify", "process-read", ...
  bool seen = false;
  std::string detail;    ///< what was observed, or why not
  std::string remedy;    ///< what would enable it; empty when seen
};

/// Runs every self-test; takes well under a second. Leaves nothing behind.
std::vector<Capability> examine_host();

}  // namespace leafcutter::node
