#include "coordinator/minimize/minimize.hpp"

namespace leafcutter::coordinator {
namespace {

// Hundredths of ln(0.5 / 0.02), ln(0.98 / 0.5) and ln(0.99 / 0.01).
constexpr long failure_adds = 322, pass_takes = 67, decided_beyond = 460;

}  // namespace

void Confirmation::add(bool failed) { ++(failed ? fails_ : passes_); }

Confirmation::State Confirmation::state() const {
  const auto score = failure_adds * static_cast<long>(fails_) - pass_takes * static_cast<long>(passes_);
  if (score >= decided_beyond) return State::confirmed;
  if (score <= -decided_beyond) return State::rejected;
  return State::undecided;
}

}  // namespace leafcutter::coordinator
