#include "node/leaf/supervision.hpp"

#include <mutex>
#include <set>
#include <utility>

#include "node/links/dials.hpp"
#include "node/syscalls/filter.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

/// The holds that the faults of one supervisor have on its service. It goes on when the last one has ended.
class SupervisedPause : public std::enable_shared_from_this<SupervisedPause> {
 public:
  SupervisedPause(Activity& activity, const std::string& service, std::shared_ptr<Standstill> standstill)
      : activity_(activity), busy_("pause of " + service), standstill_(std::move(standstill)) {}

  unsigned stop() {
    unsigned stopped = 0;
    {
      const std::lock_guard lock(mutex_);
      activity_.begin(busy_);
      stopped = standstill_->stop();
      if (stopped == 0) {
        activity_.end(busy_);
        return 0;
      }
      ++holds_;
      if (std::exchange(told_, true)) return stopped;
    }
    standstill_->on_ended([self = shared_from_this()] { self->end_all(); });  // which may be now
    return stopped;
  }

  /// One hold; none may be left, when the service has ended by itself.
  void end() {
    const std::lock_guard lock(mutex_);
    end_one();
  }

 private:
  void end_one() {
    if (holds_ == 0) return;
    --holds_;
    standstill_->go_on();
    activity_.end(busy_);
  }
  void end_all() {
    const std::lock_guard lock(mutex_);
    while (holds_ > 0) end_one();
  }

  Activity& activity_;
  const std::string busy_;
  const std::shared_ptr<Standstill> standstill_;
  std::mutex mutex_;
  unsigned holds_ = 0;
  bool told_ = false;  ///< to end with the service
};

}  // namespace

std::vector<std::string> watched_families(const scenarios::Scenario& scenario, const scenarios::Plan& plan,
                                          const std::string& service) {
  std::set<std::string> wanted;
  if (const auto found = scenario.explore.observe.find(service); found != scenario.explore.observe.end())
    wanted.insert(found->second.begin(), found->second.end());
  for (const auto& fault : plan.faults) {
    const auto* kind = scenarios::fault_kind(fault.kind);
    if (fault.site.lane != service || kind == nullptr) continue;
    if (kind->mechanism == scenarios::Mechanism::syscall) wanted.insert(fault.site.operation);
    wanted.insert(kind->watches.begin(), kind->watches.end());
  }
  std::vector<std::string> families;
  for (const auto& family : scenarios::syscall_families())
    if (wanted.contains(family.name)) families.push_back(family.name);
  return families;
}

SupervisorContext supervision_of(LeafContext& context, const std::string& service,
                                 const std::vector<std::string>& families, std::function<void(bool power_lost)> crash) {
  std::map<std::string, std::string> peers;
  for (const auto& other : context.scenario.services)
    for (const auto& port : other.ports) {
      const auto& address = context.network.address(other.name);
      for (const auto& host : {address, "[" + ipv6_address(address) + "]"})
        peers[host + ":" + std::to_string(port.number)] = other.name + ":" + port.name;
    }
  for (const auto& link : context.scenario.links) {
    if (link.from != service) continue;
    const auto number = std::to_string(link.number);
    for (const auto& loopback : {"127.0.0.1:" + number, "[::1]:" + number})
      peers.emplace(loopback, link.to + ":" + link.port);
  }
  std::vector<std::string> globs;
  for (const auto& choice : context.scenario.explore.faults)
    if (choice.lane == service && !choice.path_glob.empty()) globs.push_back(choice.path_glob);
  SupervisorContext out{.service = service,
                        .data_folder = data_folder(service),
                        .peers = std::move(peers),
                        .families = families,
                        .path_globs = std::move(globs),
                        .recorder = context.recorder,
                        .sites = context.sites,
                        .activity = context.activity,
                        .crash = std::move(crash),
                        .failed = {}};
  out.failed = [fail = context.fail, service](const std::string& why) {
    fail("runner-failed", "supervisor of " + service + ": " + why);
  };
  return out;
}

void look_at_dials(LeafContext& context, SupervisorContext& supervisor) {
  if (context.dials == nullptr || !context.dials->watches(supervisor.service)) return;
  supervisor.refuse_dial = [&dials = *context.dials, caller = supervisor.service](const std::string& address) {
    return dials.refuses(caller, address);
  };
}

base::Status look_at_dials(LeafContext& context, const std::string& caller, Spawn& spawn) {
  if (context.dials == nullptr || !context.dials->watches(caller)) return base::ok();
  auto filter = build_filter({.families = {"connect"}});
  if (!filter) return filter.error();
  spawn.filter = std::move(*filter);
  spawn.supervise = [&context, caller](base::UniqueFd listener) -> std::shared_ptr<void> {
    SupervisorContext supervisor{.service = caller,
                                 .data_folder = {},
                                 .peers = {},
                                 .families = {},
                                 .path_globs = {},
                                 .recorder = context.recorder,
                                 .sites = context.sites,
                                 .activity = context.activity,
                                 .crash = [](bool) {},
                                 .failed = {}};
    supervisor.failed = [fail = context.fail, caller](const std::string& why) {
      fail("runner-failed", "supervisor of a command of " + caller + ": " + why);
    };
    look_at_dials(context, supervisor);
    return std::make_shared<Supervisor>(std::move(listener), std::move(supervisor));
  };
  return base::ok();
}

void let_it_pause(SupervisorContext& supervisor, LeafContext& context, const std::shared_ptr<Standstill>& standstill) {
  auto pause = std::make_shared<SupervisedPause>(context.activity, supervisor.service, standstill);
  supervisor.stop = [pause] { return pause->stop(); };
  supervisor.go_on = [pause] { pause->end(); };
}

}  // namespace leafcutter::node
