// The node actor and its slots: thin mailboxes around a Launcher and a Courier.
#pragma once

#include <caf/actor_system.hpp>
#include <functional>
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
  std::function<void(const std::string&)> on_news =
      {};  ///< a sentence for people, from the node's thread: connected, refused, ...
};

/// Spawns a node that works for `coordinator`: says hello, asks for work, runs what it is leased and renews. It ends
/// when it is drained, when it is refused, or when the coordinator ends.
actors::node_actor spawn_node(caf::actor_system& system, NodeOptions options, std::shared_ptr<Launcher> launcher,
                              std::shared_ptr<Courier> courier, actors::coordinator_actor coordinator);

/// The same for a coordinator that is published at host:port by another process (the system has a network). It is
/// dialled until it is there, and again when the connection is lost; what ran meanwhile is stopped, for it has been
/// leased to others.
actors::node_actor connect_node(caf::actor_system& system, NodeOptions options, std::shared_ptr<Launcher> launcher,
                                std::shared_ptr<Courier> courier, const std::string& host, std::uint16_t port);

}  // namespace leafcutter::node
