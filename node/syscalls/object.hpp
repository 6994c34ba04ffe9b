// Names what a system call acts on: the file of a descriptor or a path, the peer of a socket; and decides by it which
// family the call belongs to, since write(2) serves files and sockets alike.
#pragma once

#include <linux/seccomp.h>

#include <map>
#include <string>
#include <vector>

#include "node/syscalls/calls.hpp"
#include "node/syscalls/target.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {

struct Object {
  enum class State {
    no_site,  ///< a pipe, a system file, a family that is not watched: let it run, say nothing
    site,
    unresolved,  ///< what it is could not be found out, so nothing may strike; `why` says more
  };
  State state = State::no_site;
  std::string call;
  std::string family;
  std::string resource;
  std::string path;  ///< the path or the peer's address, unclassed
  bool socket = false;
  std::string why;
};

class ObjectNames {
 public:
  /// As in SupervisorContext.
  ObjectNames(const std::string& data_folder, std::vector<std::string> path_globs,
              std::map<std::string, std::string> peers, const std::vector<std::string>& families);

  Object name(const seccomp_data& call, const Target& target) const;

 private:
  struct Watched {
    const CallShape* shape = nullptr;
    std::string file_family;  ///< the family it belongs to when it acts on a file; empty: none that is watched
    std::string socket_family;
  };

  Object of_descriptor(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_path(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_address(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_mapping(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_file(const Watched& watched, const std::string& path) const;
  Object of_socket(const Watched& watched, int fd, const Target& target) const;
  /// A link into the data folder's real place is the data folder as the service sees it.
  std::string as_seen(const std::string& path) const;
  std::string peer(const std::string& address) const;

  std::string data_folder_, real_data_folder_;
  std::vector<std::string> path_globs_;
  std::map<std::string, std::string> peers_;
  std::map<int, Watched> watched_;
};

}  // namespace leafcutter::node
