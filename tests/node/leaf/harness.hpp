// A node in small: a ROUTER that stores and acknowledges events, the real launcher with a nursery, scenario folders.
#pragma once

#include <poll.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "node/leaf/launcher.hpp"
#include "protocols/event.hpp"
#include "scenarios/model.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::node::testing {

using protocols::Event;
using protocols::Value;

using leafcutter::tests::Folder;

/// Stores what leaves send, and acknowledges it.
class FakeCourier {
 public:
  explicit FakeCourier(const std::string& folder);
  ~FakeCourier();
  const std::string& endpoint() const { return endpoint_; }
  std::vector<Event> events(const std::string& execution) const;
  /// While muted it receives and says nothing.
  void mute(bool muted);
  std::uint64_t duplicates() const;

 private:
  void run();
  std::string endpoint_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Event>> events_;
  bool muted_ = false, stop_ = false;
  std::uint64_t duplicates_ = 0;
  std::thread thread_;
};

struct Ran {
  LeafExit exit;
  std::vector<Event> events;
  std::chrono::milliseconds took{0};
  std::chrono::steady_clock::time_point began, ended;

  std::vector<Event> of(const std::string& kind, const std::string& lane = "") const;
  /// The attributes of leaf.end.
  Value end() const;
  /// Every event, one a line, for failure messages.
  std::string text() const;
};

class Nest {
 public:
  Nest();
  explicit Nest(const std::string& nursery_program);
  ~Nest();

  Launcher& launcher() { return *launcher_; }
  FakeCourier& courier() { return *courier_; }
  /// Where the scenario's programs are: bin/web.
  const std::string& folder() const { return scenario_folder_.path(); }

  void write(const std::string& path, const std::string& text);  ///< below the scenario's folder
  std::string read(const std::string& path) const;

  /// Loads the text and gives it to the nursery under `identity`.
  scenarios::Scenario give(const std::string& text, const std::string& identity = "s");

  LeafJob job(const scenarios::Plan& plan = {}, const std::string& identity = "s");
  std::string start(const LeafJob& job);
  Ran wait(const std::string& execution, std::chrono::seconds within = std::chrono::seconds(40));
  Ran run(const scenarios::Plan& plan = {}) { return wait(start(job(plan))); }
  bool wait_for(const std::string& execution, const std::string& kind,
                std::chrono::seconds within = std::chrono::seconds(20));
  void drop_launcher() { launcher_.reset(); }

 private:
  Folder scenario_folder_, run_folder_;
  std::unique_ptr<FakeCourier> courier_;
  std::unique_ptr<Launcher> launcher_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, LeafExit> exits_;
  std::map<std::string, std::chrono::steady_clock::time_point> started_, ended_;
  int next_ = 0;
};

/// Pids of processes with `marker` among their arguments.
std::vector<pid_t> processes_with(const std::string& marker);

/// -1: there is no such process.
pid_t parent_of(pid_t pid);

/// The nursery that this process started, or -1.
pid_t own_nursery();

/// What the lane's first line of log says after "went ".
std::string went(const Ran& ran, const std::string& lane = "ask");

/// Waits until `true_now` holds; false at the deadline.
template <class Condition>
bool eventually(Condition true_now, std::chrono::milliseconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  for (auto pause = std::chrono::milliseconds(1); !true_now(); ::poll(nullptr, 0, static_cast<int>(pause.count())))
    if (std::chrono::steady_clock::now() > deadline) return false;
  return true;
}

/// One service `shop` on port 8080 that runs bin/web.
extern const char* const one_service;

/// The services `shop`, on port 8080, and `broker`, on 8081, both bin/web; shop's peer is what `peer` names. More
/// services may follow, then the rest of a scenario.
std::string shop_and_broker(const std::string& peer = "broker:8081");

}  // namespace leafcutter::node::testing
