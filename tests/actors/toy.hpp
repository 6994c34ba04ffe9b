// A fleet without processes, sockets or waiting: actors in virtual time, launchers and couriers whose leaves are a
// function of their plan. What the tests decide is the order in which leaves end and who is lost.
#pragma once

#include <gtest/gtest.h>

#include <caf/actor_system.hpp>
#include <caf/atom.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>

#include "actors/messages.hpp"
#include "actors/system.hpp"
#include "coordinator/actors/intake.hpp"
#include "node/actors/courier.hpp"
#include "node/leaf/launcher.hpp"
#include "protocols/event.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::tests {

using namespace std::chrono_literals;
using protocols::Value;

inline constexpr const char* toy_text = R"(leafcutter: 1
name: toy
about: A shop that loses an order when its second write fails, and when two particular faults meet.
services:
  shop:
    run: [bin/shop]
    ports: { http: { port: 7001, protocol: http } }
workload:
  - post: shop/orders
    json: { id: "1" }
  - settle: { quiet: 100ms, within: 5s }
properties:
  - name: no order is lost
    never: { event: log, line: LOST }
explore:
  faults:
    - on: shop
      syscalls: { families: [write, fsync], errors: [EIO, ENOSPC] }
  at-once: 2
  occurrences: 2
  seed: 7
  budget: { leaves: 100, time: 5m }
  leaf-timeout: 10s
)";

inline actors::ScenarioText toy_scenario(const std::string& text = toy_text) {
  const auto loaded = scenarios::load_text(text, "/toy/scenario.yaml", {"", false});
  if (!loaded.scenario) {
    ADD_FAILURE() << "the toy does not load: " << (loaded.errors.empty() ? "" : loaded.errors.front().text());
    return {};
  }
  return {scenarios::identity(*loaded.scenario), "/toy/scenario.yaml", text, ""};
}

/// What a leaf of the toy records under a plan.
inline std::vector<protocols::Event> toy_events(const scenarios::Plan& plan) {
  std::vector<protocols::Event> events;
  std::map<std::string, std::uint64_t> seqs;
  const auto add = [&](const std::string& lane, const std::string& kind, Value attrs) {
    protocols::Event event;
    event.lane = lane;
    event.seq = ++seqs[lane];
    event.clock = {{lane, event.seq}};
    event.at = std::chrono::milliseconds(events.size());
    event.kind = kind;
    event.attrs = std::move(attrs);
    events.push_back(std::move(event));
  };
  const auto struck = [&](const char* operation, std::uint32_t occurrence, const char* error) {
    for (const auto& fault : plan.faults) {
      if (fault.kind == "errno" && fault.site.operation == operation && fault.occurrence == occurrence &&
          fault.params.value("error", "") == error)
        return true;
    }
    return false;
  };
  add("leaf", "leaf.begin", {{"plan", scenarios::to_value(plan)}});
  add("shop", "start", {{"attempt", 1}});
  add("shop", "ready", {{"attempt", 1}, {"after_ms", 1}});
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    const auto& fault = plan.faults[i];
    add("shop", "fault.armed", {{"fault", i}, {"kind", fault.kind}});
    if (fault.occurrence <= 2)
      add("shop", "fault.fired", {{"fault", i}, {"kind", fault.kind}, {"evidence", {{"call", fault.site.operation}}}});
  }
  add("workload", "step", {{"label", "post shop/orders"}, {"outcome", "replied"}, {"status", 201}, {"expected", true}});
  const bool pair = struck("write", 1, "EIO") && struck("fsync", 2, "ENOSPC");
  if (struck("write", 2, "ENOSPC") || pair) add("shop", "log", {{"stream", "stdout"}, {"line", "LOST"}});
  add("workload", "settled", {{"quiet_ms", 100}, {"ok", true}, {"busy", Value::array()}});
  add("leaf", "sites", {{"sites", {{"shop", "fsync", "data:orders.log", 2}, {"shop", "write", "data:orders.log", 2}}}});
  add("leaf", "leaf.end", {{"cause", "completed"}, {"dropped", 0}});
  return events;
}

/// The way of events from toy couriers into a toy intake; survives the coordinator that owns the intake.
class ToyStream {
 public:
  void arrive(coordinator::FinishedTrace trace) {
    coordinator::Intake::OnFinished deliver;
    {
      const std::lock_guard lock(mutex_);
      if (expected_.erase(trace.execution) == 0) return;
      deliver = on_finished_;
    }
    if (deliver) deliver(std::move(trace));
  }
  std::unique_ptr<coordinator::Intake> intake(coordinator::Intake::OnFinished on_finished) {
    const std::lock_guard lock(mutex_);
    expected_.clear();
    on_finished_ = std::move(on_finished);
    return std::make_unique<End>(*this);
  }
  std::size_t expected() {
    const std::lock_guard lock(mutex_);
    return expected_.size();
  }
  /// There is an intake at the other end.
  bool delivers() {
    const std::lock_guard lock(mutex_);
    return on_finished_ != nullptr;
  }

 private:
  class End final : public coordinator::Intake {
   public:
    explicit End(ToyStream& stream) : stream_(stream) {}
    ~End() override {
      const std::lock_guard lock(stream_.mutex_);
      stream_.on_finished_ = nullptr;
    }
    const std::string& bound_endpoint() const override { return endpoint_; }
    void expect(const std::string& execution) override {
      const std::lock_guard lock(stream_.mutex_);
      stream_.expected_.insert(execution);
    }
    void forget(const std::string& execution) override {
      const std::lock_guard lock(stream_.mutex_);
      stream_.expected_.erase(execution);
    }

   private:
    ToyStream& stream_;
    std::string endpoint_ = "inproc://toy";
  };

  std::mutex mutex_;
  std::set<std::string> expected_;
  coordinator::Intake::OnFinished on_finished_;
};

/// Takes what a toy leaf sent and passes it on when the stream is over.
class ToyCourier final : public node::Courier {
 public:
  explicit ToyCourier(ToyStream& stream) : stream_(stream) {}
  const std::string& leaf_endpoint() const override { return endpoint_; }
  void connect(const std::string&) override {}
  std::uint64_t close(const std::string& execution) override {
    const auto found = events_.find(execution);
    if (found == events_.end()) return 0;
    const auto [count, complete] = found->second;
    if (!complete) stream_.arrive({execution, count, false, {}});
    return count;
  }
  void discard(const std::string& execution) override {
    events_.erase(execution);
    discarded.insert(execution);
  }
  std::size_t flush(std::chrono::milliseconds) override { return 0; }

  void send(const std::string& execution, const std::vector<protocols::Event>& events, bool complete) {
    events_[execution] = {events.size(), complete};
    if (complete) stream_.arrive({execution, events.size(), true, protocols::encode_chunk(events)});
  }
  std::set<std::string> discarded;

 private:
  ToyStream& stream_;
  std::string endpoint_ = "ipc:///toy";
  std::map<std::string, std::pair<std::uint64_t, bool>> events_;
};

/// Leaves that end when the test says so.
class ToyLauncher final : public node::Launcher {
 public:
  struct Leaf {
    node::LeafJob job;
    OnExit on_exit;
  };
  explicit ToyLauncher(ToyCourier& courier) : courier_(courier) {}

  base::Status give(const scenarios::Scenario&, const std::string& identity) override {
    given.insert(identity);
    return base::ok();
  }
  base::Status launch(const node::LeafJob& job, OnExit on_exit) override {
    if (!given.contains(job.scenario)) return base::Error{base::ErrorCode::internal, "a scenario that was not given"};
    running.push_back({job, std::move(on_exit)});
    return base::ok();
  }
  void kill(const std::string& execution) override {
    killed.push_back(execution);
    for (auto at = running.begin(); at != running.end(); ++at) {
      if (at->job.execution != execution || immortal) continue;
      auto leaf = std::move(*at);
      running.erase(at);
      leaf.on_exit({execution, false, "killed by signal 9"});
      return;
    }
  }

  /// The leaf says everything and ends.
  void finish(std::size_t index) {
    auto leaf = take(index);
    courier_.send(leaf.job.execution, toy_events(leaf.job.plan), true);
    leaf.on_exit({leaf.job.execution, true, ""});
  }
  /// The leaf dies; with `events`, some of what it recorded came out first.
  void crash(std::size_t index, std::size_t events = 0) {
    auto leaf = take(index);
    auto said = toy_events(leaf.job.plan);
    said.resize(events);
    if (events > 0) courier_.send(leaf.job.execution, said, false);
    leaf.on_exit({leaf.job.execution, false, "exit status 70: out of luck"});
  }

  std::deque<Leaf> running;
  std::set<std::string> given;
  std::vector<std::string> killed;
  bool immortal = false;

 private:
  Leaf take(std::size_t index) {
    auto leaf = std::move(running.at(index));
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(index));
    return leaf;
  }
  ToyCourier& courier_;
};

/// The parts of a toy node.
struct ToyNode {
  explicit ToyNode(ToyStream& stream)
      : courier(std::make_shared<ToyCourier>(stream)), launcher(std::make_shared<ToyLauncher>(*courier)) {}
  std::shared_ptr<ToyCourier> courier;
  std::shared_ptr<ToyLauncher> launcher;
};

struct SimConfig : actors::SystemConfig {
  SimConfig() : SystemConfig(false) {
    set("scheduler.policy", caf::atom("testing"));
    set("logger.inline-output", true);
  }
};

/// An actor system in virtual time.
class Sim {
 public:
  Sim() : sys(cfg), sched(dynamic_cast<caf::scheduler::test_coordinator&>(sys.scheduler())), self(sys, true) {
    sched.clock().current_time += 1h;  // zero means "unset" in places
  }
  ~Sim() { run(); }

  /// Until nobody has anything to do; at random when there is a generator.
  void run() {
    for (std::size_t steps = 0; !sched.jobs.empty(); ++steps) {
      if (steps > 1'000'000) {
        ADD_FAILURE() << "the actors never come to rest";
        return;
      }
      if (rng && sched.jobs.size() > 1) std::swap(sched.jobs.front(), sched.jobs[(*rng)() % sched.jobs.size()]);
      sched.run_once();
    }
  }
  void advance(std::chrono::nanoseconds by) {
    sched.advance_time(by);
    run();
  }
  template <class Handle>
  void kill(const Handle& handle) {
    self->send_exit(handle, caf::exit_reason::kill);
    run();
  }

  SimConfig cfg;
  caf::actor_system sys;
  caf::scheduler::test_coordinator& sched;
  caf::scoped_actor self;
  std::mt19937_64* rng = nullptr;
};

}  // namespace leafcutter::tests
