// Carries out the steps of a workload, in order, in threads of its own with blocking calls; before each step it waits
// until no service is on its way up, so that what a step meets does not depend on timing.
#pragma once

#include <string>
#include <vector>

#include "node/leaf/child.hpp"
#include "node/leaf/context.hpp"
#include "node/leaf/process_faults.hpp"
#include "node/leaf/quiescence.hpp"
#include "node/leaf/services.hpp"

namespace leafcutter::node {

class Workload {
 public:
  /// `awaiting` is told what comes next, for the message of a leaf that runs out of time.
  Workload(LeafContext& context, Services& services, std::function<void(const std::string&)> awaiting);

  /// All steps, and a settle at the end unless the last step is one. In the calling thread, in the workload's network.
  void run();

 private:
  struct Lane {
    std::string name;
    Value variables;
  };
  struct Outcome {
    std::string outcome = "failed";
    Value reply = Value::object();  ///< what expectations and `save` see
    std::string detail;
    bool expected = true;
  };

  void run_steps(const std::vector<scenarios::Step>& steps, Lane& lane);
  void run_step(const scenarios::Step& step, Lane& lane);
  void repeat(const scenarios::Step& step, Lane& lane);
  void parallel(const scenarios::Step& step, Lane& lane);
  bool wanted(const scenarios::Step& step, Lane& lane);
  void settle(const std::string& lane, std::chrono::nanoseconds quiet, std::chrono::nanoseconds within);
  bool refused(const Endpoints& target) const;
  static Outcome refused_outcome();
  Outcome request(const scenarios::Step& step, const Lane& lane);
  Outcome exchange(const scenarios::Step& step, const Lane& lane);
  Outcome command(const scenarios::Step& step, const Lane& lane);
  void judge(const scenarios::Step& step, const Lane& lane, Outcome& outcome) const;
  void save(const scenarios::Step& step, Lane& lane, Outcome& outcome) const;
  void record(const std::string& lane, Value attrs);
  base::Expected<Endpoints> endpoints(const scenarios::Step& step, std::string& host) const;

  LeafContext& context_;
  Services& services_;
  std::function<void(const std::string&)> awaiting_;
  Quiescence quiescence_;
  ProcessFaults faults_;
};

/// Runs a command in the workload's network with the scenario's folder as working directory; called from a thread that
/// is not the event loop's.
CommandResult run_in_workload(LeafContext& context, const std::vector<std::string>& argv,
                              std::chrono::nanoseconds within);

/// Sets "json" when `body` is JSON.
void add_json(Value& reply, const std::string& body);

}  // namespace leafcutter::node
