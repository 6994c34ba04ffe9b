#include "node/leaf/workload.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "base/text.hpp"
#include "node/leaf/quiet.hpp"
#include "node/leaf/supervision.hpp"
#include "node/leaf/text.hpp"
#include "node/links/dials.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/predicate.hpp"

namespace leafcutter::node {

namespace events = scenarios::events;
using scenarios::Step;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kept_body = 64 * 1024;

Deadline after(std::chrono::nanoseconds duration) {
  return steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(duration);
}

Value globals_of(const Value& variables, const Value& reply) {
  auto globals = variables;
  globals.update(reply);
  return globals;
}

}  // namespace

void add_json(Value& reply, const std::string& body) {
  auto json = Value::parse(body, nullptr, false);
  if (!json.is_discarded()) reply["json"] = std::move(json);
}

CommandResult run_in_workload(LeafContext& context, const std::vector<std::string>& argv,
                              std::chrono::nanoseconds within) {
  Spawn spawn;
  spawn.argv = argv;
  spawn.folder = context.scenario.folder;
  spawn.environment = program_environment("/tmp", {});
  spawn.network = context.network.home();
  if (auto status = look_at_dials(context, scenarios::workload_lane, spawn); !status) {
    CommandResult never;
    never.ending.status = 127;
    never.ending.error = status.error().text();
    return never;
  }
  auto done = std::make_shared<std::promise<CommandResult>>();
  auto result = done->get_future();
  boost::asio::post(context.io, [&context, spawn, within, done] {
    run_command(context.io, spawn, within, [done](CommandResult ended) { done->set_value(std::move(ended)); });
  });
  return result.get();
}

Workload::Workload(LeafContext& context, Services& services, std::function<void(const std::string&)> awaiting)
    : context_(context),
      services_(services),
      awaiting_(std::move(awaiting)),
      quiescence_(context, services),
      faults_(context, services, quiescence_, [this](const std::string& what) { awaiting_(what); }) {}

void Workload::run() {
  awaiting_("every service to be ready");
  services_.wait_steady(context_.job.timeout);
  Lane lane{scenarios::workload_lane, context_.variables};
  run_steps(context_.scenario.workload, lane);
  if (context_.scenario.workload.empty() || context_.scenario.workload.back().what != Step::Do::settle)
    settle(lane.name, std::chrono::milliseconds(100), std::chrono::seconds(5));
}

void Workload::run_steps(const std::vector<Step>& steps, Lane& lane) {
  for (const auto& step : steps) run_step(step, lane);
}

void Workload::record(const std::string& lane, Value attrs) {
  // Links know their caller as "workload": what a branch did and learnt passes through that lane's clock.
  if (lane == scenarios::workload_lane) {
    context_.recorder.record(lane, events::step, std::move(attrs));
    return;
  }
  const auto clock =
      context_.recorder.record(lane, events::step, std::move(attrs), {context_.recorder.now(scenarios::workload_lane)});
  context_.recorder.deliver(scenarios::workload_lane, clock);
}

bool Workload::wanted(const Step& step, Lane& lane) {
  if (step.when_lua.empty()) return true;
  std::string why = "its condition is not true";
  if (auto expression = scenarios::LuaExpression::compile(step.when_lua)) {
    const auto value = expression->evaluate(lane.variables);
    if (value && scenarios::is_true(*value)) return true;
    if (!value) why = value.error().text();
  } else {
    why = expression.error().text();
  }
  record(lane.name, {{"label", step.label}, {"outcome", "skipped"}, {"detail", why}, {"expected", true}});
  return false;
}

void Workload::run_step(const Step& step, Lane& lane) {
  if (!wanted(step, lane)) return;
  if (step.what == Step::Do::repeat) return repeat(step, lane);
  if (step.what == Step::Do::parallel) return parallel(step, lane);
  faults_.wait_steady(step.label);
  faults_.strike(step.label);
  if (step.what == Step::Do::settle) return settle(lane.name, step.quiet, step.within);
  Outcome outcome;
  for (unsigned attempt = 0; attempt <= step.retries; ++attempt) {
    if (attempt > 0) faults_.wait_steady(step.label);
    awaiting_("step \"" + step.label + "\"");
    outcome = step.what == Step::Do::request    ? request(step, lane)
              : step.what == Step::Do::exchange ? exchange(step, lane)
                                                : command(step, lane);
    if (outcome.outcome != "no-reply") break;
  }
  judge(step, lane, outcome);
  save(step, lane, outcome);
  Value attrs = {{"label", step.label}, {"outcome", outcome.outcome}, {"expected", outcome.expected}};
  for (const auto* name : {"status", "json"})
    if (const auto found = outcome.reply.find(name); found != outcome.reply.end()) attrs[name] = *found;
  if (const auto exit = outcome.reply.find("exit"); exit != outcome.reply.end()) attrs["status"] = *exit;
  if (!outcome.detail.empty()) attrs["detail"] = clean_text(outcome.detail, 4096);
  record(lane.name, std::move(attrs));
}

void Workload::repeat(const Step& step, Lane& lane) {
  for (unsigned i = 1; i <= step.times; ++i) {
    if (!step.as.empty()) lane.variables[step.as] = i;
    run_steps(step.steps, lane);
  }
}

void Workload::parallel(const Step& step, Lane& lane) {
  std::vector<Lane> lanes;
  for (std::size_t i = 0; i < step.branches.size(); ++i) {
    lanes.push_back({std::string(scenarios::workload_lane) + "/" + std::to_string(i + 1), lane.variables});
    context_.recorder.deliver(lanes.back().name, context_.recorder.now(lane.name));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < lanes.size(); ++i)
    threads.emplace_back([this, &branch = step.branches[i], &own = lanes[i]] { run_steps(branch, own); });
  for (auto& thread : threads) thread.join();
  for (const auto& branch : lanes) {
    context_.recorder.deliver(lane.name, context_.recorder.now(branch.name));
    for (const auto& [name, value] : branch.variables.items())
      if (const auto before = lane.variables.find(name); before == lane.variables.end() || *before != value)
        lane.variables[name] = value;
  }
}

void Workload::settle(const std::string& lane, std::chrono::nanoseconds quiet, std::chrono::nanoseconds within) {
  awaiting_("the system to settle");
  std::vector<std::string> busy;
  const bool settled = quiescence_.wait(quiet, within, busy);
  std::sort(busy.begin(), busy.end());
  busy.erase(std::unique(busy.begin(), busy.end()), busy.end());
  context_.recorder.record(lane, events::settled,
                           {{"quiet_ms", std::chrono::duration_cast<std::chrono::milliseconds>(quiet).count()},
                            {"ok", settled},
                            {"busy", busy}});
}

base::Expected<Endpoints> Workload::endpoints(const Step& step, std::string& host) const {
  const auto* service = context_.scenario.service(step.service);
  const auto* port = service == nullptr        ? nullptr
                     : !step.port.empty()      ? service->port(step.port)
                     : !service->ports.empty() ? &service->ports.front()
                                               : nullptr;
  if (port == nullptr)
    return base::Error{base::ErrorCode::internal, "there is no port \"" + step.port + "\" of " + step.service, {}};
  host = step.service + ":" + std::to_string(port->number);
  return Endpoints{{boost::asio::ip::make_address(context_.network.address(step.service)), port->number}};
}

/// What is dialled from this process is not seen as a system call: it is asked about here.
bool Workload::refused(const Endpoints& target) const {
  const auto& endpoint = target.front();
  return context_.dials != nullptr &&
         context_.dials->refuses(scenarios::workload_lane,
                                 endpoint.address().to_string() + ":" + std::to_string(endpoint.port()));
}

Workload::Outcome Workload::refused_outcome() {
  Outcome outcome;
  outcome.outcome = "no-reply";
  outcome.detail = "connect: Connection refused";
  return outcome;
}

Workload::Outcome Workload::request(const Step& step, const Lane& lane) {
  Outcome outcome;
  HttpCall call;
  auto target = endpoints(step, call.host);
  auto path = scenarios::expand(step.target, lane.variables);
  const auto written = step.body.value_or("");
  auto body =
      step.json_body ? scenarios::expand_json(written, lane.variables) : scenarios::expand(written, lane.variables);
  for (const auto* error :
       {target ? nullptr : &target.error(), path ? nullptr : &path.error(), body ? nullptr : &body.error()})
    if (error != nullptr) {
      outcome.detail = error->text();
      return outcome;
    }
  call.method = step.method;
  call.target = std::move(*path);
  call.body = std::move(*body);
  if (step.json_body) call.headers["Content-Type"] = "application/json";
  for (const auto& [name, text] : step.headers) {
    auto value = scenarios::expand(text, lane.variables);
    if (!value) {
      outcome.detail = value.error().text();
      return outcome;
    }
    call.headers[name] = std::move(*value);
  }
  if (refused(*target)) return refused_outcome();
  auto reply = http_call(*target, call, after(step.within));
  if (!reply) {
    outcome.outcome = "no-reply";
    outcome.detail = reply.error().text();
    return outcome;
  }
  outcome.outcome = "replied";
  outcome.reply = {
      {"status", reply->status}, {"headers", reply->headers}, {"body", clean_text(reply->body, kept_body)}};
  add_json(outcome.reply, reply->body);
  return outcome;
}

Workload::Outcome Workload::exchange(const Step& step, const Lane& lane) {
  Outcome outcome;
  std::string host;
  auto target = endpoints(step, host);
  auto send = scenarios::expand(step.send, lane.variables);
  for (const auto* error : {target ? nullptr : &target.error(), send ? nullptr : &send.error()})
    if (error != nullptr) {
      outcome.detail = error->text();
      return outcome;
    }
  if (refused(*target)) return refused_outcome();
  auto reply = tcp_exchange(*target, *send, step.until, after(step.within));
  outcome.outcome = reply ? "replied" : "no-reply";
  if (reply) {
    outcome.reply["reply"] = clean_text(*reply, kept_body);
    add_json(outcome.reply, *reply);
  } else {
    outcome.detail = reply.error().text();
  }
  return outcome;
}

Workload::Outcome Workload::command(const Step& step, const Lane& lane) {
  Outcome outcome;
  auto argv = expand_all(step.command, lane.variables);
  if (!argv) {
    outcome.detail = argv.error().text();
    return outcome;
  }
  const auto result = run_in_workload(context_, *argv, step.within);
  if (!result.ending.error.empty()) {
    outcome.detail = step.command[0] + ": " + describe(result);
    return outcome;
  }
  outcome.outcome = result.timed_out ? "no-reply" : "replied";
  if (result.timed_out || result.ending.signal != 0 || result.ending.status != 0) outcome.detail = describe(result);
  if (result.timed_out) return outcome;
  outcome.reply = {{"exit", result.ending.signal != 0 ? 128 + result.ending.signal : result.ending.status},
                   {"stdout", clean_text(result.output, kept_body)}};
  add_json(outcome.reply, result.output);
  return outcome;
}

void Workload::judge(const Step& step, const Lane& lane, Outcome& outcome) const {
  if (outcome.outcome == "replied") {
    outcome.expected = scenarios::matches(scenarios::expand(step.expect, lane.variables), outcome.reply);
    if (outcome.expected) return;
    auto seen = outcome.reply;
    seen.erase("headers");
    if (seen.contains("json")) seen.erase(seen.contains("body") ? "body" : "stdout");
    const auto found =
        "the reply is not what the step expects: " + seen.dump(-1, ' ', false, Value::error_handler_t::replace);
    outcome.detail = outcome.detail.empty() ? found : found + "; " + outcome.detail;
    return;
  }
  // Without a fault every step has to be answered; under faults only where the scenario says so.
  outcome.expected = !step.reply_required && !context_.job.plan.faults.empty();
}

void Workload::save(const Step& step, Lane& lane, Outcome& outcome) const {
  for (const auto& [variable, text] : step.save) {
    auto& saved = lane.variables[variable] = nullptr;
    if (outcome.outcome != "replied") continue;
    auto expression = scenarios::LuaExpression::compile(text);
    auto value = expression ? expression->evaluate(globals_of(lane.variables, outcome.reply))
                            : base::Expected<Value>(expression.error());
    if (value) {
      saved = std::move(*value);
    } else {
      outcome.detail += (outcome.detail.empty() ? "" : "; ") + ("save " + variable + ": " + value.error().text());
    }
  }
}

}  // namespace leafcutter::node
