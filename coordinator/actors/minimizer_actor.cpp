#include "coordinator/actors/minimizer_actor.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "coordinator/campaign/casebook.hpp"

namespace leafcutter::coordinator {

namespace {

struct MinimizerState {
  static inline const char* name = "minimizer";
  using Self = minimizer_actor::stateful_pointer<MinimizerState>;

  void begin(const std::vector<Result>& known) {
    casebook = Casebook();
    for (const auto& result : known) casebook.remember(result);
  }

  Casebook casebook;
};

minimizer_actor::behavior_type minimizer(MinimizerState::Self self) {
  return {
      [self](begin_atom, const ResultsPtr& known) { self->state.begin(*known); },
      [self](case_atom, const CasesPtr& cases) -> InquiredPtr {
        return std::make_shared<const Inquired>(self->state.casebook.open(*cases));
      },
      [self](result_atom, const ResultPtr& result) -> InquiredPtr {
        return std::make_shared<const Inquired>(self->state.casebook.take(*result));
      },
  };
}

}  // namespace

minimizer_actor spawn_minimizer(caf::local_actor& parent) { return parent.spawn<caf::linked>(minimizer); }

}  // namespace leafcutter::coordinator
