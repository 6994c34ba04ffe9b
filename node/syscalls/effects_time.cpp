// What makes a call take longer, or a sleep shorter. A wait holds only its own task: the supervisor answers others
// meanwhile.
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/text.hpp"
#include "node/syscalls/effects.hpp"

namespace leafcutter::node {
namespace {

/// A slow disk may catch up on this much of the lateness of its own answers; more would let a rule's calls through in
/// bursts after a pause.
constexpr std::chrono::milliseconds slow_slack{10};

std::chrono::nanoseconds of_timespec(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

bool can_be_slept(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000;
}

}  // namespace

std::optional<Effects::Clock::time_point> Effects::next_due() const {
  if (held_.empty() || held_.begin()->first == Clock::time_point::max()) return std::nullopt;
  return held_.begin()->first;
}

base::Status Effects::release_due(Clock::time_point now) {
  while (!held_.empty() && held_.begin()->first <= now) {
    if (const auto& at = held_.begin()->second; at.awaited) {
      // The socket's own limit of time, after which its call fails.
      auto node = held_.extract(held_.begin());
      const auto ended = end_with(node.mapped(), {.error = EAGAIN});
      if (!ended) return ended.error();
      if (*ended == Ended::gone)
        if (const auto kept = remember(std::move(node.mapped())); !kept) return kept;
    } else if (const auto done = resume(held_.begin(), "the call went on"); !done) {
      return done;
    }
  }
  return base::ok();
}

base::Status Effects::resume(std::multimap<Clock::time_point, Case>::iterator which, const std::string& how) {
  auto node = held_.extract(which);
  auto& at = node.mapped();
  at.awaited.reset();
  if (!at.waits.empty() && at.since != Clock::time_point()) {
    end_wait(at, valid(at) ? how : "the task did not wait any more");
    at.waits.erase(at.waits.begin());
    at.since = {};
  }
  return go_on(std::move(at));
}

base::Status Effects::release_seen() {
  for (bool again = true; std::exchange(again, false);) {
    for (auto held = held_.begin(); held != held_.end(); ++held) {
      const auto& at = held->second;
      if (at.waits.empty() || at.waits.front().fault.kind != "hold" || at.since == Clock::time_point()) continue;
      if (context_.sites.releases(at.waits.front().index) == at.releases) continue;
      if (const auto done = resume(held, "its event was seen"); !done) return done;
      again = true;  // held_ has changed
      break;
    }
  }
  return base::ok();
}

base::Status Effects::release_all(const std::string& why) {
  while (!held_.empty()) {
    auto node = held_.extract(held_.begin());
    auto& at = node.mapped();
    const auto sent = listener_.let_run(at.notification.id);
    if (!sent) return sent.error();
    if (!at.waits.empty() && at.since != Clock::time_point()) end_wait(at, *sent ? why : "the task had gone; " + why);
  }
  return base::ok();
}

base::Expected<std::optional<Effects::Clock::time_point>> Effects::begin_wait(Case& at) {
  const auto& strike = at.waits.front();
  const auto& kind = strike.fault.kind;
  at.since = Clock::now();
  const auto after = [&](std::chrono::nanoseconds time) {
    return std::optional(at.since + std::chrono::duration_cast<Clock::duration>(time));
  };
  if (kind == "slow") return slow_down(at, strike);
  if (kind == "pause-at") return pause(at, strike);
  auto proof = evidence(at);
  report(at, true, {{"effect", kind}});
  if (kind == "hold") {
    at.releases = context_.sites.releases(strike.index);
    context_.sites.fired(strike.index, std::move(proof));
    return after(duration_parameter(strike.fault, "at-most"));
  }
  const auto delay = duration_parameter(strike.fault, "for");
  proof["delayed_ms"] = whole_milliseconds(delay);
  context_.sites.fired(strike.index, std::move(proof));
  return after(delay);
}

void Effects::end_wait(Case& at, const std::string& how) {
  const auto& strike = at.waits.front();
  if (strike.fault.kind == "pause-at" && context_.go_on) context_.go_on();
  context_.sites.undone(strike.index,
                        how + " after " + std::to_string(whole_milliseconds(Clock::now() - at.since)) + " ms");
}

/// The disk is busy with one call at a time: each begins when the one before has ended.
base::Expected<std::optional<Effects::Clock::time_point>> Effects::slow_down(Case& at, const Strike& strike) {
  const auto bytes = carried_bytes(at);
  if (!bytes || *bytes == 0) return std::optional<Clock::time_point>();
  const auto rate =
      std::clamp<std::uint64_t>(strike.fault.params.value("bytes-per-second", std::uint64_t{1}), 1, 1'000'000'000'000);
  const auto whole = std::chrono::seconds(std::min<std::uint64_t>(*bytes / rate, 3600));
  const auto rest = std::chrono::microseconds(*bytes % rate * 1'000'000 / rate);
  const auto begin = std::max(busy_until_[strike.index], at.since - slow_slack);
  const auto due = begin + whole + rest;
  busy_until_[strike.index] = due;
  report(at, true, {{"effect", "slow"}});
  auto proof = evidence(at);
  proof["bytes"] = *bytes;
  proof["held_ms"] = std::max<std::int64_t>(whole_milliseconds(due - at.since), 0);
  context_.sites.fired(strike.index, std::move(proof));
  return std::optional(due);
}

std::optional<Effects::Clock::time_point> Effects::pause(Case& at, const Strike& strike) {
  const auto stopped = context_.stop ? context_.stop() : 0;
  if (stopped == 0) {
    static_cast<void>(cannot(at, strike, "no process of the service could be stopped"));
    return std::nullopt;
  }
  ++pauses_;
  report(at, true, {{"effect", "pause-at"}});
  auto proof = evidence(at);
  proof["processes"] = stopped;
  context_.sites.fired(strike.index, std::move(proof));
  return at.since + std::chrono::duration_cast<Clock::duration>(duration_parameter(strike.fault, "for"));
}

base::Expected<Effects::Ended> Effects::skip_sleep(Case& at, const Strike& strike) {
  const auto& call = at.notification.data;
  const auto by_clock = call.nr == SYS_clock_nanosleep;
  if (!by_clock && call.nr != SYS_nanosleep) return cannot(at, strike, "the call is no sleep");
  const auto wanted = target(at).value<timespec>(call.args[by_clock ? 2 : 0]);
  if (!wanted) return cannot(at, strike, wanted.error().message);
  if (!can_be_slept(*wanted)) return cannot(at, strike, "the time is none that the kernel takes");
  auto time = of_timespec(*wanted);
  timespec now{};
  if (by_clock && (call.args[1] & TIMER_ABSTIME) != 0 &&
      ::clock_gettime(static_cast<clockid_t>(call.args[0]), &now) == 0)
    time = std::max(time - of_timespec(now), std::chrono::nanoseconds(0));
  auto proof = evidence(at);
  proof["skipped_ms"] = whole_milliseconds(time);
  return strike_with(at, strike, {.value = 0}, {{"effect", "skip"}}, std::move(proof));
}

std::chrono::nanoseconds duration_parameter(const scenarios::Fault& fault, const std::string& name) {
  const auto duration = base::parse_duration(fault.params.value(name, ""));
  return duration ? *duration : std::chrono::nanoseconds(0);
}

}  // namespace leafcutter::node
