// Makes a freshly cloned process the first one of a small world of its own: user ids, file system, /proc, names of
// hosts. The host stays visible read-only; nothing that is written here outlives the process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node {

inline constexpr const char* leaf_data_root = "/leaf";  ///< a service's data folder is /leaf/<service>

struct IsolationPlan {
  uid_t host_uid = 0;  ///< who we are outside; inside it is user 1000
  gid_t host_gid = 0;
  std::string scenario_folder;                             ///< visible read-only at its own path, wherever that is
  std::string run_folder;                                  ///< visible and writable at its own path
  std::vector<std::pair<std::string, std::string>> hosts;  ///< address, name
  std::vector<std::string> data_folders;                   ///< service names
  bool resolver = false;                                   ///< some programs will ask one, see use_resolver
};

/// A folder beside the data folders, in the same file system, that only the holder of the descriptor can get at: what
/// others see in its place is empty and read-only. Before anything is started that must not see it. Errors:
/// unavailable.
base::Expected<base::UniqueFd> make_hidden_folder(const std::string& name);

/// Where a resolver of the leaf listens, in the network of the program that asks it.
inline constexpr const char* resolver_address = "127.0.0.53";

/// In a program's own mount namespace, after an isolation that was told of it: no names but the host's own in
/// /etc/hosts, so that it looks names up, by DNS alone and at `resolver_address`. Returns an errno or 0; allocates
/// nothing.
int use_resolver() noexcept;

/// Called once in the clone, while it has a single thread. Errors: unavailable, with the step that the kernel refused.
base::Status enter_isolation(const IsolationPlan& plan);

}  // namespace leafcutter::node
