// Names what a system call acts on: the file of a descriptor or a path, the peer of a socket; and decides by it which
// family the call belongs to, since write(2) serves files and sockets alike.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/syscalls/calls.hpp"
#include "node/syscalls/resource.hpp"
#include "node/syscalls/target.hpp"
#include "scenarios/aim.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::node {

/// What is found out about a call. The second half only where a rule of the plan could select the call: it costs.
struct Object {
  enum class State {
    no_site,  ///< nothing that could be struck: a family that is not watched, a pipe or system file no rule asks for
    site,
    elsewhere,   ///< no site, but a rule may select it: a pipe, a datagram socket, a file of another folder
    unresolved,  ///< what it is could not be found out, so nothing may strike; `why` says more
  };
  State state = State::no_site;
  std::string call;
  std::string family;
  std::string resource;
  std::string path;  ///< the path or the peer's address, unclassed
  bool socket = false;
  std::string why;
  int descriptor = none;  ///< the argument that names it, where one does

  std::string kind;           ///< one of scenarios::object_classes()
  std::string peer, address;  ///< of sockets; a unix socket's is "unix:" and the name that one of its ends has
  std::string socket_path;    ///< of a unix socket in the file system
  std::optional<std::uint64_t> size, offset;
  std::uint64_t flags = 0;
  std::string doubt;  ///< something that a rule asks for could not be found out, so that rule does not strike: why

  /// What the task's link for the descriptor read, when nothing else decides what the call acts on, whatever else it
  /// asks for (passing.hpp); empty: it must be looked at every time.
  std::string known_as;
  std::string under;  ///< where that holds for tasks with this root folder only: the folder

  /// Views of this object.
  scenarios::CallFacts facts() const;
};

class ObjectNames {
 public:
  /// As in SupervisorContext. `plan` says which facts the rules for `service` ask for.
  ObjectNames(const std::string& data_folder, std::vector<std::string> path_globs,
              std::map<std::string, std::string> peers, const std::vector<std::string>& families,
              const scenarios::Plan& plan, const std::string& service);

  /// Of a call that moves bytes: where they go to.
  Object name(const seccomp_data& call, const Target& target) const;

  /// Where they come from, when a family is watched that means that.
  std::optional<Object> name_source(const seccomp_data& call, const Target& target) const;

  /// Some rule of the plan could select calls of this family.
  bool aimed_at(const std::string& family) const { return !asked_.empty() && asked_.contains(family); }

 private:
  struct Watched {
    const CallShape* shape = nullptr;
    int fd = none;            ///< of its arguments: the descriptor that is meant
    std::string file_family;  ///< the family it belongs to when it acts on a file; empty: none that is watched
    std::string socket_family;
  };
  /// What the rules of a family ask for, beside path and peer.
  struct Asked {
    bool kind = false, size = false, offset = false, flags = false;
  };
  struct Place {
    std::string path;
    bool by_kernel = false;  ///< as the task's mount namespace has it, which chroot does not change
  };

  Object named(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_shape(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_descriptor(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_named(const Watched& watched, const std::string& name, const seccomp_data& call,
                  const Target& target) const;
  Object of_path(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_address(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_unix_address(const Watched& watched, const std::string& address, const Target& target) const;
  Object of_mapping(const Watched& watched, const seccomp_data& call, const Target& target) const;
  Object of_nothing(const Watched& watched, const seccomp_data& call) const;
  Object of_file(const Watched& watched, const Place& place, const Target& target) const;
  Object of_socket(const Watched& watched, const seccomp_data& call, const Target& target) const;
  /// Puts address and peer, and for a unix socket its path, into the object.
  void set_address(Object& object, std::string address) const;
  void set_datagram_address(Object& object, const seccomp_data& call, const Target& target, int socket) const;
  void ask(Object& object, const Watched& watched, const seccomp_data& call, const Target& target) const;
  /// A link into the data folder's real place is the data folder as the service sees it.
  std::string as_seen(const std::string& path) const;
  /// A link's text says all about `object`, found by it.
  bool told_by_name(const Object& object) const;

  std::string data_folder_, real_data_folder_;
  mutable ResourceClasses classes_;
  std::map<std::string, std::string> peers_;
  std::map<int, Watched> watched_;
  std::map<int, Watched> sources_;      ///< of calls that move bytes: where they come from
  std::map<std::string, Asked> asked_;  ///< by family, of the rules for this service
};

}  // namespace leafcutter::node
