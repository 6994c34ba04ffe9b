// From a failing plan to one that is 1-minimal: no single fault can be left out, and each fault is the simplest of its
// class that still fails. A state machine without clocks or I/O: it says which plans to try next (a whole round at
// once) and is told how they went; the lowest-index failure of a round is committed, so the result does not depend on
// how many ran at a time. ddmin: Zeller and Hildebrandt, TSE 2002; up to 3 faults all proper subsets are tried
// directly.
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
  /// `plan` failed. `attempts` bounds the executions. The plan without faults is never tried: that is the control's
  /// business.
  explicit Minimizer(scenarios::Plan plan, std::size_t attempts = 64);

  /// An outcome that is known already, from exploring say; it costs no execution. Before the first next().
  void know(const scenarios::Plan& plan, Trial trial);

  /// The plans whose outcome is needed now, none of them tried or known before; empty when done.
  const std::vector<scenarios::Plan>& next();

  /// Outcomes for exactly the plans of next(), in that order. `fails` means: the same failure.
  void tell(const std::vector<Trial>& outcomes);

  bool done();
  const scenarios::Plan& best() const { return best_; }  ///< the smallest failing plan so far
  bool one_minimal() const;  ///< every removal of a single fault was tried or known, and passed
  std::size_t executions() const { return executions_; }

 private:
  enum class Stage { reduce, kinds, durations, check, done };
  std::vector<scenarios::Plan> candidates() const;
  bool commit(const std::vector<scenarios::Plan>& tried);
  void exhausted();
  void settle();
  const Trial* outcome(const scenarios::Plan& plan) const;

  scenarios::Plan best_;
  std::size_t attempts_, executions_ = 0;
  std::map<std::string, Trial> tried_;  ///< by plan digest
  std::vector<scenarios::Plan> round_;  ///< what is awaited
  Stage stage_ = Stage::reduce;
  std::size_t granularity_ = 2;     ///< reduce, more than 3 faults: into how many parts
  std::size_t size_ = 1;            ///< reduce, at most 3 faults: subsets of how many
  std::vector<unsigned> halvings_;  ///< durations: how often each fault's were halved
};

/// Sequential probability ratio test of "this plan fails reliably" (H1: rate >= 0.5) against "it does not" (H0: <=
/// 0.02), both errors 1 %: a failure adds 3.22, a pass takes 0.67, decided beyond +-4.60 (Wald 1945). Integer
/// arithmetic.
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

/// Groups failing leaves: same property violated and same canonical fault list (kind, site) after minimization. 12 hex
/// digits.
std::string signature(const std::string& property, const scenarios::Plan& minimal);

}  // namespace leafcutter::coordinator
