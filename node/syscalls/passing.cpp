#include "node/syscalls/passing.hpp"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/syscalls/calls.hpp"

namespace leafcutter::node {

// A descriptor for the link itself, not for what it points at: it keeps no file of the service's open.
TaskLink TaskLink::open(std::uint32_t task, const std::string& what) {
  TaskLink link;
  const auto path = "/proc/" + std::to_string(task) + "/" + what;
  link.link_.reset(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  return link;
}

bool TaskLink::reads(std::string_view text) const {
  char now[PATH_MAX];
  const auto length = ::readlinkat(link_.get(), "", now, sizeof now);
  return length > 0 && std::string_view(now, static_cast<std::size_t>(length)) == text;
}

Passing::Place& Passing::place_of(std::uint32_t task, std::uint64_t descriptor) {
  return places_.at((task * 31 + descriptor) % places);
}

bool Passing::holds(const Place& place) {
  return place.link.reads(place.text) && (place.under.empty() || place.root.reads(place.under));
}

base::Expected<bool> Passing::lets_run(const seccomp_notif& notification) {
  const auto* shape = call_shape(notification.data.nr);
  if (shape == nullptr || shape->object != CallShape::Object::descriptor) return false;
  const auto descriptor = notification.data.args[shape->fd] & 0xffffffffu;
  auto& place = place_of(notification.pid, descriptor);
  if (place.task != notification.pid || place.descriptor != descriptor || !place.link.usable()) return false;
  if (place.left == 0 || !holds(place)) {
    place = {};
    return false;
  }
  --place.left;
  const auto known = std::ranges::find(place.known, notification.data.nr, &Known::number);
  if (known == place.known.end() || !context_.sites.pass(known->standing, context_.event_limit)) return false;
  if (known->moves) context_.activity.touch();
  const auto sent = listener_.let_run(notification.id);
  if (!sent) return sent.error();
  // The task was killed, and what was read of it may be another's.
  if (!*sent) context_.sites.take_back(known->standing);
  return true;
}

void Passing::learn(const seccomp_notif& notification, const Object& object, SiteBook::Standing standing, bool moves) {
  const auto* shape = call_shape(notification.data.nr);
  if (object.known_as.empty() || shape == nullptr) return;
  const auto descriptor = notification.data.args[shape->fd] & 0xffffffffu;
  auto& place = place_of(notification.pid, descriptor);
  if (place.task != notification.pid || place.descriptor != descriptor || place.text != object.known_as) {
    place = {};
    place.task = notification.pid;
    place.descriptor = descriptor;
    place.text = object.known_as;
    return;
  }
  if (!place.link.usable()) {
    place.link = TaskLink::open(notification.pid, "fd/" + std::to_string(descriptor));
    place.left = believed;
  }
  if (!object.under.empty() && !place.root.usable()) {
    place.root = TaskLink::open(notification.pid, "root");
    place.under = object.under;
  }
  if (!place.link.usable() || !holds(place)) {
    place = {};
    return;
  }
  if (std::ranges::find(place.known, notification.data.nr, &Known::number) == place.known.end())
    place.known.push_back({notification.data.nr, moves, std::move(standing)});
}

}  // namespace leafcutter::node
