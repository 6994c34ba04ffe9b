#include "node/leaf/process_faults.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "node/leaf/standstill.hpp"
#include "scenarios/reach.hpp"

namespace leafcutter::node {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds quiet_before_strike{25};

/// A service that stands still until its time is over or it is gone. On the event loop's thread.
class Pause : public std::enable_shared_from_this<Pause> {
 public:
  Pause(LeafContext& context, std::size_t fault, std::shared_ptr<Standstill> standstill, std::string busy)
      : context_(context),
        fault_(fault),
        standstill_(std::move(standstill)),
        busy_(std::move(busy)),
        timer_(context.io) {}

  void last_until(steady_clock::time_point end) {
    timer_.expires_at(end);
    timer_.async_wait([self = shared_from_this()](const auto&) { self->over(); });
    standstill_->on_ended([self = shared_from_this()] { self->over(); });
  }

 private:
  void over() {
    if (std::exchange(over_, true)) return;
    timer_.cancel();
    const bool gone = standstill_->has_ended();
    const auto running = standstill_->go_on();
    context_.sites.undone(fault_, gone          ? "the service ended while it stood still"
                                  : running > 0 ? "processes that run again: " + std::to_string(running)
                                                : "its time is over; another pause still holds the service");
    context_.activity.end(busy_);
  }

  LeafContext& context_;
  std::size_t fault_;
  std::shared_ptr<Standstill> standstill_;
  std::string busy_;
  asio::steady_timer timer_;
  bool over_ = false;
};

std::chrono::nanoseconds duration_of(const scenarios::Fault& fault, const char* name) {
  const auto parsed = base::parse_duration(fault.params.value(name, ""));
  return parsed ? *parsed : std::chrono::nanoseconds(0);
}

}  // namespace

ProcessFaults::ProcessFaults(LeafContext& context, Services& services, Quiescence& quiescence,
                             std::function<void(const std::string&)> awaiting)
    : context_(context),
      services_(services),
      quiescence_(quiescence),
      awaiting_(std::move(awaiting)),
      counts_workload_steps_(
          scenarios::can_strike(context.scenario, context.job.plan, scenarios::workload_lane, "step")),
      event_strikes_(context.sites, [this](const SiteBook::Strike& hit) {
        carry_out(hit, {{"after", hit.fault.aim->after}});
      }) {}

void ProcessFaults::wait_steady(const std::string& before) {
  awaiting_("services to come up again before step \"" + before + "\"");
  services_.wait_steady(std::chrono::seconds(10));
}

/// Between two steps a service may still be at work on the last one. A fault in the middle of that would strike now
/// here, now there; the places inside are what the syscall faults are for.
void ProcessFaults::wait_quiet() {
  std::vector<std::string> busy;
  quiescence_.wait(quiet_before_strike, std::chrono::seconds(2), busy);
}

void ProcessFaults::strike(const std::string& label) {
  // A pause or a partition that is in force counts as something under way: nothing is waited for behind it, and what
  // strikes at this step strikes together.
  bool held = false;
  for (const auto& service : context_.scenario.services) {
    const auto visit = context_.sites.visit({service.name, "step", label});
    for (const auto& hit : visit.strikes) {
      if (!held) wait_quiet();
      carry_out(hit, {{"before_step", label}});
      held = held || hit.fault.kind == "pause";
      if (hit.fault.kind != "pause") wait_steady(label);
    }
  }
  if (!counts_workload_steps_) return;
  for (const auto& hit : context_.sites.visit({scenarios::workload_lane, "step", label}).strikes) {
    if (!std::exchange(held, true)) wait_quiet();
    carry_out(hit, {{"before_step", label}});
  }
}

void ProcessFaults::carry_out(const SiteBook::Strike& hit, const Value& when) {
  const auto& kind = hit.fault.kind;
  if (kind == "pause") return pause(hit, when);
  if (kind == "crash" || kind == "power-loss") return crash(hit, when, kind == "power-loss");
  if (kind == "restart-storm") return storm(hit, when);
  if (kind == "partition") return context_.part(hit, when);
  context_.fail("runner-failed", "nothing carries out \"" + hit.fault.text() + "\"");
}

void ProcessFaults::crash(const SiteBook::Strike& hit, const Value& when, bool power_lost) {
  const auto told = [&context = context_, index = hit.index, when](const Gone& gone) {
    if (gone.pid <= 0) return;
    Value evidence = {{"pid", gone.pid}, {"signal", 9}};
    evidence.update(when);
    if (!gone.lost.empty()) evidence["lost"] = gone.lost;
    context.sites.fired(index, std::move(evidence));
  };
  if (const auto status = services_.crash(hit.fault.site.lane, power_lost, told); !status)
    context_.fail("runner-failed", status.error().text());
}

/// Written to by the event loop's thread while the workload's waits for it; outlives a wait that was given up.
struct ProcessFaults::Storm {
  std::size_t times = 0;
  std::vector<pid_t> pids;
  bool over = false;
};

void ProcessFaults::storm(const SiteBook::Strike& hit, const Value& when) {
  const auto& service = hit.fault.site.lane;
  auto storm = std::make_shared<Storm>();
  storm->times = hit.fault.params.value("times", std::size_t{0});
  const auto over = [&context = context_, index = hit.index, when, storm](const std::string& how) {
    storm->over = true;
    Value evidence = {{"times", storm->pids.size()}, {"pids", storm->pids}};
    evidence.update(when);
    if (!how.empty()) evidence["ended_early"] = how;
    if (!storm->pids.empty()) context.sites.fired(index, std::move(evidence));
  };
  const auto told = [storm, over](const Gone& gone) {
    if (gone.pid <= 0) return over("it did not run any more");
    storm->pids.push_back(gone.pid);
    // Before it can be ready again, which is what undoes the fault.
    if (storm->pids.size() >= storm->times) return over("");
    if (!gone.restarts) over("its restart policy leaves it down");
  };
  while (!storm->over) {
    if (const auto status = services_.crash(service, false, told); !status)
      return context_.fail("runner-failed", status.error().text());
    if (storm->over) return;
    awaiting_(service + " to be ready for the next kill of the restart storm");
    // As long as its readiness may take: the service gives up by itself, and the leaf has its own end.
    services_.wait_steady(context_.job.timeout);
    if (!services_.is_ready(service)) return over("it did not become ready again");
  }
}

void ProcessFaults::pause(const SiteBook::Strike& hit, const Value& when) {
  const auto& service = hit.fault.site.lane;
  const auto running = services_.running(service);
  if (!running.standstill) return;
  // From before the first process stops: nobody may take the silence for quiescence.
  const auto busy = "pause of " + service;
  context_.activity.begin(busy);
  const auto stopped = running.standstill->stop();
  const auto since = steady_clock::now();
  if (stopped == 0) return context_.activity.end(busy);
  Value evidence = {{"pid", running.program}, {"processes", stopped}};
  evidence.update(when);
  context_.sites.fired(hit.index, std::move(evidence));
  const auto end = since + std::chrono::duration_cast<steady_clock::duration>(duration_of(hit.fault, "for"));
  auto pause = std::make_shared<Pause>(context_, hit.index, running.standstill, busy);
  asio::post(context_.io, [pause, end] { pause->last_until(end); });
}

}  // namespace leafcutter::node
