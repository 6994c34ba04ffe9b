#include "node/leaf/leaf.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/text.hpp"
#include "node/host/doctor.hpp"
#include "node/leaf/checks.hpp"
#include "node/leaf/context.hpp"
#include "node/leaf/durability.hpp"
#include "node/leaf/egress.hpp"
#include "node/leaf/isolation.hpp"
#include "node/leaf/links.hpp"
#include "node/leaf/name_service.hpp"
#include "node/leaf/outbox.hpp"
#include "node/leaf/services.hpp"
#include "node/leaf/workload.hpp"
#include "node/observe/event_watch.hpp"
#include "scenarios/dns_lanes.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::node {
namespace {

namespace asio = boost::asio;
namespace events = scenarios::events;
using std::chrono::steady_clock;

constexpr std::chrono::seconds last_ack_patience{10};

/// One leaf inside its isolation. It is never destroyed: the process ends while its threads still run.
class Leaf {
 public:
  /// What can fail to be made.
  struct Parts {
    Network network;
    EventWatch watch;
    base::UniqueFd images;  ///< see LeafContext::image_folder
    base::UniqueFd outlet;
  };

  Leaf(const LeafStart& start, steady_clock::time_point began, Parts parts)
      : scenario_(start.scenario),
        network_(std::move(parts.network)),
        watch_(std::move(parts.watch)),
        images_(std::move(parts.images)),
        outbox_(start.job.events_endpoint, start.job.execution),
        clock_([began] { return std::chrono::nanoseconds(steady_clock::now() - began); }),
        recorder_(clock_, [this](Event event) { take(std::move(event)); }),
        sites_(start.job.plan, recorder_),
        context_{.job = start.job,
                 .scenario = scenario_,
                 .io = io_,
                 .network = network_,
                 .recorder = recorder_,
                 .sites = sites_,
                 .activity = activity_,
                 .variables = service_variables(scenario_),
                 .fault_fired = fault_fired_,
                 .image_folder = images_.get(),
                 .fail = {},
                 .on_its_way = {},
                 .part = {}},
        services_(context_),
        links_(context_, clock_, std::move(parts.outlet)),
        timeout_(io_, began + std::chrono::duration_cast<steady_clock::duration>(start.job.timeout)) {
    context_.fail = [this](const std::string& reason, const std::string& detail) {
      asio::post(io_, [this, reason, detail] { end("infra", reason, detail); });
    };
    context_.on_its_way = [this] { return links_.holding(); };
    context_.part = [this](const SiteBook::Strike& strike, const Value& when) { links_.part(strike, when); };
  }

  int run() {
    begin_trace();
    timeout_.async_wait([this](const auto& error) {
      if (!error)
        end("timeout", "timed-out",
            "after " + base::format_duration(context_.job.timeout) + " it was waiting for " + awaited());
    });
    if (auto status = open_links(); !status) {
      context_.fail("runner-failed", status.error().text());
    } else {
      services_.start();
      std::thread([this] { work(); }).detach();
    }
    const auto stay = asio::make_work_guard(io_);
    io_.run();
    if (outbox_.finish(steady_clock::now() + last_ack_patience)) return 0;
    std::fprintf(stderr, "the node did not acknowledge the last event within 10 s\n");
    return 75;
  }

 private:
  void begin_trace() {
    recorder_.record("leaf", events::leaf_begin,
                     {{"address", context_.job.address},
                      {"execution", context_.job.execution},
                      {"plan", scenarios::to_value(context_.job.plan)},
                      {"isolation", true},
                      {"schema", protocols::trace_schema}});
    sites_.arm();
  }

  void take(Event event) {
    if (event.kind == events::fault_fired) fault_fired_ = true;
    if (!watch_.idle()) watch_.see(event, sites_);
    outbox_.push(std::move(event));
  }

  base::Status open_links() {
    auto names = NameService::start(context_);
    if (!names) return names.error();
    names_ = std::move(*names);
    auto taps = network_.tap_egress();
    if (!taps) return taps.error();
    egress_ = std::make_unique<Egress>(io_, recorder_, std::move(*taps), scenario_);
    egress_->start();
    return links_.open();
  }

  void work() try {
    const auto note = [this](const std::string& what) { await(what); };
    Workload(context_, services_, note).run();
    await("services to come up again before the checks");
    services_.wait_steady(std::chrono::seconds(10));
    // A check that finds a service still recovering says nothing about its state; one that never answers again is the
    // check's to find.
    if (has_checks()) services_.wait_answering(steady_clock::now() + std::chrono::seconds(20));
    run_checks(context_, note);
    asio::post(io_, [this] { end("completed", "", ""); });
  } catch (const std::exception& error) {
    context_.fail("runner-failed", std::string("the workload failed: ") + error.what());
  }

  bool has_checks() const {
    return std::any_of(scenario_.properties.begin(), scenario_.properties.end(),
                       [](const auto& property) { return property.kind == scenarios::Property::Kind::check; });
  }

  void await(const std::string& what) {
    const std::lock_guard lock(mutex_);
    awaited_ = what;
  }
  std::string awaited() const {
    std::string text;
    {
      const std::lock_guard lock(mutex_);
      text = awaited_;
    }
    if (const auto moving = services_.moving(); !moving.empty())
      text += " (not ready: " + base::join_names(moving) + ")";
    return text;
  }

  void end(const std::string& cause, const std::string& reason, const std::string& detail) {
    if (ended_) return;
    ended_ = true;
    links_.finish();
    if (egress_) egress_->finish();
    sites_.finish();
    Value attrs = {{"cause", cause}, {"dropped", outbox_.dropped()}};
    if (!reason.empty()) attrs["reason"] = reason;
    if (!detail.empty()) attrs["detail"] = detail;
    if (context_.log_lines_dropped > 0) attrs["log_lines_dropped"] = context_.log_lines_dropped;
    if (egress_ && egress_->dropped() > 0) attrs["egress_dropped"] = egress_->dropped();
    recorder_.record("leaf", events::leaf_end, std::move(attrs));
    io_.stop();
  }

  const scenarios::Scenario& scenario_;
  asio::io_context io_{1};
  Network network_;
  EventWatch watch_;  ///< under the recorder's lock
  const base::UniqueFd images_;
  Activity activity_;
  std::atomic<bool> fault_fired_{false};
  Outbox outbox_;
  Recorder::Clock clock_;
  Recorder recorder_;
  SiteBook sites_;
  LeafContext context_;
  Services services_;
  std::unique_ptr<NameService> names_;
  std::unique_ptr<Egress> egress_;
  Links links_;
  asio::steady_timer timeout_;
  mutable std::mutex mutex_;
  std::string awaited_;
  bool ended_ = false;
};

/// The whole trace of a leaf that could not begin: two events.
int report(const LeafJob& job, const base::Error& error) {
  Outbox outbox(job.events_endpoint, job.execution);
  Recorder recorder([] { return std::chrono::nanoseconds(0); }, [&](Event event) { outbox.push(std::move(event)); });
  recorder.record("leaf", events::leaf_begin,
                  {{"address", job.address},
                   {"execution", job.execution},
                   {"plan", scenarios::to_value(job.plan)},
                   {"isolation", false},
                   {"schema", protocols::trace_schema}});
  recorder.record("leaf", events::leaf_end,
                  {{"cause", "infra"},
                   {"reason", error.code == base::ErrorCode::unavailable ? "unavailable" : "runner-failed"},
                   {"detail", error.text()},
                   {"dropped", 0}});
  return outbox.finish(steady_clock::now() + last_ack_patience) ? 0 : 75;
}

IsolationPlan isolation_of(const LeafStart& start) {
  IsolationPlan plan;
  plan.host_uid = start.host_uid;
  plan.host_gid = start.host_gid;
  plan.scenario_folder = start.scenario.folder;
  plan.run_folder = start.run_folder;
  for (const auto& [lane, address] : service_addresses(start.scenario)) plan.hosts.emplace_back(address, lane);
  for (const auto& [name, address] : scenarios::outside_addresses(start.scenario))
    plan.hosts.emplace_back(address, name);
  plan.resolver = !scenarios::services_that_ask(start.scenario, start.job.plan).empty();
  for (const auto& service : start.scenario.services) plan.data_folders.push_back(service.name);
  return plan;
}

int run(LeafStart& start, steady_clock::time_point began) {
  if (start.refused) return report(start.job, *start.refused);
  if (auto status = enter_isolation(isolation_of(start)); !status) return report(start.job, status.error());
  auto watch = EventWatch::create(start.job.plan);
  if (!watch) return report(start.job, watch.error());
  if (auto status = can_carry_out(start.job.plan); !status) return report(start.job, status.error());
  base::UniqueFd images;
  if (needs_image(start.job.plan)) {
    auto made = make_hidden_folder(image_root);
    if (!made) return report(start.job, made.error());
    images = std::move(*made);
  }
  auto network = Network::create(start.scenario, needs_detour(start.job.plan));
  if (!network) return report(start.job, network.error());
  static_cast<void>(::signal(SIGPIPE, SIG_IGN));
  // Owned by the process, which ends before it: see Leaf.
  Leaf::Parts parts{std::move(*network), std::move(*watch), std::move(images), std::move(start.outlet)};
  auto* leaf = new Leaf(start, began, std::move(parts));  // NOLINT(cppcoreguidelines-owning-memory)
  return leaf->run();
}

}  // namespace

void run_leaf(LeafStart start) {
  int status = 70;
  try {
    status = run(start, steady_clock::now());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the leaf failed: %s\n", error.what());
  }
  std::fflush(stderr);
  ::_exit(status);
}

}  // namespace leafcutter::node
