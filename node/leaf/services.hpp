// All services of a leaf: starts them in the order of their needs, and lets other threads wait for them or crash one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "node/leaf/client.hpp"
#include "node/leaf/service.hpp"

namespace leafcutter::node {

class Services {
 public:
  explicit Services(LeafContext& context);

  /// On the event loop's thread.
  void start();

  // --- from any other thread ---

  /// Waits until no service is on its way up, nor about to exit. False after `within`, in fair time (FairTime): a
  /// starved host gives them longer.
  bool wait_steady(std::chrono::nanoseconds within) const;

  /// Asks every service that is up whether it answers its readiness probe, until all do. False at the deadline.
  bool wait_answering(Deadline deadline);

  /// Returns at the next change of a service, or at `until`.
  void wait_change(Deadline until) const;
  std::vector<std::string> moving() const;

  bool is_ready(const std::string& service) const;

  struct Running {
    std::shared_ptr<Standstill> standstill;  ///< null: no process of it runs
    pid_t program = 0;
  };
  Running running(const std::string& service) const;

  /// Kills a service; returns after `told`, see Service::crash. Errors: timeout.
  base::Status crash(const std::string& service, bool power_lost, std::function<void(const Gone&)> told);

 private:
  void changed(const Service& service);
  void advance();

  LeafContext& context_;
  std::map<std::string, std::shared_ptr<Service>> services_;
  mutable std::mutex mutex_;
  mutable std::condition_variable steady_;
  struct Seen {
    ServiceState state = ServiceState::waiting;
    pid_t program = 0;
    std::shared_ptr<Standstill> standstill;
  };
  bool moves(const std::string& name, const Seen& seen) const;
  std::map<std::string, Seen> seen_;
  std::uint64_t changes_ = 0;  ///< of what was seen
};

}  // namespace leafcutter::node
