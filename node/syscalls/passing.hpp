// Calls that pass, and nobody is told: nearly all that are notified. A program uses the same few descriptors again and
// again, and each of its calls waits for the answer; so what a descriptor was found to be is remembered, and one call
// of the kernel tells whether it still is.
#pragma once

#include <linux/seccomp.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "node/syscalls/listener.hpp"
#include "node/syscalls/object.hpp"
#include "node/syscalls/supervisor.hpp"

namespace leafcutter::node {

/// One of the kernel's links to what a task has: /proc/TASK/fd/N, /proc/TASK/root. Its text names the file of this
/// moment, or nothing once the task has gone, whoever has its number then.
class TaskLink {
 public:
  /// Not usable when the task, its descriptor, or a free descriptor of ours is missing.
  static TaskLink open(std::uint32_t task, const std::string& what);

  bool usable() const { return static_cast<bool>(link_); }
  bool reads(std::string_view text) const;

 private:
  base::UniqueFd link_;
};

/// Used by the supervisor's thread only. What is remembered is a belief of `believed` calls at most, and it decides
/// nothing but that a call passes: whatever strikes, is recorded or fails is looked at afresh.
class Passing {
 public:
  Passing(Listener& listener, const SupervisorContext& context) : listener_(listener), context_(context) {}

  /// True when the call was recognized, counted and let run. Errors: the listener's.
  base::Expected<bool> lets_run(const seccomp_notif& notification);

  /// The call passes: `object` is what it was found to act on, `standing` the site that it was counted at, if any. To
  /// be called while its task waits. Only what is met twice takes a place.
  void learn(const seccomp_notif& notification, const Object& object, SiteBook::Standing standing, bool moves);

 private:
  static constexpr std::size_t places = 128;  ///< descriptors of tasks; each may take two descriptors of ours
  static constexpr unsigned believed = 1024;

  struct Known {
    int number = 0;
    bool moves = false;  ///< the service does something, which its quiet is measured by
    SiteBook::Standing standing;
  };
  struct Place {
    std::uint32_t task = 0;
    std::uint64_t descriptor = 0;
    std::string text;   ///< what the link read when the object was found
    TaskLink link;      ///< not usable: met once
    TaskLink root;      ///< of the task, where the object depends on it
    std::string under;  ///< what that read
    unsigned left = 0;
    std::vector<Known> known;  ///< by call
  };
  Place& place_of(std::uint32_t task, std::uint64_t descriptor);
  static bool holds(const Place& place);

  Listener& listener_;
  const SupervisorContext& context_;
  std::array<Place, places> places_;
};

}  // namespace leafcutter::node
