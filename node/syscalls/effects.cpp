// A fault is recorded just before the answer that makes it real, never after: the task runs on at once, and what it
// does next must not stand in the trace before its cause. The notification is checked immediately before, and what the
// answer met is said when the fault is undone.
#include "node/syscalls/effects.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "node/syscalls/perform.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

constexpr std::array<std::string_view, 6> mutating = {"write", "rename", "unlink", "mkdir", "truncate", "allocate"};

bool mutates(const seccomp_notif& notification, const Object& object) {
  if (object.socket) return false;
  if (object.call == "creat") return true;
  if (object.call == "open" || object.call == "openat") {
    const auto flags = notification.data.args[object.call == "open" ? 1 : 2];
    return (flags & (O_CREAT | O_TRUNC)) != 0;
  }
  return std::ranges::find(mutating, object.family) != mutating.end();
}

std::int64_t milliseconds(Effects::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

std::chrono::nanoseconds delay_of(const scenarios::Fault& fault) {
  const auto text = fault.params.value("for", "");
  const auto duration = base::parse_duration(text);
  return duration ? *duration : std::chrono::nanoseconds(0);
}

}  // namespace

base::Status Effects::at_site(const seccomp_notif& notification, const Object& object) {
  auto visit = context_.sites.visit({context_.service, object.family, object.resource});
  if (mutates(notification, object)) context_.activity.touch();
  Case at{notification, object, visit.occurrence, {}, std::nullopt, Clock::now()};
  for (auto& strike : visit.strikes) {
    if (strike.fault.kind == "delay")
      at.delays.push_back(std::move(strike));
    else if (!at.ending)
      at.ending = std::move(strike);
  }
  return at.delays.empty() ? finish(at) : hold(std::move(at));
}

base::Status Effects::at_unresolved(const seccomp_notif& notification, const Object& object) {
  const auto count = ++unresolved_[object.call];
  // At 1, 2, 4, 8, ...: the trace says how many there were without one event for each.
  if (std::has_single_bit(count)) {
    context_.recorder.record(context_.service, events::syscall,
                             {{"call", object.call},
                              {"family", object.family},
                              {"resource", ""},
                              {"path", ""},
                              {"n", count},
                              {"injected", false},
                              {"detail", "unresolved: " + object.why}});
  }
  return let_run(notification.id);
}

std::optional<Effects::Clock::time_point> Effects::next_due() const {
  if (held_.empty()) return std::nullopt;
  return held_.begin()->first;
}

base::Status Effects::release_due(Clock::time_point now) {
  while (!held_.empty() && held_.begin()->first <= now) {
    const auto due = held_.extract(held_.begin());
    const auto& held = due.mapped();
    const auto how = "the call went on after " + std::to_string(milliseconds(Clock::now() - held.since)) + " ms";
    if (held.ending) {
      for (const auto& strike : held.delays) context_.sites.undone(strike.index, how);
      if (const auto done = finish(held); !done) return done;
    } else if (const auto done = release(held, how); !done) {
      return done;
    }
  }
  return base::ok();
}

base::Status Effects::release_all(const std::string& why) {
  while (!held_.empty()) {
    const auto next = held_.extract(held_.begin());
    const auto& held = next.mapped();
    const auto how = why + " after " + std::to_string(milliseconds(Clock::now() - held.since)) + " ms";
    if (const auto done = release(held, how); !done) return done;
  }
  return base::ok();
}

base::Status Effects::release(const Case& held, const std::string& how) {
  const auto sent = listener_.let_run(held.notification.id);
  if (!sent) return sent.error();
  for (const auto& strike : held.delays) context_.sites.undone(strike.index, *sent ? how : "the task had gone; " + how);
  return base::ok();
}

base::Status Effects::hold(Case held) {
  std::chrono::nanoseconds total{0};
  if (!listener_.valid(held.notification.id)) return base::ok();
  report(held, true, {{"effect", "delay"}});
  for (const auto& strike : held.delays) {
    const auto delay = delay_of(strike.fault);
    total += delay;
    auto proof = evidence(held);
    proof["delayed_ms"] = milliseconds(delay);
    context_.sites.fired(strike.index, std::move(proof));
  }
  const auto due = held.since + std::chrono::duration_cast<Clock::duration>(total);
  held_.emplace(due, std::move(held));
  return base::ok();
}

base::Status Effects::finish(const Case& at) {
  if (!at.ending) {
    report(at, false, Value::object());
    return let_run(at.notification.id);
  }
  if (!listener_.valid(at.notification.id)) return base::ok();
  const auto& kind = at.ending->fault.kind;
  if (kind == "errno") return fail_call(at);
  if (kind == "crash-before" || kind == "power-loss-before") return crash_before(at);
  if (kind == "crash-after" || kind == "power-loss-after") return crash_after(at);
  report(at, false, {{"detail", "a fault of kind " + kind + " cannot strike a system call"}});
  return let_run(at.notification.id);
}

base::Status Effects::fail_call(const Case& at) {
  const auto name = at.ending->fault.params.value("error", "");
  const auto number = scenarios::error_number(name);
  if (number <= 0) {
    report(at, false, {{"detail", "unknown error \"" + name + "\""}});
    return let_run(at.notification.id);
  }
  report(at, true, {{"effect", "errno"}, {"errno", name}});
  auto proof = evidence(at);
  proof["errno"] = number;
  proof["errno_name"] = name;
  context_.sites.fired(at.ending->index, std::move(proof));
  const auto sent = listener_.fail(at.notification.id, number);
  if (!sent) return sent.error();
  context_.sites.undone(at.ending->index,
                        *sent ? "the call returned" : "the task was killed before the answer reached it");
  return base::ok();
}

base::Status Effects::crash_before(const Case& at) {
  report(at, true, {{"effect", at.ending->fault.kind}});
  auto proof = evidence(at);
  proof["before"] = true;
  context_.sites.fired(at.ending->index, std::move(proof));
  context_.crash(at.ending->fault.kind.starts_with("power-loss"));
  return base::ok();
}

base::Status Effects::crash_after(const Case& at) {
  const auto id = at.notification.id;
  const Target target(static_cast<pid_t>(at.notification.pid));
  const auto outcome = perform({at.notification.data, target, at.object.socket, [&] { return listener_.valid(id); }});
  if (!outcome.done) {
    report(at, false, {{"detail", at.ending->fault.kind + " not possible: " + outcome.why}});
    return let_run(id);
  }
  report(at, true, {{"effect", at.ending->fault.kind}});
  auto proof = evidence(at);
  proof["after"] = true;
  proof["result"] = outcome.result;
  context_.sites.fired(at.ending->index, std::move(proof));
  context_.crash(at.ending->fault.kind.starts_with("power-loss"));
  return base::ok();
}

base::Status Effects::let_run(std::uint64_t id) {
  const auto sent = listener_.let_run(id);
  if (!sent) return sent.error();
  return base::ok();
}

void Effects::report(const Case& at, bool injected, const Value& more) {
  // What a fault did is always reported; beyond the limit the rest is only counted, in the site book.
  if (at.occurrence > context_.event_limit && !injected && more.empty()) return;
  Value attrs = {{"call", at.object.call}, {"family", at.object.family}, {"resource", at.object.resource},
                 {"path", at.object.path}, {"n", at.occurrence},         {"injected", injected}};
  attrs.update(more);
  context_.recorder.record(context_.service, events::syscall, std::move(attrs));
}

Value Effects::evidence(const Case& at) const {
  return {{"call", at.object.call}, {"pid", at.notification.pid}, {"path", at.object.path}};
}

}  // namespace leafcutter::node
