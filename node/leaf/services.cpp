#include "node/leaf/services.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <future>

#include "node/leaf/quiet.hpp"

namespace leafcutter::node {

Services::Services(LeafContext& context) : context_(context) {
  for (const auto& model : context.scenario.services) {
    services_[model.name] =
        std::make_shared<Service>(context, model, [this](const Service& service) { changed(service); });
    seen_[model.name] = {};
  }
}

void Services::start() { advance(); }

void Services::changed(const Service& service) {
  {
    const std::lock_guard lock(mutex_);
    seen_[service.model().name] = {service.state(), service.program(), service.standstill()};
    ++changes_;
    steady_.notify_all();
  }
  if (!in_transition(service.state())) boost::asio::post(context_.io, [this] { advance(); });
}

void Services::advance() {
  for (const auto& model : context_.scenario.services) {
    auto& service = services_.at(model.name);
    if (service->state() != ServiceState::waiting) continue;
    const auto in = [&](ServiceState state) {
      return [this, state](const std::string& need) { return services_.at(need)->state() == state; };
    };
    if (const auto lost = std::find_if(model.needs.begin(), model.needs.end(), in(ServiceState::down));
        lost != model.needs.end())
      service->give_up("it needs " + *lost + ", which is down");
    else if (std::all_of(model.needs.begin(), model.needs.end(), in(ServiceState::ready)))
      service->start();
  }
}

bool Services::moves(const std::string& name, const Seen& seen) const {
  return in_transition(seen.state) || services_.at(name)->doomed() ||
         (seen.state == ServiceState::ready && seen.program > 0 && is_exiting(seen.program));
}

bool Services::wait_steady(std::chrono::nanoseconds within) const {
  std::unique_lock lock(mutex_);
  FairTime time(std::chrono::steady_clock::now());
  for (;;) {
    const bool steady = std::none_of(seen_.begin(), seen_.end(),
                                     [this](const auto& entry) { return moves(entry.first, entry.second); });
    if (steady || time.spent() >= within) return steady;
    // Every end and every change of a service is told; between two of them only the time is looked at.
    for (const auto seen = changes_; changes_ == seen && time.spent() < within;) {
      steady_.wait_for(lock, quiet_tick);
      time.tick(std::chrono::steady_clock::now());
    }
  }
}

bool Services::wait_answering(Deadline deadline) {
  std::vector<std::future<void>> answers;
  for (const auto& [name, service] : services_) {
    auto answered = std::make_shared<std::promise<void>>();
    answers.push_back(answered->get_future());
    boost::asio::post(context_.io, [target = service, deadline, answered] { target->look_again(deadline, answered); });
  }
  return std::all_of(answers.begin(), answers.end(),
                     [&](const auto& answer) { return answer.wait_until(deadline) == std::future_status::ready; });
}

void Services::wait_change(Deadline until) const {
  std::unique_lock lock(mutex_);
  steady_.wait_until(lock, until);
}

std::vector<std::string> Services::moving() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, seen] : seen_)
    if (moves(name, seen)) names.push_back(name);
  return names;
}

bool Services::is_ready(const std::string& service) const {
  const std::lock_guard lock(mutex_);
  return seen_.at(service).state == ServiceState::ready;
}

Services::Running Services::running(const std::string& service) const {
  const std::lock_guard lock(mutex_);
  const auto& seen = seen_.at(service);
  return {seen.standstill, seen.program};
}

base::Status Services::crash(const std::string& service, bool power_lost, std::function<void(const Gone&)> told) {
  auto done = std::make_shared<std::promise<void>>();
  auto gone = done->get_future();
  boost::asio::post(context_.io, [target = services_.at(service), power_lost, told = std::move(told), done] {
    target->crash(power_lost, [told, done](const Gone& how) {
      told(how);
      done->set_value();
    });
  });
  if (gone.wait_for(std::chrono::seconds(10)) != std::future_status::ready)
    return base::Error{base::ErrorCode::timeout, service + " was still there 10 s after SIGKILL", {}};
  return base::ok();
}

}  // namespace leafcutter::node
