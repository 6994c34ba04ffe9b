// Judging away from the campaign's mailbox: an execution in, a result out. Several of these share the work.
#pragma once

#include <caf/local_actor.hpp>

#include "coordinator/actors/interfaces.hpp"

namespace leafcutter::coordinator {

/// It ends with `parent`.
judge_actor spawn_judge(caf::local_actor& parent);

}  // namespace leafcutter::coordinator
