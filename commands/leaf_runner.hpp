// Runs single plans and judges them, without coordinator, ledger or database: for `replay` and for the probe of `plan`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "commands/folders.hpp"
#include "coordinator/actors/intake.hpp"
#include "coordinator/judge/judge.hpp"
#include "node/leaf/launcher.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::commands {

class LeafRunner {
 public:
  struct Run {
    coordinator::Judgement judgement;
    std::vector<protocols::Event> events;
    std::chrono::milliseconds wall{0};
  };

  static base::Expected<std::unique_ptr<LeafRunner>> start(const Folders& folders, const scenarios::Scenario& scenario);

  /// One execution of `plan`. Errors: the runner's own failures; how the leaf went is in the judgement.
  base::Expected<Run> run(const std::string& address, const scenarios::Plan& plan);

 private:
  LeafRunner() = default;
  scenarios::Scenario scenario_;
  std::string identity_, endpoint_;
  std::unique_ptr<coordinator::Intake> intake_;
  std::unique_ptr<node::Launcher> launcher_;
  unsigned runs_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<coordinator::FinishedTrace> trace_;
  std::optional<node::LeafExit> exit_;
};

}  // namespace leafcutter::commands
