// A fault is recorded in the very moment of the answer that makes it real: the task runs on at once, and what it does
// next must not stand in the trace before its cause; and an answer that nobody took struck nothing.
#include "node/syscalls/effects.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <string_view>
#include <utility>

#include "node/syscalls/dial.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

constexpr std::array<std::string_view, 6> mutating = {"write", "rename", "unlink", "mkdir", "truncate", "allocate"};
constexpr std::array<std::string_view, 4> waiting = {"delay", "slow", "hold", "pause-at"};

bool mutates(const seccomp_notif& notification, const Object& object) {
  if (object.socket) return false;
  if (object.call == "creat") return true;
  if (object.call == "open" || object.call == "openat") {
    const auto flags = notification.data.args[object.call == "open" ? 1 : 2];
    return (flags & (O_CREAT | O_TRUNC)) != 0;
  }
  return std::ranges::find(mutating, object.family) != mutating.end();
}

bool loses_power(const scenarios::Fault& fault) { return fault.kind.starts_with("power-loss"); }

/// One after the other, with a semicolon.
void append_words(std::string& list, const std::string& words) { list += (list.empty() ? "" : "; ") + words; }

}  // namespace

Effects::Effects(Listener& listener, const SupervisorContext& context, const ObjectNames& names)
    : listener_(listener), context_(context), names_(names), passing_(listener, context) {
  const auto& faults = context.sites.plan().faults;
  for (std::size_t i = 0; i < faults.size(); ++i)
    if (faults[i].kind == "no-space" && faults[i].site.lane == context.service) space_faults_.push_back(i);
}

base::Status Effects::at_no_site(const seccomp_notif& notification, const Object& object) {
  passing_.learn(notification, object, {}, false);
  return let_run(notification);
}

SiteBook::Visit Effects::visit(const Object& object) {
  const Site site{context_.service, object.family, object.resource};
  return names_.aimed_at(object.family) ? context_.sites.visit(site, object.facts(), context_.data_folder)
                                        : context_.sites.visit(site);
}

base::Status Effects::at_call(const seccomp_notif& notification, Object&& object) {
  auto met = visit(object);
  const auto moves = object.state == Object::State::site && mutates(notification, object);
  if (moves) context_.activity.touch();
  if (met.strikes.empty() && passes_unseen(object, met.occurrence)) {
    if (!object.known_as.empty()) {
      const auto facts = object.facts();
      passing_.learn(notification, object,
                     context_.sites.standing({context_.service, object.family, object.resource},
                                             names_.aimed_at(object.family) ? &facts : nullptr, context_.data_folder),
                     moves);
    }
    const auto sent = let_run_unless_refused(notification);
    if (!sent) return sent.error();
    if (*sent) return base::ok();
  }
  return begin(make_case(notification, std::move(object), std::move(met)));
}

base::Status Effects::at_both(const seccomp_notif& notification, Object&& from, Object&& to) {
  std::vector<Case> cases;
  for (auto* object : {&from, &to}) {
    if (object->state == Object::State::unresolved) report_unresolved(*object, object->why);
    if (object->state != Object::State::site && object->state != Object::State::elsewhere) continue;
    auto met = visit(*object);
    if (object->state == Object::State::site && mutates(notification, *object)) context_.activity.touch();
    cases.push_back(make_case(notification, std::move(*object), std::move(met)));
  }
  if (cases.empty()) return let_run(notification);
  if (cases.size() == 2) cases.front().then = std::make_unique<Case>(std::move(cases.back()));
  return begin(std::move(cases.front()));
}

Effects::Case Effects::make_case(const seccomp_notif& notification, Object&& object, SiteBook::Visit&& visit) const {
  Case at;
  at.notification = notification;
  at.object = std::move(object);
  at.occurrence = visit.occurrence;
  at.pauses = pauses_;
  for (auto& strike : visit.strikes) {
    if (std::ranges::find(waiting, strike.fault.kind) != waiting.end())
      at.waits.push_back(std::move(strike));
    else
      at.endings.push_back(std::move(strike));
  }
  if (!space_faults_.empty()) add_space_faults(at);
  return at;
}

base::Status Effects::begin(Case at) {
  if (!at.object.doubt.empty()) report_unresolved(at.object, at.object.doubt);
  if (at.waits.empty() && at.endings.empty() && !at.then) {  // by far the most
    report(at, false);
    return run(std::move(at));
  }
  if (const auto until = await_bytes(at)) {
    held_.emplace(*until, std::move(at));
    return base::ok();
  }
  return go_on(std::move(at));
}

bool Effects::passes_unseen(const Object& object, std::uint32_t occurrence) const {
  return space_faults_.empty() && context_.image == nullptr && object.doubt.empty() && !within_limit(occurrence);
}

bool Effects::within_limit(std::uint32_t occurrence) const {
  return occurrence > 0 && occurrence <= context_.event_limit;
}

base::Status Effects::at_unresolved(const seccomp_notif& notification, const Object& object) {
  report_unresolved(object, object.why);
  return let_run(notification);
}

void Effects::report_unresolved(const Object& object, const std::string& why) {
  const auto count = ++unresolved_[object.call];
  // At 1, 2, 4, 8, ...: the trace says how many there were without one event for each.
  if (!std::has_single_bit(count)) return;
  context_.recorder.record(context_.service, events::unresolved,
                           {{"call", object.call}, {"family", object.family}, {"n", count}, {"why", why}});
}

base::Status Effects::go_on(Case at) {
  for (; !at.waits.empty(); at.waits.erase(at.waits.begin())) {
    if (!valid(at)) return remember(std::move(at));
    const auto due = begin_wait(at);
    if (!due) return due.error();
    if (!*due) {
      at.since = {};
      continue;
    }
    held_.emplace(**due, std::move(at));
    return base::ok();
  }
  return finish(std::move(at));
}

base::Status Effects::finish(Case at) {
  at.space.clear();
  const auto unable = at.unable;
  const auto not_yet = [&] {
    at.unable = unable;
    return remember(std::move(at));
  };
  for (std::size_t i = 0; i < at.endings.size(); ++i) {
    if (!valid(at)) return not_yet();
    at.others.clear();
    const auto add_others = [&](const std::vector<Strike>& planned, std::size_t first) {
      for (auto other = first; other < planned.size(); ++other)
        append_words(at.others, planned[other].fault.kind + " was planned here, too, and not carried out");
    };
    add_others(at.endings, i + 1);
    if (at.then) add_others(at.then->endings, 0);
    const auto strike = at.endings[i];
    const auto ended = end_by(at, strike);
    if (!ended) return ended.error();
    if (*ended == Ended::gone) return not_yet();
    if (*ended != Ended::no) return base::ok();
  }
  at.others.clear();
  if (!valid(at)) return not_yet();
  report(at, false);
  if (!at.then) return run(std::move(at));
  auto next = std::move(*at.then);
  next.notification = at.notification;
  return begin(std::move(next));
}

base::Expected<Effects::Ended> Effects::end_by(Case& at, const Strike& strike) {
  const auto& kind = strike.fault.kind;
  if (kind == "errno") return fail_call(at, strike);
  if (kind == "crash-before" || kind == "power-loss-before") return crash_before(at, strike);
  if (kind == "crash-after" || kind == "power-loss-after") return crash_after(at, strike);
  if (kind == "short") return cut_short(at, strike);
  if (kind == "torn") return tear(at, strike);
  if (kind == "corrupt") return corrupt(at, strike);
  if (kind == "no-space") return run_out_of_space(at, strike);
  if (kind == "fsync-lost") return lose_sync(at, strike);
  if (kind == "fsync-lie") return lie_about_sync(at, strike);
  if (kind == "skip") return skip_sleep(at, strike);
  return cannot(at, strike, "a fault of this kind does not strike system calls");
}

base::Expected<Effects::Ended> Effects::cannot(Case& at, const Strike& strike, const std::string& why) const {
  append_words(at.unable, strike.fault.kind + " not possible: " + why);
  return Ended::no;
}

base::Expected<Effects::Ended> Effects::fail_call(Case& at, const Strike& strike) {
  const auto name = strike.fault.params.value("error", "");
  const auto number = scenarios::error_number(name);
  if (number <= 0) return cannot(at, strike, "unknown error \"" + name + "\"");
  const auto late = duration_parameter(strike.fault, "late");
  if (late.count() > 0 && !at.late) {
    at.since = Clock::now();
    at.late = true;
    at.unable.clear();  // it is asked again
    held_.emplace(at.since + std::chrono::duration_cast<Clock::duration>(late), std::move(at));
    return Ended::held;
  }
  auto proof = evidence(at);
  proof["errno"] = number;
  proof["errno_name"] = name;
  if (late.count() > 0) proof["late_ms"] = whole_milliseconds(Clock::now() - at.since);
  return strike_with(at, strike, {.error = number}, {{"effect", "errno"}, {"errno", name}}, std::move(proof));
}

base::Expected<Effects::Ended> Effects::crash_before(Case& at, const Strike& strike) {
  report(at, true, {{"effect", strike.fault.kind}});
  auto proof = evidence(at);
  proof["before"] = true;
  context_.sites.fired(strike.index, std::move(proof));
  context_.crash(loses_power(strike.fault));
  return Ended::yes;
}

base::Expected<Effects::Ended> Effects::crash_after(Case& at, const Strike& strike) {
  if (!find_room(at, all_bytes)) return cannot(at, strike, full_first);
  const auto task = target(at);
  const auto outcome = carry_out(at, request(at, task));
  if (!outcome) return outcome.error();
  if (!outcome->done) return cannot(at, strike, outcome->why);
  account_space(at, outcome->result);
  report(at, true, {{"effect", strike.fault.kind}});
  auto proof = evidence(at);
  proof["after"] = true;
  proof["result"] = outcome->result;
  context_.sites.fired(strike.index, std::move(proof));
  context_.crash(loses_power(strike.fault));
  return Ended::yes;
}

Request Effects::request(const Case& at, const Target& task) const {
  const auto& call = at.notification.data;
  auto socket = at.object.socket;
  if (const auto* shape = call_shape(call.nr); shape != nullptr && shape->source != none) {
    // It is the object that the bytes go to that decides how they are carried.
    const auto status = task.descriptor_status(static_cast<int>(call.args[shape->fd]));
    socket = status && S_ISSOCK(status->st_mode);
  }
  return {.call = call, .target = task, .socket = socket, .still_valid = [this, id = at.notification.id] {
            return listener_.valid(id);
          }};
}

base::Expected<Performed> Effects::carry_out(const Case& at, const Request& request) {
  auto outcome = perform(request);
  if (context_.image == nullptr || !outcome.done || outcome.result < 0) return outcome;
  // A task that was killed meanwhile has been told of nothing, so what the image does not know of it may be lost.
  if (const auto told = tell_image_of(at, outcome.result); !told && valid(at)) return told.error();
  return outcome;
}

base::Status Effects::run(Case at) {
  if (context_.image != nullptr) {
    const auto answered = tell_image(at);
    if (!answered) return answered.error();
    if (*answered) return base::ok();
  }
  const auto sent = let_run_unless_refused(at.notification);
  if (!sent) return sent.error();
  if (!*sent) return remember(std::move(at));
  account_space(at, unlimited_bytes);
  if (!begins_again(at)) return base::ok();
  at.pauses = pauses_;
  at.space.clear();
  return remember(std::move(at), 0);
}

base::Status Effects::let_run(const seccomp_notif& notification) {
  const auto sent = let_run_unless_refused(notification);
  return sent ? base::ok() : base::Status(sent.error());
}

base::Expected<bool> Effects::let_run_unless_refused(const seccomp_notif& notification) {
  const auto id = notification.id;
  if (context_.refuse_dial && notification.data.nr == SYS_connect) {
    const auto address = dialled_address(notification.data, Target(static_cast<pid_t>(notification.pid)));
    if (!address.empty() && listener_.valid(id) && context_.refuse_dial(address))
      return listener_.fail(id, ECONNREFUSED);
  }
  return listener_.let_run(id);
}

base::Expected<Effects::Ended> Effects::strike_with(Case& at, const Strike& strike, Answer answer, Value effect,
                                                    Value proof) {
  answer.fault = strike.index;
  answer.event = event_of(at, true, std::move(effect));
  answer.proof = std::move(proof);
  return end_with(at, std::move(answer));
}

base::Expected<Effects::Ended> Effects::end_with(Case& at, Answer answer) {
  at.answer = std::move(answer);
  return give(at);
}

base::Expected<Effects::Ended> Effects::give(Case& at) {
  const auto& answer = *at.answer;
  base::Expected<bool> sent = false;
  const auto send = [&] {
    const auto id = at.notification.id;
    sent = answer.error != 0 ? listener_.fail(id, answer.error) : listener_.answer(id, answer.value);
    return sent && *sent;
  };
  if (answer.fault) {
    std::vector<Recorder::Fact> facts;
    if (!answer.event.is_null()) facts.push_back({events::syscall, answer.event});
    if (context_.sites.fired_if(*answer.fault, send, std::move(facts), answer.proof))
      context_.sites.undone(*answer.fault, "the call returned");
  } else {
    send();
  }
  if (!sent) return sent.error();
  return *sent ? Ended::yes : Ended::gone;
}

void Effects::report(Case& at, bool injected, Value more) {
  if (!injected && std::exchange(at.told, true)) return;
  if (auto event = event_of(at, injected, std::move(more)); !event.is_null())
    context_.recorder.record(context_.service, events::syscall, std::move(event));
}

Value Effects::event_of(const Case& at, bool injected, Value more) {
  std::string detail = at.unable;
  if (injected && !at.others.empty()) append_words(detail, at.others);
  if (!detail.empty()) more["detail"] = detail;
  if (!is_reported(at, injected, !more.empty())) return {};
  Value attrs = {{"call", at.object.call}, {"family", at.object.family}, {"resource", at.object.resource},
                 {"path", at.object.path}, {"n", at.occurrence},         {"injected", injected}};
  if (!more.empty()) attrs.update(more);
  return attrs;
}

/// Beyond the limit of a site the rest is only counted, in the site book: what runs, and what a rule does again and
/// again. What is at no site is not counted either.
bool Effects::is_reported(const Case& at, bool injected, bool with_detail) {
  if (injected) return ++struck_[{at.object.family, at.object.resource}] <= context_.event_limit;
  if (within_limit(at.occurrence)) return true;
  return with_detail && std::has_single_bit(++unstruck_[at.object.call]);
}

Value Effects::evidence(const Case& at) const {
  Value proof = {{"call", at.object.call}, {"pid", at.notification.pid}, {"path", at.object.path}};
  if (!at.object.peer.empty()) proof["peer"] = at.object.peer;
  return proof;
}

}  // namespace leafcutter::node
