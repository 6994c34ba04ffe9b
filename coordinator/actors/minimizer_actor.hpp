// Confirming and minimizing failures away from the campaign's mailbox: a mailbox around a casebook.
#pragma once

#include <caf/local_actor.hpp>

#include "coordinator/actors/interfaces.hpp"

namespace leafcutter::coordinator {

/// It ends with `parent`.
minimizer_actor spawn_minimizer(caf::local_actor& parent);

}  // namespace leafcutter::coordinator
