// The leaf process: what runs in the clone, from isolation to the last acknowledged event.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "node/leaf/job.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

struct LeafStart {
  const LeafJob& job;
  const scenarios::Scenario& scenario;
  std::string run_folder;
  uid_t host_uid = 0;  ///< ours outside the user namespace
  gid_t host_gid = 0;
  base::UniqueFd outlet;               ///< the leaf's end of its outlet's channel; none: nothing may leave it
  std::optional<base::Error> refused;  ///< set: the host gave us no namespaces; the leaf only says so
};

/// Runs the leaf and ends the process: exit 0 when every event is acknowledged. Nothing is torn down; what is left goes
/// with the namespaces.
[[noreturn]] void run_leaf(LeafStart start);

}  // namespace leafcutter::node
