// One service through its life in a leaf: prepared, started, seen to be ready, crashed, started again or left down.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "node/leaf/child.hpp"
#include "node/leaf/context.hpp"
#include "node/leaf/fate.hpp"
#include "node/leaf/probe.hpp"
#include "node/leaf/standstill.hpp"
#include "node/leaf/start_faults.hpp"
#include "node/syscalls/supervisor.hpp"

namespace re2 {
class RE2;
}

namespace leafcutter::node {

enum class ServiceState {
  waiting,    ///< for what it needs
  preparing,  ///< its commands run, its seed data is copied
  starting,   ///< a process runs and is not ready yet
  ready,
  stopping,  ///< killed by us, not gone yet
  down,      ///< will not become ready any more
};

/// A service that is on its way to `ready` or `down`: nothing is asked of the system while one is.
inline bool in_transition(ServiceState state) { return state != ServiceState::ready && state != ServiceState::down; }

/// A kill that was carried out.
struct Gone {
  pid_t pid = -1;                ///< -1: nothing ran
  bool restarts = false;         ///< it is started again
  Value lost = Value::object();  ///< with a power loss: what is gone
};

/// All members run on the event loop's thread; `crash` of the supervisor gets there by itself.
class Service : public std::enable_shared_from_this<Service> {
 public:
  using OnChange = std::function<void(const Service&)>;

  Service(LeafContext& context, const scenarios::Service& model, OnChange on_change);
  ~Service();

  const scenarios::Service& model() const { return model_; }
  ServiceState state() const { return state_; }
  /// Its kill has been decided; from any thread.
  bool doomed() const { return doomed_; }
  /// The running program as the leaf sees it, or 0.
  pid_t program() const { return child_ ? child_->program() : 0; }

  /// From `waiting`: prepares and starts.
  void start();

  /// From `waiting`: something it needs never became ready.
  void give_up(const std::string& why);

  /// Asks once more whether it is ready, as at its start: a service may recover without its process ending. `answered`
  /// is told when it is, or when there is nothing to ask.
  void look_again(Deadline deadline, std::shared_ptr<std::promise<void>> answered);

  /// Null when nothing runs.
  std::shared_ptr<Standstill> standstill() const { return standstill_; }

  /// Kills it. `told` is called once every process is gone and the state says what follows, before that happens.
  void crash(bool power_lost, std::function<void(const Gone&)> told);

 private:
  void change(ServiceState state);
  base::Expected<Spawn> spawn_of(const std::vector<std::string>& argv) const;
  base::Status copy_seed() const;
  void prepare(std::size_t next);
  void launch();
  void await_ready(std::chrono::steady_clock::time_point deadline);
  /// One attempt of the readiness probe; empty when there is nothing to ask.
  Probe::Attempt readiness();
  base::Status ask_command(Deadline until);
  void became_ready(unsigned attempt);
  void not_ready_in_time();
  void read(Child::Stream stream, std::string_view bytes);
  void line(Child::Stream stream, std::string_view text);
  void supervise(base::UniqueFd listener, const std::vector<std::string>& families);
  void ended(const Ending& ending);
  Value lose_power_if_asked();
  void stay_down(const std::string& why);

  LeafContext& context_;
  const scenarios::Service& model_;
  OnChange on_change_;
  ServiceState state_ = ServiceState::waiting;
  unsigned attempt_ = 0;
  std::atomic<bool> doomed_{false};
  bool ever_ready_ = false;
  bool injected_ = false;    ///< we killed the running attempt
  bool power_lost_ = false;  ///< and so did the disk
  std::string busy_;         ///< what the activity calls our transition
  std::string last_line_;    ///< of its output, for messages
  std::string partial_[2];
  std::chrono::steady_clock::time_point started_;
  std::shared_ptr<Child> child_;
  StartFaults start_faults_;
  std::shared_ptr<Standstill> standstill_;
  std::shared_ptr<Fate> fate_;
  std::unique_ptr<Supervisor> supervisor_;
  std::shared_ptr<DurableImage> image_;  ///< null: nobody needs to know what is durable
  std::string loss_;                     ///< by the power loss that the running attempt came after
  std::shared_ptr<Probe> probe_;
  boost::asio::steady_timer deadline_;
  std::unique_ptr<re2::RE2> ready_line_;
  std::vector<std::function<void(const Gone&)>> crashing_;
};

}  // namespace leafcutter::node
