#include "coordinator/actors/judge_actor.hpp"

#include <caf/typed_event_based_actor.hpp>

#include "coordinator/actors/resolution.hpp"

namespace leafcutter::coordinator {

namespace {

judge_actor::behavior_type judge_behaviour() {
  return {
      [](judge_atom, const JudgeTaskPtr& task) -> JudgedPtr {
        auto judged = std::make_shared<Judged>();
        const auto& execution = *task->execution;
        judged->execution = task->execution;
        judged->result = resolve(*task->scenario, execution.order, execution.report, *execution.trace);
        return judged;
      },
  };
}

}  // namespace

judge_actor spawn_judge(caf::local_actor& parent) { return parent.spawn<caf::linked>(judge_behaviour); }

}  // namespace leafcutter::coordinator
