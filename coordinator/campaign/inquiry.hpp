// What becomes of one failing leaf: is it confirmed (sequentially, beside a fault-free control), what is the smallest
// plan that still fails, does that one fail reliably too. Asks the run book for what it needs and goes on when all of
// it is there.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/campaign/case_file.hpp"
#include "coordinator/campaign/run_book.hpp"
#include "coordinator/minimize/minimize.hpp"

namespace leafcutter::coordinator {

/// Of any purpose, with its plan: what the failing and the passing execution of a finding are chosen from.
struct Evidence {
  Plan plan;
  const Result* result = nullptr;
};

class Inquiry {
 public:
  /// Bounds on one confirmation: runs in all, and runs that came to no verdict.
  static constexpr unsigned most_runs = 40, most_unresolved = 6;

  /// `leaf` is the failing leaf's own result; `explored` what else was explored until then (it stays valid).
  Inquiry(Failure failure, const Result& leaf, std::vector<Evidence> explored);

  /// Goes as far as it can. True when it is concluded.
  bool step(RunBook& book);

  const std::optional<Conclusion>& conclusion() const { return conclusion_; }

 private:
  enum class Stage { confirm, minimize, verify };
  enum class Progress { waits, decided };

  // A plan that is run again until it is clear whether it fails reliably: "#c1", "#c2", ... or "#v<hex>-1", ...
  struct Series {
    std::string run_prefix;
    Plan plan;
    Confirmation test;
    unsigned asked = 0, counted = 0, unresolved = 0;
  };

  Progress advance(RunBook& book, Series& series);
  bool confirm(RunBook& book);
  bool minimize(RunBook& book);
  bool verify(RunBook& book);
  std::optional<Trial> trial(RunBook& book, const Plan& plan);
  const Result* ask(RunBook& book, const std::string& what, Purpose purpose, const Plan& plan);
  Trial judged(const Result& result) const;
  void inform();
  void conclude(const Series& series, bool confirmed);

  Failure failure_;
  std::string avoid_slot_;
  std::vector<Evidence> explored_, tried_;  ///< tried_: by this inquiry, in the order asked for
  Stage stage_ = Stage::confirm;
  Series original_, minimal_;
  bool control_passed_ = false;
  unsigned reruns_ = 1;  ///< of each smaller plan: a failure that comes and goes needs several
  Minimizer minimizer_;
  std::optional<Conclusion> conclusion_;
};

/// How often a failure seen in `fails` of `runs` must be absent to be taken for gone: (passes / runs)^n <= 1/20, at
/// most 6.
unsigned reruns_for(unsigned runs, unsigned fails);

/// The passing execution whose plan differs least from `failing`: one whose trace is kept if there is any, then one
/// whose faults all fired, then a part of the plan, the largest one. nullptr when none passed.
const Evidence* nearest_passing(const Plan& failing, const std::vector<Evidence>& evidence);

}  // namespace leafcutter::coordinator
