#include "node/links/engine_host.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace leafcutter::node {
namespace {

bool takes_time(const proxy::Fault& fault) {
  return std::holds_alternative<proxy::Latency>(fault.effect) || std::holds_alternative<proxy::Jitter>(fault.effect) ||
         std::holds_alternative<proxy::Bandwidth>(fault.effect) || std::holds_alternative<proxy::Slice>(fault.effect) ||
         std::holds_alternative<proxy::Reorder>(fault.effect);
}

}  // namespace

base::Status EngineHost::add(proxy::LinkConfig config, Hear hear) {
  {
    const std::lock_guard lock(starting_);
    if (stopped_) return base::Error{base::ErrorCode::unavailable, "the network fault engine has stopped", {}};
    if (!engine_) {
      proxy::EngineOptions options;
      options.immediate = true;
      options.hook = [this](const proxy::Event& event) { heard(event); };
      auto engine = proxy::Engine::start(std::move(options));
      if (!engine)
        return base::Error{base::ErrorCode::unavailable, "network fault engine: " + engine.error().message, {}};
      engine_ = std::move(*engine);
    }
  }
  const auto name = config.name;
  {
    const std::lock_guard lock(mutex_);
    if (!hears_.emplace(name, std::move(hear)).second)
      return base::Error{base::ErrorCode::conflict, "the engine has a link \"" + name + "\" already", {}};
    if (std::any_of(config.faults.faults.begin(), config.faults.faults.end(), takes_time)) slow_.insert(name);
  }
  const auto added = engine_->add_link(std::move(config));
  if (added) return base::ok();
  const std::lock_guard lock(mutex_);
  hears_.erase(name);
  slow_.erase(name);
  return added.error();
}

void EngineHost::remove(const std::string& name) {
  if (engine_) static_cast<void>(engine_->remove_link(name));
  const std::lock_guard lock(mutex_);
  hears_.erase(name);
  slow_.erase(name);
}

std::vector<std::string> EngineHost::holding() {
  proxy::Engine* engine = nullptr;
  {
    const std::lock_guard lock(starting_);
    if (!stopped_) engine = engine_.get();
  }
  std::vector<std::string> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.assign(slow_.begin(), slow_.end());
  }
  if (engine == nullptr) return {};
  std::erase_if(asked, [&](const std::string& name) {
    const auto stats = engine->stats(name);
    return !stats || stats->held_bytes == 0;
  });
  return asked;
}

base::Status EngineHost::set_faults(std::map<std::string, proxy::FaultSet> sets) {
  return sets.empty() ? base::ok() : engine_->set_faults(std::move(sets));
}

void EngineHost::stop() {
  {
    const std::lock_guard lock(starting_);
    if (std::exchange(stopped_, true)) return;
  }
  if (engine_) engine_->stop();
}

void EngineHost::heard(const proxy::Event& event) {
  const std::lock_guard lock(mutex_);
  if (const auto found = hears_.find(event.link); found != hears_.end()) found->second(event);
}

}  // namespace leafcutter::node
