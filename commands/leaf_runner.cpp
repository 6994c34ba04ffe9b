#include "commands/leaf_runner.hpp"

#include <unistd.h>

#include "scenarios/loader.hpp"

namespace leafcutter::commands {

using namespace std::chrono_literals;

base::Expected<std::unique_ptr<LeafRunner>> LeafRunner::start(const Folders& folders,
                                                              const scenarios::Scenario& scenario) {
  auto runner = std::unique_ptr<LeafRunner>(new LeafRunner);
  runner->scenario_ = scenario;
  runner->identity_ = scenarios::identity(scenario);
  auto intake = coordinator::Intake::start("ipc://" + folders.run + "/replay",
                                           [self = runner.get()](coordinator::FinishedTrace trace) {
                                             const std::lock_guard lock(self->mutex_);
                                             self->trace_ = std::move(trace);
                                             self->changed_.notify_all();
                                           });
  if (!intake) return intake.error();
  runner->intake_ = std::move(*intake);
  runner->endpoint_ = runner->intake_->bound_endpoint();
  auto launcher = node::Launcher::start(own_program(), folders.run);
  if (!launcher) return launcher.error();
  runner->launcher_ = std::move(*launcher);
  if (auto given = runner->launcher_->give(scenario, runner->identity_); !given) return given.error();
  return runner;
}

base::Expected<LeafRunner::Run> LeafRunner::run(const std::string& address, const scenarios::Plan& plan) {
  node::LeafJob job;
  job.execution = address + "#r" + std::to_string(++runs_);
  job.address = address;
  job.scenario = identity_;
  job.plan = plan;
  job.events_endpoint = endpoint_;
  job.timeout = scenario_.explore.leaf_timeout;
  {
    const std::lock_guard lock(mutex_);
    trace_.reset();
    exit_.reset();
  }
  intake_->expect(job.execution);
  const auto began = std::chrono::steady_clock::now();
  auto launched = launcher_->launch(job, [this](node::LeafExit exit) {
    const std::lock_guard lock(mutex_);
    exit_ = std::move(exit);
    changed_.notify_all();
  });
  if (!launched) return launched.error();

  std::unique_lock lock(mutex_);
  const auto deadline = began + job.timeout + 15s;
  // A leaf exits only after its last batch was acknowledged, so a clean exit without a trace cannot be.
  if (!changed_.wait_until(lock, deadline, [&] { return exit_.has_value(); })) {
    launcher_->kill(job.execution);
    return base::Error{
        base::ErrorCode::timeout, "the leaf " + address + " did not end within its deadline and 15s more", {}};
  }
  if (!trace_ || !trace_->complete)
    return base::Error{
        base::ErrorCode::internal, "the leaf " + address + " ended without its events: " + exit_->detail, {}};
  auto events = protocols::decode_chunks(trace_->chunks);
  if (!events) return events.error();
  Run result;
  result.wall = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  result.judgement = coordinator::judge(scenario_, plan, *events);
  result.events = std::move(*events);
  return result;
}

}  // namespace leafcutter::commands
