#include "node/leaf/probe.hpp"

#include <algorithm>
#include <thread>

#include "node/leaf/network.hpp"

namespace leafcutter::node {

struct Probe::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool dropped = false;
  std::string failure;
};

std::chrono::milliseconds next_pause(std::chrono::milliseconds pause) {
  return std::min(2 * pause, std::chrono::milliseconds(50));
}

std::shared_ptr<Probe> Probe::start(int network, int home, Attempt attempt, Deadline deadline,
                                    std::function<void()> ready) {
  auto probe = std::make_shared<Probe>();
  auto state = std::make_shared<State>();
  probe->state_ = state;
  std::thread([=, attempt = std::move(attempt), ready = std::move(ready)] {
    const EnterNetwork inside(network, home);
    auto pause = first_pause;
    while (std::chrono::steady_clock::now() < deadline) {
      const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(2);
      auto status = inside.status() ? attempt(std::min(deadline, patience)) : inside.status();
      std::unique_lock lock(state->mutex);
      if (state->dropped) return;
      if (status) {
        lock.unlock();
        return ready();
      }
      state->failure = status.error().message;
      if (state->changed.wait_for(lock, pause, [&] { return state->dropped; })) return;
      pause = next_pause(pause);
    }
  }).detach();
  return probe;
}

Probe::~Probe() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->dropped = true;
  state_->changed.notify_all();
}

std::string Probe::last_failure() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failure;
}

}  // namespace leafcutter::node
