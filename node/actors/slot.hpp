// A slot: one leaf at a time. It launches a leaf process, waits for its end, has its stream closed and answers.
#pragma once

#include <caf/local_actor.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "actors/messages.hpp"
#include "node/actors/courier.hpp"
#include "node/leaf/launcher.hpp"

namespace leafcutter::node {

/// What a leaf may take beyond its own deadline before it is killed, and a killed one before it is given up.
inline constexpr std::chrono::seconds leaf_grace{5};

/// `name`: "node/slot". It ends with `parent`, and its leaf with it.
actors::slot_actor spawn_slot(caf::local_actor& parent, std::string name, std::shared_ptr<Launcher> launcher,
                              std::shared_ptr<Courier> courier);

}  // namespace leafcutter::node
