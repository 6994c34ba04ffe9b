// Which leaf runs in which slot of a node: leases wait here until a slot that may run them is free. Values and
// functions.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.hpp"

namespace leafcutter::node {

class Workbench {
 public:
  struct Task {
    actors::LeafOrder order;
    std::uint64_t session = 0, fence = 0;
  };
  struct Start {
    std::size_t slot = 0;
    Task task;
  };
  struct Running {
    std::size_t slot = 0;
    std::string execution;
  };

  Workbench(std::string node, std::uint32_t slots);

  std::string slot_name(std::size_t slot) const { return node_ + "/" + std::to_string(slot + 1); }
  std::size_t slots() const { return busy_.size(); }

  void add(const actors::Lease& lease);

  /// What can start now; the slots are busy from here on.
  std::vector<Start> start();

  /// The slot is free again. Its task, unless that was cancelled meanwhile.
  std::optional<Task> finished(std::size_t slot);

  /// Forgets a fence's tasks; those that run are to be killed.
  std::vector<Running> cancel(std::uint64_t fence);
  std::vector<Running> cancel_all();
  /// Forgets what has not started.
  void drop_waiting() { waiting_.clear(); }

  /// Slots for which there is nothing to do.
  std::uint32_t free() const;
  bool idle() const;

 private:
  struct Slot {
    bool busy = false;
    std::optional<Task> task;  ///< nothing while a cancelled leaf is being killed
  };
  std::optional<std::size_t> slot_for(const actors::LeafOrder& order) const;

  std::string node_;
  std::vector<Slot> busy_;
  std::deque<Task> waiting_;
};

}  // namespace leafcutter::node
