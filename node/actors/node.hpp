// The node actor and its slots: thin mailboxes around a Launcher and a Courier.
#pragma once

#include <caf/actor_system.hpp>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "node/actors/courier.hpp"
#include "node/leaf/launcher.hpp"

namespace leafcutter::node {

struct NodeOptions {
  std::string name;
  std::uint32_t slots = 1;
  std::vector<std::string> capabilities;
  std::uint64_t incarnation = 0;
};

/// Spawns a node that works for `coordinator`: says hello, asks for work, runs what it is leased, renews, and says hello again
/// after a lost connection when `reconnect` yields a new handle (remote coordinators).
actors::node_actor spawn_node(caf::actor_system& system, NodeOptions options, std::shared_ptr<Launcher> launcher,
                              std::shared_ptr<Courier> courier, actors::coordinator_actor coordinator);

}  // namespace leafcutter::node
