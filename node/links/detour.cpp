#include "node/links/detour.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "node/links/engine_faults.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/link_aim.hpp"

namespace leafcutter::node {
namespace {

using base::UniqueFd;

/// Links of the engine, and their descriptors, that are kept after their connection's end.
constexpr std::size_t most_retired = 128;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Effects on the connection as a whole: both sides feel them.
bool concerns_both(std::string_view effect) {
  return is_one_of(effect, {"reset", "half-open", "hang-connect", "slow-accept", "reset-after-accept", "cut"});
}

/// After these the caller may wait for something that never comes, and nothing shows that it does.
bool leaves_waiting(std::string_view effect) {
  return is_one_of(effect, {"blackhole", "half-open", "hang-connect", "truncate"});
}

struct Ends {
  UniqueFd near, listener;
};

/// The near end is connected to the listener, whose queue holds the far end.
base::Expected<Ends> make_ends(const DetourContext& context) {
  auto listener = context.open_between();
  if (!listener) return listener.error();
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  auto* address = reinterpret_cast<sockaddr*>(&name);
  if (::bind(listener->get(), address, length) != 0 || ::listen(listener->get(), 1) != 0 ||
      ::getsockname(listener->get(), address, &length) != 0)
    return base::system_error("listen for a detour", errno);
  auto near = context.open_between();
  if (!near) return near.error();
  // Over loopback the handshake is over when connect(2) returns: it may wait for that.
  const int flags = ::fcntl(near->get(), F_GETFL);
  ::fcntl(near->get(), F_SETFL, flags & ~O_NONBLOCK);
  if (::connect(near->get(), address, length) != 0) return base::system_error("dial a detour", errno);
  ::fcntl(near->get(), F_SETFL, flags | O_NONBLOCK);
  return Ends{std::move(*near), std::move(*listener)};
}

proxy::OpenSocket hands_over(UniqueFd callee) {
  auto held = std::make_shared<UniqueFd>(std::move(callee));
  return [held](int, int) -> base::Expected<UniqueFd> {
    if (!*held) return base::Error{base::ErrorCode::conflict, "the callee's socket was handed over before", {}};
    return std::move(*held);
  };
}

/// The draws of a fault depend on what it is, not on which other faults there are: ids are their streams' names.
std::string engine_id(const Fault& fault, const std::map<std::string, SiteBook::Strike, std::less<>>& taken) {
  auto id = fault.text();
  if (fault.aim) id += " seed " + std::to_string(fault.aim->seed);
  for (int n = 2; taken.contains(id); ++n) id = fault.text() + " again " + std::to_string(n);
  return id;
}

Value evidence_of(const proxy::Event& event, std::uint64_t connection) {
  Value evidence = {{"conn", connection}};
  if (event.effect == "latency" || event.effect == "jitter" || event.effect == "slow-accept" ||
      event.effect == "slow-close")
    evidence["delay_ms"] = std::chrono::duration<double, std::milli>(event.delay).count();
  if (concerns_both(event.effect) && event.effect != "cut") return evidence;
  evidence["direction"] = event.direction == proxy::Direction::to_upstream ? "to-service" : "to-caller";
  evidence["offset"] = event.offset;
  evidence["bytes"] = event.bytes;
  return evidence;
}

}  // namespace

bool needs_detour(const scenarios::Plan& plan) {
  return std::any_of(plan.faults.begin(), plan.faults.end(), [](const scenarios::Fault& fault) {
    const auto* kind = scenarios::fault_kind(fault.kind);
    return kind != nullptr && !scenarios::never_strikes(fault) &&
           (kind->between || (is_engine_fault(fault) && fault.site.operation == "connect"));
  });
}

Detour::Detour(DetourContext context) : context_(std::move(context)) {
  const auto& faults = context_.sites.plan().faults;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (!scenarios::strikes_open_connections(faults[i])) continue;
    awaiting_event_.push_back(i);
    cover(faults[i].site.lane);
  }
  if (awaiting_event_.empty()) return;
  wake_ = context_.sites.wake_at_release([this, alive = std::weak_ptr(alive_)] {
    context_.post([this, alive] {
      if (alive.lock()) catch_up();
    });
  });
}

Detour::~Detour() {
  if (wake_ != 0) context_.sites.forget_wake(wake_);
}

std::string Detour::name_of(const std::string& lane, std::uint64_t connection) {
  return lane + " #" + std::to_string(connection);
}

base::Expected<UniqueFd> Detour::lead(Passage passage) {
  const auto name = name_of(passage.lane, passage.connection);
  Led led;
  led.link = &passage.link;
  led.lane = passage.lane;
  led.connection = passage.connection;
  proxy::LinkConfig config;
  config.name = name;
  for (const auto& planned : passage.strikes)
    if (auto status = strike(led, planned, false); !status) return status.error();
  // The event came while the connection was on its way to the callee: it is one of those that are open.
  for (const auto rule : in_force_) {
    bool struck = false;
    if (context_.sites.plan().faults[rule].site.lane == led.lane)
      if (auto status = strike_open(led, rule, struck); !status) return status.error();
  }
  auto ends = make_ends(context_);
  if (!ends) return ends.error();
  config.listeners.push_back(std::move(ends->listener));
  if (passage.callee) {
    config.open_socket = hands_over(std::move(passage.callee));
  } else {
    if (!passage.endpoints.empty()) config.upstream = passage.endpoints.front();
    if (passage.endpoints.size() > 1)
      config.further_upstreams = {passage.endpoints.begin() + 1, passage.endpoints.end()};
    config.open_socket = std::move(passage.open_far);
  }
  {
    const std::lock_guard lock(mutex_);
    config.faults = set_of(led);
    led_.emplace(name, std::move(led));
  }
  const auto added = context_.engine.add(std::move(config), [this](const proxy::Event& event) { heard(event); });
  if (!added) {
    const std::lock_guard lock(mutex_);
    led_.erase(name);
    return added.error();
  }
  return std::move(ends->near);
}

// --- rules ---

base::Status Detour::strike(Led& led, const SiteBook::Strike& strike, bool open) {
  const auto& fault = strike.fault;
  auto faults = engine_faults(fault, engine_id(fault, led.faults), led.lane,
                              {scenarios::drawn_ways(fault, led.connection), open});
  if (!faults) return faults.error();
  for (auto& one : *faults) {
    led.faults.emplace(one.id, strike);
    led.own[strike.index].push_back(std::move(one));
  }
  return base::ok();
}

base::Status Detour::strike_open(Led& led, std::size_t rule, bool& struck) {
  const auto planned = context_.sites.visit_open(rule, led.connection);
  if (!planned) return base::ok();
  struck = true;
  return strike(led, *planned, true);
}

/// The oldest first.
std::vector<std::pair<std::string, Detour::Led*>> Detour::open_connections(const std::string& lane) {
  std::vector<std::pair<std::string, Led*>> open;
  for (auto& [name, led] : led_)
    if (led.lane == lane && !led.over && !led.released) open.emplace_back(name, &led);
  std::sort(open.begin(), open.end(),
            [](const auto& a, const auto& b) { return a.second->connection < b.second->connection; });
  return open;
}

void Detour::catch_up() {
  std::map<std::string, proxy::FaultSet> sets;
  base::Status status = base::ok();
  for (auto at = awaiting_event_.begin(); at != awaiting_event_.end();) {
    if (context_.sites.waits(*at)) {
      ++at;
      continue;
    }
    const auto rule = *at;
    at = awaiting_event_.erase(at);
    in_force_.push_back(rule);
    const std::lock_guard lock(mutex_);
    for (auto& [name, led] : open_connections(context_.sites.plan().faults[rule].site.lane)) {
      bool struck = false;
      if (auto done = strike_open(*led, rule, struck); !done) status = done;
      if (struck) sets[name] = set_of(*led);
    }
  }
  // Not under the lock: the engine's threads may wait for it.
  if (status) status = context_.engine.set_faults(std::move(sets));
  if (!status && context_.failed) context_.failed("strike open connections: " + status.error().text());
}

void Detour::stop_awaiting(Led& led) {
  led.given_up = true;
  if (!led.awaited.empty()) context_.activity.end(std::exchange(led.awaited, {}));
}

void Detour::caller_ended(const std::string& lane, std::uint64_t connection) {
  const std::lock_guard lock(mutex_);
  if (const auto found = led_.find(name_of(lane, connection)); found != led_.end()) stop_awaiting(found->second);
}

std::optional<Detour::Ended> Detour::release(const std::string& lane, std::uint64_t connection) {
  const std::lock_guard lock(mutex_);
  const auto found = led_.find(name_of(lane, connection));
  if (found == led_.end()) return std::nullopt;
  auto& led = found->second;
  led.released = true;
  stop_awaiting(led);  // the engine may still have something to bring to the other side
  if (!led.over) return std::nullopt;
  auto how = std::move(led.how);
  if (led.forgotten) led_.erase(found);
  return how;
}

// --- partitions ---

proxy::FaultSet Detour::set_of(const Led& led) const {
  proxy::FaultSet set;
  for (const auto& [index, faults] : led.own) set.faults.insert(set.faults.end(), faults.begin(), faults.end());
  for (const auto& [id, cut] : cuts_)
    if (cut.crosses(led.lane)) set.faults.push_back(cut.fault(led.lane, proxy::Blackhole::Mode::stall));
  return set;
}

base::Expected<std::size_t> Detour::begin_cut(const Cut& cut) {
  std::map<std::string, proxy::FaultSet> sets;
  std::size_t open = 0;
  {
    const std::lock_guard lock(mutex_);
    cuts_.emplace(cut.id, cut);
    for (const auto& [name, led] : led_) {
      if (!cut.crosses(led.lane) || led.forgotten) continue;
      sets.emplace(name, set_of(led));
      if (!led.over) ++open;
    }
  }
  // Not under the lock: the engine's threads may wait for it.
  if (auto changed = context_.engine.set_faults(std::move(sets)); !changed) return changed.error();
  return open;
}

base::Status Detour::end_cut(const std::string& id) {
  std::map<std::string, proxy::FaultSet> sets;
  {
    const std::lock_guard lock(mutex_);
    const auto found = cuts_.find(id);
    if (found == cuts_.end()) return base::ok();
    const auto cut = std::move(found->second);
    cuts_.erase(found);
    for (const auto& [name, led] : led_)
      if (cut.crosses(led.lane) && !led.forgotten) sets.emplace(name, set_of(led));
  }
  return context_.engine.set_faults(std::move(sets));
}

// --- what the engine tells, on its own thread ---

void Detour::heard(const proxy::Event& event) {
  if (event.connection == 0) return;  // of the link
  const std::lock_guard lock(mutex_);
  const auto found = led_.find(event.link);
  if (found == led_.end()) return;
  auto& led = found->second;
  switch (event.kind) {
    case proxy::EventKind::struck: struck(led, event); break;
    case proxy::EventKind::closed: closed(led, event); break;
    case proxy::EventKind::connect_failed:
      led.how.refused = event.cause == proxy::Cause::refused;
      led.how.detail = event.detail;
      break;
    default: break;
  }
}

void Detour::struck(Led& led, const proxy::Event& event) {
  if (const auto cut = cuts_.find(std::string(event.fault)); cut != cuts_.end()) {
    cut->second.met(led.lane, event);
    return;
  }
  const auto found = led.faults.find(event.fault);
  if (found == led.faults.end()) return;
  context_.sites.fired(found->second.index, evidence_of(event, led.connection));
  const auto seen = context_.recorder.now(led.lane);
  const bool both = concerns_both(event.effect);
  if (both || event.direction == proxy::Direction::to_upstream) context_.recorder.deliver(led.link->to, seen);
  if (both || event.direction == proxy::Direction::to_client) context_.recorder.deliver(led.link->from, seen);
  if (leaves_waiting(event.effect) && !led.given_up && led.awaited.empty()) {
    led.awaited = "struck connection " + led.lane + " #" + std::to_string(led.connection);
    context_.activity.begin(led.awaited);
  }
}

void Detour::closed(Led& led, const proxy::Event& event) {
  led.over = true;
  if (const auto found = led.faults.find(event.fault); found != led.faults.end())
    led.how.fault = found->second.fault.kind;
  stop_awaiting(led);
  const auto how = "the connection is closed; " + std::to_string(event.bytes) + " bytes reached the service, " +
                   std::to_string(event.bytes_back) + " the caller";
  for (const auto& [id, strike] : led.faults) context_.sites.undone(strike.index, how);
  context_.post([this, name = std::string(event.link)] { retire(name); });
}

/// The engine still reads what is sent to an end that is over, for a while: taken away at once, it would answer with a
/// reset, which destroys what is on its way.
void Detour::retire(const std::string& name) {
  retired_.push_back(name);
  if (retired_.size() <= most_retired) return;
  forget(retired_.front());
  retired_.pop_front();
}

void Detour::forget(const std::string& name) {
  context_.engine.remove(name);
  const std::lock_guard lock(mutex_);
  const auto found = led_.find(name);
  if (found == led_.end()) return;
  found->second.forgotten = true;
  if (found->second.released) led_.erase(found);
}

}  // namespace leafcutter::node
