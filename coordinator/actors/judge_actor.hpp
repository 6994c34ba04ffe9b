// Judging away from the coordinator's mailbox: a trace in, a result out. Several of these share the work.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/local_actor.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <memory>

#include "actors/messages.hpp"
#include "coordinator/actors/intake.hpp"
#include "coordinator/ledger/ledger.hpp"

namespace leafcutter::coordinator {

struct JudgeTask {
  std::uint64_t run = 0;   ///< of the campaign, so that a cancelled one's results are not taken
  bool duplicate = false;  ///< the order is resolved already: only compared
  std::shared_ptr<const scenarios::Scenario> scenario;
  actors::LeafOrder order;
  actors::LeafReport report;
  std::shared_ptr<const FinishedTrace> trace;
};

struct Judged {
  std::shared_ptr<const JudgeTask> task;
  Result result;
};

// Local messages: these never cross the wire.
using TracePtr = std::shared_ptr<const FinishedTrace>;
using JudgeTaskPtr = std::shared_ptr<const JudgeTask>;
using JudgedPtr = std::shared_ptr<const Judged>;

}  // namespace leafcutter::coordinator

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::TracePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::JudgeTaskPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::JudgedPtr)

namespace leafcutter::coordinator {

using judge_atom = caf::atom_constant<caf::atom("judge")>;

/// The JUDGE actor interface (local to a coordinator).
using judge_actor = caf::typed_actor<
    // Judges one execution.
    caf::replies_to<judge_atom, JudgeTaskPtr>::with<JudgedPtr>>;

/// It ends with `parent`.
judge_actor spawn_judge(caf::local_actor& parent);

}  // namespace leafcutter::coordinator
