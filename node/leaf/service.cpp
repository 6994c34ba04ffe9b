#include "node/leaf/service.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "node/leaf/durability.hpp"
#include "node/leaf/supervision.hpp"
#include "node/leaf/text.hpp"
#include "node/syscalls/filter.hpp"
#include "scenarios/dns_lanes.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/predicate.hpp"

namespace leafcutter::node {

namespace events = scenarios::events;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t line_limit = 4096;

template <class Duration>
std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

Service::Service(LeafContext& context, const scenarios::Service& model, OnChange on_change)
    : context_(context),
      model_(model),
      on_change_(std::move(on_change)),
      start_faults_(context, model.name),
      deadline_(context.io) {
  if (model.ready.by == scenarios::Readiness::By::log)
    ready_line_ = std::make_unique<RE2>(model.ready.pattern, RE2::Quiet);
}

Service::~Service() = default;

void Service::change(ServiceState state) {
  state_ = state;
  if (in_transition(state) && busy_.empty()) {
    busy_ = (attempt_ == 0 ? "start " : "restart ") + model_.name;
    context_.activity.begin(busy_);
  } else if (!in_transition(state) && !busy_.empty()) {
    context_.activity.end(busy_);
    busy_.clear();
  }
  on_change_(*this);
}

base::Expected<Spawn> Service::spawn_of(const std::vector<std::string>& argv) const {
  const auto variables = own_variables(context_.scenario, model_);
  auto expanded = expand_all(argv, variables);
  if (!expanded) return expanded.error();
  Spawn spawn;
  spawn.argv = std::move(*expanded);
  std::map<std::string, std::string> own;
  for (const auto& [name, text] : model_.environment) {
    auto value = scenarios::expand(text, variables);
    if (!value) return value.error();
    own[name] = std::move(*value);
  }
  spawn.folder = data_folder(model_.name);
  spawn.environment = program_environment(spawn.folder, own);
  spawn.network = context_.network.of(model_.name);
  spawn.asks_resolver = scenarios::services_that_ask(context_.scenario, context_.job.plan).count(model_.name) != 0;
  if (auto status = look_at_dials(context_, model_.name, spawn); !status) return status.error();
  return spawn;
}

base::Status Service::copy_seed() const {
  if (model_.seed_data.empty()) return base::ok();
  std::error_code error;
  std::filesystem::copy(model_.seed_data, data_folder(model_.name),
                        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks, error);
  if (error) return base::Error{base::ErrorCode::io, "copy " + model_.seed_data + ": " + error.message(), {}};
  return base::ok();
}

void Service::start() {
  change(ServiceState::preparing);
  if (auto status = copy_seed(); !status) return stay_down(status.error().message);
  prepare(0);
}

void Service::give_up(const std::string& why) { stay_down(why); }

void Service::prepare(std::size_t next) {
  if (next == model_.prepare.size()) return launch();
  auto spawn = spawn_of(model_.prepare[next]);
  if (!spawn) return stay_down(spawn.error().text());
  run_command(
      context_.io, *spawn, std::chrono::minutes(2), [self = shared_from_this(), next](const CommandResult& result) {
        if (result.timed_out || result.ending.signal != 0 || result.ending.status != 0)
          return self->stay_down("prepare command \"" + self->model_.prepare[next].at(0) + "\": " + describe(result));
        self->prepare(next + 1);
      });
}

void Service::launch() {
  auto spawn = spawn_of(model_.run);
  if (!spawn) return stay_down(spawn.error().text());
  const auto families = watched_families(context_.scenario, context_.job.plan, model_.name);
  auto filtered = filter_plan(context_.job.plan, model_.name, families, scenarios::Scope::leaf);
  if (spawn->supervise) filtered.families.emplace_back("connect");  // its dials: see look_at_dials
  if (!filtered.empty()) {
    auto filter = build_filter(filtered);
    if (!filter)
      return context_.fail("runner-failed", "system call filter of " + model_.name + ": " + filter.error().text());
    spawn->filter = std::move(*filter);
  }
  if (needs_image(context_.job.plan, model_.name) && !image_) {
    auto image = make_image(context_, model_.name);
    if (!image) return context_.fail("runner-failed", "durable image of " + model_.name + ": " + image.error().text());
    image_ = std::move(*image);
  }
  ++attempt_;
  injected_ = false;
  power_lost_ = false;
  last_line_.clear();
  context_.recorder.record(model_.name, events::start, {{"attempt", attempt_}, {"argv", spawn->argv}});
  record_in_kernel(filtered, context_.sites);
  started_ = steady_clock::now();
  spawn->conditions = start_faults_.about_to_start();
  auto self = shared_from_this();
  auto child = Child::start(
      context_.io, *spawn, [self](Child::Stream stream, std::string_view bytes) { self->read(stream, bytes); },
      [self](const Ending& ending) { self->ended(ending); });
  if (!child)
    return context_.fail(child.error().code == base::ErrorCode::unavailable ? "unavailable" : "runner-failed",
                         "start of " + model_.name + ": " + child.error().text());
  child_ = std::move(*child);
  start_faults_.started(child_->start_evidence());
  fate_ = std::make_shared<Fate>();
  auto standstill = Standstill::of(child_->pid());
  if (!standstill) return context_.fail("runner-failed", "start of " + model_.name + ": " + standstill.error().text());
  standstill_ = std::move(*standstill);
  if (auto listener = child_->take_listener()) supervise(std::move(listener), families);
  change(ServiceState::starting);
  await_ready(started_ + std::chrono::duration_cast<steady_clock::duration>(model_.ready.within));
}

void Service::supervise(base::UniqueFd listener, const std::vector<std::string>& families) {
  auto crash = [self = shared_from_this(), fate = fate_, attempt = attempt_](bool power_lost) {
    self->doomed_ = true;  // from here on no step begins, although the kill itself waits for the event loop
    if (!fate->doom(power_lost)) {
      self->doomed_ = false;
      return;
    }
    boost::asio::post(self->context_.io, [self, attempt] {
      if (self->attempt_ == attempt) self->crash(false, {});
    });
    if (!fate->wait_gone(steady_clock::now() + std::chrono::seconds(10)))
      self->context_.fail("runner-failed", self->model_.name + " was still there 10 s after SIGKILL");
  };
  auto context = supervision_of(context_, model_.name, families, std::move(crash));
  let_it_pause(context, context_, standstill_);
  look_at_dials(context_, context);
  context.image = image_;
  supervisor_ = std::make_unique<Supervisor>(std::move(listener), std::move(context));
}

void Service::await_ready(steady_clock::time_point deadline) {
  using By = scenarios::Readiness::By;
  const auto attempt = attempt_;
  auto self = shared_from_this();
  deadline_.expires_at(deadline);
  deadline_.async_wait([self, attempt](const auto& error) {
    if (!error && self->attempt_ == attempt && self->state_ == ServiceState::starting) self->not_ready_in_time();
  });
  if (model_.ready.by == By::started) return became_ready(attempt);
  if (model_.ready.by == By::log) return;  // a line will tell
  auto once = readiness();
  if (!once) return context_.fail("runner-failed", model_.name + " has no port \"" + model_.ready.port + "\"");
  probe_ = Probe::start(
      context_.network.of(model_.name), context_.network.home(), std::move(once), deadline,
      [self, attempt] { boost::asio::post(self->context_.io, [self, attempt] { self->became_ready(attempt); }); });
}

Probe::Attempt Service::readiness() {
  using By = scenarios::Readiness::By;
  if (model_.ready.by == By::command)
    return [self = shared_from_this()](Deadline until) { return self->ask_command(until); };
  const auto* port = model_.port(model_.ready.port);
  if (port == nullptr) return {};
  const auto endpoints = local_endpoints(context_.network.address(model_.name), port->number);
  if (model_.ready.by == By::tcp) return [endpoints](Deadline until) { return tcp_connect(endpoints, until); };
  HttpCall call;
  call.target = model_.ready.path;
  call.host = model_.name + ":" + std::to_string(port->number);
  return [endpoints, call](Deadline until) -> base::Status {
    auto reply = http_call(endpoints, call, until);
    if (!reply) return reply.error();
    if (reply->status / 100 == 2) return base::ok();
    return base::Error{base::ErrorCode::io, call.target + " answered " + std::to_string(reply->status), {}};
  };
}

base::Status Service::ask_command(Deadline until) {
  auto spawn = spawn_of(model_.ready.command);
  if (!spawn) return spawn.error();
  auto done = std::make_shared<std::promise<CommandResult>>();
  auto result = done->get_future();
  const auto within = until - steady_clock::now();
  boost::asio::post(context_.io, [&io = context_.io, spawn = std::move(*spawn), within, done] {
    run_command(io, spawn, within, [done](const CommandResult& answer) { done->set_value(answer); });
  });
  // The event loop ends the command at its deadline; the second is for the loop itself.
  if (result.wait_until(until + std::chrono::seconds(1)) != std::future_status::ready)
    return base::Error{base::ErrorCode::timeout, model_.ready.command.at(0) + " did not end", {}};
  const auto answer = result.get();
  if (!answer.timed_out && answer.ending.signal == 0 && answer.ending.status == 0) return base::ok();
  return base::Error{base::ErrorCode::io, describe(answer), {}};
}

void Service::look_again(Deadline deadline, std::shared_ptr<std::promise<void>> answered) {
  using By = scenarios::Readiness::By;
  if (state_ != ServiceState::ready || model_.ready.by == By::started || model_.ready.by == By::log)
    return answered->set_value();
  probe_ = Probe::start(context_.network.of(model_.name), context_.network.home(), readiness(), deadline,
                        [answered] { answered->set_value(); });
}

void Service::became_ready(unsigned attempt) {
  if (attempt != attempt_ || state_ != ServiceState::starting) return;
  probe_.reset();
  deadline_.cancel();
  ever_ready_ = true;
  context_.recorder.record(model_.name, events::ready,
                           {{"attempt", attempt_}, {"after_ms", milliseconds(steady_clock::now() - started_)}});
  if (attempt_ > 1)
    for (std::size_t i = 0; i < context_.job.plan.faults.size(); ++i) {
      const auto& fault = context_.job.plan.faults[i];
      const auto* kind = scenarios::fault_kind(fault.kind);
      if (fault.site.lane == model_.name && kind != nullptr && kind->kills)
        context_.sites.undone(i, loss_.empty() ? "restarted and ready again" : "restarted and ready again; " + loss_);
    }
  change(ServiceState::ready);
}

void Service::not_ready_in_time() {
  auto why = "not ready within " + base::format_duration(model_.ready.within);
  const auto failure = probe_ ? probe_->last_failure() : "";
  if (!failure.empty()) why += ": " + failure;
  probe_.reset();
  stay_down(why);
}

void Service::read(Child::Stream stream, std::string_view bytes) {
  auto& partial = partial_[stream == Child::Stream::errors ? 1 : 0];
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto piece = bytes.substr(0, end);
    partial.append(piece.substr(0, line_limit - std::min(partial.size(), line_limit)));
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    line(stream, std::exchange(partial, {}));
  }
}

void Service::line(Child::Stream stream, std::string_view text) {
  auto clean = clean_text(text, line_limit);
  if (!clean.empty()) last_line_ = clean.substr(0, 300);
  const bool shows_ready = ready_line_ && state_ == ServiceState::starting && RE2::PartialMatch(clean, *ready_line_);
  if (context_.log_lines > 0) {
    --context_.log_lines;
    context_.recorder.record(
        model_.name, events::log,
        {{"stream", stream == Child::Stream::errors ? "stderr" : "stdout"}, {"line", std::move(clean)}});
  } else {
    ++context_.log_lines_dropped;
  }
  if (shows_ready) became_ready(attempt_);
}

void Service::ended(const Ending& ending) {
  using On = scenarios::RestartPolicy::On;
  for (const auto stream : {Child::Stream::output, Child::Stream::errors})
    if (auto& partial = partial_[stream == Child::Stream::errors ? 1 : 0]; !partial.empty())
      line(stream, std::exchange(partial, {}));
  context_.activity.touch();
  if (standstill_) standstill_->ended();
  // The supervisor's thread either waits for this end, or can be joined: it uses nothing of the service any more.
  if (!fate_->close()) supervisor_.reset();
  doomed_ = false;
  const auto pid = child_ ? child_->pid() : -1;
  probe_.reset();
  deadline_.cancel();
  Value attrs = {{"attempt", attempt_}, {"injected", injected_}};
  attrs[ending.signal != 0 ? "signal" : "status"] = ending.signal != 0 ? ending.signal : ending.status;
  if (!ending.error.empty()) attrs["detail"] = ending.error;
  const auto lost = lose_power_if_asked();
  if (!lost.empty()) attrs["lost"] = lost;
  const bool crashed = injected_ || ending.signal != 0 || ending.status != 0;
  const bool restart = (model_.restart.on == On::any_exit || (model_.restart.on == On::crash && crashed)) &&
                       attempt_ <= model_.restart.at_most;
  // Whoever asked for this end records it as a fault, which only now is proved: before the exit, which it caused.
  for (const auto& told : std::exchange(crashing_, {})) told({pid, restart, lost});
  context_.recorder.record(model_.name, events::exit, std::move(attrs));
  start_faults_.ended();

  auto why = describe(ending);
  if (!ending.error.empty() && !model_.run.empty()) why += " (" + model_.run[0] + ")";
  if (!last_line_.empty()) why += ", its last line: " + last_line_;
  child_.reset();
  standstill_.reset();
  if (restart) {
    change(ServiceState::starting);
  } else {
    stay_down(why);
  }
  fate_->conclude();
  supervisor_.reset();
  if (restart) launch();
}

/// Nobody has a file of the service open, and its supervisor does nothing.
Value Service::lose_power_if_asked() {
  loss_.clear();
  if (!power_lost_ && !fate_->power_lost()) return Value::object();
  if (!image_) {
    context_.fail("runner-failed", "power loss of " + model_.name + ": nobody kept what is durable");
    return Value::object();
  }
  auto lost = lose_power(*image_);
  if (!lost) {
    context_.fail("runner-failed", "power loss of " + model_.name + ": " + lost.error().text());
    return Value::object();
  }
  loss_ = lost->value("text", "");
  return *lost;
}

void Service::stay_down(const std::string& why) {
  change(ServiceState::down);
  if (!ever_ready_ && !context_.fault_fired) context_.fail("not-ready", model_.name + ": " + why);
}

void Service::crash(bool power_lost, std::function<void(const Gone&)> told) {
  if (!child_) {
    if (told) told({});
    return;
  }
  injected_ = true;
  power_lost_ = power_lost_ || power_lost;
  if (told) crashing_.push_back(std::move(told));
  // Before its connections break: whoever sees that waits for what becomes of it.
  change(ServiceState::stopping);
  child_->kill();
}

}  // namespace leafcutter::node
