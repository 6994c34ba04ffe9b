#include "node/leaf/revival.hpp"

#include <map>
#include <mutex>

#include "base/text.hpp"

namespace leafcutter::node {

std::chrono::nanoseconds RestartBudget::take(Instant now) {
  while (!taken_.empty() && now - taken_.front() >= span_) taken_.pop_front();
  if (taken_.size() >= count_) return span_ - (now - taken_.front());
  taken_.push_back(now);
  return std::chrono::nanoseconds(0);
}

namespace {

class RevivingLauncher final : public Launcher {
 public:
  RevivingLauncher(StartNursery start, std::function<RestartBudget::Instant()> now, std::shared_ptr<Launcher> first)
      : start_(std::move(start)), now_(std::move(now)), current_(std::move(first)) {}

  base::Status give(const scenarios::Scenario& scenario, const std::string& identity) override {
    auto status = attempt([&](Launcher& launcher) { return launcher.give(scenario, identity); });
    if (!status) return status;
    const std::lock_guard lock(mutex_);
    given_.insert_or_assign(identity, scenario);
    return status;
  }

  base::Status launch(const LeafJob& job, OnExit on_exit) override {
    return attempt([&](Launcher& launcher) { return launcher.launch(job, on_exit); });
  }

  /// What ran in an older nursery is dead.
  void kill(const std::string& execution) override { current()->kill(execution); }

 private:
  std::shared_ptr<Launcher> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }

  template <class Do>
  base::Status attempt(const Do& act) {
    const auto launcher = current();
    auto status = act(*launcher);
    if (status || status.error().code != base::ErrorCode::io) return status;
    if (auto revived = revive(launcher, status.error()); !revived) return revived;
    return act(*current());
  }

  /// Unless another thread has done it meanwhile.
  base::Status revive(const std::shared_ptr<Launcher>& lost, const base::Error& why) {
    const std::lock_guard reviving(revive_mutex_);
    if (current() != lost) return base::ok();
    if (const auto pause = budget_.take(now_()); pause.count() > 0)
      return base::Error{base::ErrorCode::unavailable,
                         why.message + "; it has been started again " + std::to_string(nursery_restarts) +
                             " times within " + base::format_duration(nursery_restart_span) +
                             " and is left alone for " +
                             base::format_duration(std::chrono::ceil<std::chrono::seconds>(pause)) +
                             ": look for what ends it (the kernel's log names what ran out of memory)",
                         {}};
    auto fresh = start_();
    if (!fresh) return fresh.error();
    for (const auto& [identity, scenario] : given())
      if (auto status = (*fresh)->give(scenario, identity); !status) return status;
    const std::lock_guard lock(mutex_);
    // Kept until the next one goes: it may be telling what ended with it, in a thread of its own.
    retired_ = std::exchange(current_, std::move(*fresh));
    return base::ok();
  }

  std::map<std::string, scenarios::Scenario> given() const {
    const std::lock_guard lock(mutex_);
    return given_;
  }

  StartNursery start_;
  std::function<RestartBudget::Instant()> now_;
  std::mutex revive_mutex_;
  RestartBudget budget_{nursery_restarts, nursery_restart_span};
  mutable std::mutex mutex_;
  std::map<std::string, scenarios::Scenario> given_;
  std::shared_ptr<Launcher> current_, retired_;
};

}  // namespace

base::Expected<std::unique_ptr<Launcher>> start_reviving(StartNursery start,
                                                         std::function<RestartBudget::Instant()> now) {
  auto first = start();
  if (!first) return first.error();
  return std::unique_ptr<Launcher>(
      std::make_unique<RevivingLauncher>(std::move(start), std::move(now), std::move(*first)));
}

}  // namespace leafcutter::node
