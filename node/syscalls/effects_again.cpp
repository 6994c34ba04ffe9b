// Calls that a signal interrupts while they wait for their answer. From Linux 5.19 on that does not happen once they
// were received; before, the notification is gone, the task runs its handler, and then the same call comes again (or
// the program, told of an interruption, makes it again). It is still the same call: it was counted, its bytes may have
// been carried and its wait have begun, so what was decided stands.
#include <algorithm>
#include <cstring>
#include <utility>

#include "node/syscalls/effects.hpp"

namespace leafcutter::node {
namespace {

/// Tasks that were killed leave theirs behind, so the oldest goes.
constexpr std::size_t interrupted_at_most = 256;

/// The same call, made from the same place.
bool is_same_call(const seccomp_notif& one, const seccomp_notif& other) {
  static_assert(sizeof(seccomp_data) == 64, "nothing in it but its members");
  return one.pid == other.pid && std::memcmp(&one.data, &other.data, sizeof one.data) == 0;
}

}  // namespace

bool Effects::knows_task(std::uint32_t task) const {
  return interrupted_.contains(task) ||
         std::ranges::any_of(held_, [&](const auto& held) { return held.second.notification.pid == task; });
}

base::Status Effects::remember(Case at, unsigned calls_between) {
  if (interrupted_.size() >= interrupted_at_most)
    interrupted_.erase(
        std::ranges::min_element(interrupted_, {}, [](const auto& interrupted) { return interrupted.second.number; }));
  const auto task = at.notification.pid;
  interrupted_.emplace(task, Interrupted{std::move(at), calls_between, ++interruptions_});
  return base::ok();
}

/// SIGSTOP and SIGCONT have come and gone, but the task believes until its next return that a signal waits: a call that
/// signals can interrupt gives up at once, and is begun anew. One that the program makes twice in a row looks the same;
/// then the second one is not counted.
bool Effects::begins_again(const Case& at) const {
  if (at.pauses == pauses_) return false;
  const auto* shape = call_shape(at.notification.data.nr);
  const auto between = shape != nullptr && shape->source != none;
  return between || at.object.socket || at.object.family == "sleep" || at.object.kind == "pipe" ||
         at.object.kind == "tty" || at.object.kind == "eventfd";
}

base::Expected<bool> Effects::at_again(const seccomp_notif& notification) {
  for (auto& [due, held] : held_) {
    if (!is_same_call(held.notification, notification)) continue;
    held.notification = notification;  // and it waits on
    return true;
  }
  auto [from, to] = interrupted_.equal_range(notification.pid);
  while (from != to && !is_same_call(from->second.at.notification, notification))
    from = from->second.others_left-- == 0 ? interrupted_.erase(from) : std::next(from);
  if (from == to) return false;
  auto at = std::move(from->second.at);
  interrupted_.erase(from);
  at.notification = notification;
  if (!at.answer) {
    if (const auto done = go_on(std::move(at)); !done) return done.error();
    return true;
  }
  const auto ended = give(at);
  if (!ended) return ended.error();
  if (*ended == Ended::gone)
    if (const auto kept = remember(std::move(at)); !kept) return kept.error();
  return true;
}

}  // namespace leafcutter::node
