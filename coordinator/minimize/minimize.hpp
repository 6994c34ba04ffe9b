// From a failing plan to one that is 1-minimal: no single fault can be left out, and each fault is the simplest of its class
// that still fails. A state machine without clocks or I/O: it says which plans to try next (a whole round at once) and is
// told how they went; the lowest-index failure of a round is committed, so the result does not depend on how many ran at a time.
// ddmin: Zeller and Hildebrandt, TSE 2002; up to 3 faults all proper subsets are tried directly.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/plan.hpp"

namespace leafcutter::coordinator {

enum class Trial { fails, passes, unresolved };

class Minimizer {
 public:
  /// `plan` failed. `attempts` bounds the executions.
  explicit Minimizer(scenarios::Plan plan, std::size_t attempts = 64);

  /// The plans whose outcome is needed now, none of them tried before; empty when done.
  std::vector<scenarios::Plan> next() const;

  /// Outcomes for exactly the plans of next(), in that order. `fails` means: the same failure.
  void tell(const std::vector<Trial>& outcomes);

  bool done() const;
  const scenarios::Plan& best() const;   ///< the smallest failing plan so far
  bool one_minimal() const;              ///< every removal of a single fault was tried and did not fail
  std::size_t executions() const;

 private:
  struct Candidate {
    scenarios::Plan plan;
  };
  void plan_round();
  scenarios::Plan best_;
  std::size_t attempts_, executions_ = 0;
  std::map<std::string, Trial> tried_;   ///< by plan digest
  std::vector<scenarios::Plan> round_;
  int stage_ = 0;
  bool one_minimal_ = false;
};

/// Sequential probability ratio test of "this plan fails reliably" (H1: rate >= 0.5) against "it does not" (H0: <= 0.02),
/// both errors 1 %: a failure adds 3.22, a pass takes 0.67, decided beyond +-4.60 (Wald 1945). Integer arithmetic.
class Confirmation {
 public:
  enum class State { undecided, confirmed, rejected };
  void add(bool failed);
  State state() const;
  unsigned runs() const { return fails_ + passes_; }
  unsigned fails() const { return fails_; }

 private:
  unsigned fails_ = 0, passes_ = 0;
};

/// Groups failing leaves: same property violated and same canonical fault list (kind, site) after minimization. 12 hex digits.
std::string signature(const std::string& property, const scenarios::Plan& minimal);

}  // namespace leafcutter::coordinator
