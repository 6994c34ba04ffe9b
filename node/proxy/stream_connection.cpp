#include "node/proxy/stream_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "node/proxy/stream_link.hpp"
#include "node/proxy/strike_record.hpp"

namespace leafcutter::node::proxy {
namespace {

bool has_stream_peer(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
}

constexpr std::uint32_t everything = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

/// The time after which a fault of the whole connection strikes, or nothing for other faults.
std::optional<Duration> rule_time(const Effect& effect) {
  if (const auto* reset = std::get_if<Reset>(&effect); reset != nullptr && reset->when == Reset::When::at_once)
    return reset->after;
  if (const auto* half = std::get_if<HalfOpen>(&effect)) return half->after;
  if (const auto* cut = std::get_if<Cut>(&effect)) return cut->after;
  if (const auto* hole = std::get_if<Blackhole>(&effect)) return hole->close_after;
  return std::nullopt;
}

Direction rule_direction(const Fault& fault) {
  return fault.selector.flow == Flow::to_client ? Direction::to_client : Direction::to_upstream;
}

Cause connect_cause(int error) {
  switch (error) {
    case ECONNREFUSED: return Cause::refused;
    case ETIMEDOUT: return Cause::timed_out;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EADDRNOTAVAIL: return Cause::unreachable;
    default: return Cause::failed;
  }
}

bool holds(const ArmedSet* set, const ArmedFaultPtr& fault) {
  return set != nullptr && std::find(set->faults.begin(), set->faults.end(), fault) != set->faults.end();
}

}  // namespace

void StreamConnection::Socket::ready(std::uint32_t events) {
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung = true;
  if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) writable = true;
  if ((events & EPOLLERR) != 0) failed = true;
  owner->worker().schedule(*owner);
}

StreamConnection::StreamConnection(StreamLink& link, base::UniqueFd client, const SocketAddress& peer,
                                   std::uint64_t ordinal)
    : link_(link),
      worker_(link.worker()),
      ordinal_(ordinal),
      peer_(peer),
      set_(link.set()),
      accepted_(link.worker().now()) {
  client_.owner = upstream_.owner = this;
  client_.fd = std::move(client);
  up_.direction = Direction::to_upstream;
  up_.from = down_.to = &client_;
  down_.direction = Direction::to_client;
  down_.from = up_.to = &upstream_;
}

StreamConnection::~StreamConnection() { worker_.timers().clear(*this); }

Worker& StreamConnection::worker() { return worker_; }
Link& StreamConnection::shared() { return link_.shared(); }

EventRecord StreamConnection::record(EventKind kind) const {
  auto record = link_.record(kind);
  record.set = set_;
  record.connection = ordinal_;
  return record;
}

void StreamConnection::struck(const ArmedFault& fault, Direction direction, const Strike& strike) {
  count_strike(fault, strike, shared().counters, was_struck_);
  if (worker_.recording()) worker_.emit(strike_record(record(kind_of_event(strike)), fault, direction, strike));
}

void StreamConnection::passed_over(const ArmedFault& fault, Direction direction) {
  fault.counters->passed_over.fetch_add(1, std::memory_order_relaxed);
  auto event = record(EventKind::passed_over);
  event.fault = fault.shared_from_this();
  event.direction = direction;
  worker().emit(std::move(event));
}

DrawKey StreamConnection::key_of(const ArmedFault& fault, Direction direction) {
  return draw_key(fault, shared().seed, *shared().name, ordinal_, direction, shared().decisions.get());
}

bool StreamConnection::selects(const ArmedFault& fault, Direction direction) {
  const Gate gate(fault.fault, key_of(fault, direction), fault.selects_peer(peer_.storage));
  if (gate.passed_over()) passed_over(fault, direction);
  return gate.connection_selected();
}

void StreamConnection::start() {
  auto event = record(EventKind::accepted);
  event.detail = peer_.text();
  worker().emit(std::move(event));
  send_at_once(client_.fd.get());
  if (!worker().add(client_.fd.get(), everything, client_)) {
    finish(SideEnd::close, SideEnd::close, Cause::failed, {}, std::string("epoll: ") + std::strerror(errno));
    return;
  }
  renew_rules(nullptr);
  if (!decide_accept()) return;
  keep_waiting();
  if (phase_ != Phase::over) arm_timer();
}

/// What the faults in force do before the upstream hears of the connection; false when that is its end.
bool StreamConnection::decide_accept() {
  for (const auto& fault : set_->faults) {
    const auto& effect = fault->fault.effect;
    const auto* slow = std::get_if<SlowAccept>(&effect);
    const auto* reset = std::get_if<ResetAfterAccept>(&effect);
    const bool refuse = std::holds_alternative<Refuse>(effect), hang = std::holds_alternative<HangConnect>(effect);
    if (slow == nullptr && reset == nullptr && !refuse && !hang) continue;
    const auto direction = rule_direction(fault->fault);
    if (!selects(*fault, direction)) continue;
    if (slow != nullptr) {
      const auto key = key_of(*fault, direction);
      const auto* recorded = key.recorded != nullptr ? key.recorded->at(0, 0) : nullptr;
      const auto delay = recorded != nullptr ? recorded->delay : Draws(key, "value").duration(slow->time);
      waits_until_ = waits_until_.value_or(accepted_) + delay;
      struck(*fault, direction, {0, 0, 0, delay});
      continue;
    }
    if (refuse || (reset != nullptr && reset->after.count() == 0)) {
      struck(*fault, direction, {});
      finish(SideEnd::reset, SideEnd::reset, Cause::fault, fault);
      return false;
    }
    if (hang) struck(*fault, direction, {});
    if (reset != nullptr) rules_.push_back({fault, accepted_ + reset->after});
    waits_for_ = fault;
    return true;
  }
  return true;
}

void StreamConnection::keep_waiting() {
  if (client_.failed || (waits_for_ && client_.hung)) {
    finish(SideEnd::close, SideEnd::close, Cause::client_left);
    return;
  }
  if (waits_for_ || (waits_until_ && *waits_until_ > worker().now())) return;
  waits_until_.reset();
  connect();
}

void StreamConnection::connect() {
  phase_ = Phase::connecting;
  deadline_ = worker().now() + shared().limits.connect_timeout;
  if (!shared().upstream_addresses.empty()) {
    addresses_ = shared().upstream_addresses;
    connect_next();
    return;
  }
  auto& home = worker();
  home.resolver().resolve(shared().upstream, [&home, weak = weak_from_this()](const Resolver::Addresses& addresses) {
    home.post([weak, addresses] {
      if (const auto self = weak.lock()) self->resolved(addresses);
    });
  });
}

void StreamConnection::resolved(const Resolver::Addresses& addresses) {
  if (phase_ != Phase::connecting) return;
  if (!addresses) {
    connect_failed(Cause::unresolved, addresses.error().message);
    return;
  }
  addresses_ = *addresses;
  connect_next();
  if (phase_ != Phase::over) arm_timer();
}

void StreamConnection::connect_next() {
  while (next_address_ < addresses_.size())
    if (try_address(addresses_[next_address_++])) return;
  connect_failed(connect_cause_, connect_error_);
}

/// Whether it is under way.
bool StreamConnection::try_address(const SocketAddress& address) {
  base::UniqueFd fd;
  int error = 0;
  if (shared().open_socket) {
    auto opened = shared().open_socket(address.family(), SOCK_STREAM);
    if (opened)
      fd = std::move(*opened);
    else
      connect_error_ = opened.error().message;
  } else {
    fd.reset(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    error = errno;
    if (!fd && is_scarcity(error)) {
      --next_address_;
      await_descriptors();
      return true;
    }
    if (!fd) connect_error_ = std::string("socket: ") + std::strerror(error);
  }
  if (!fd) return false;
  if (shared().upstream_text.empty() && !has_stream_peer(fd.get())) {
    connect_error_ = "there is no upstream, and the embedder's socket is not connected";
    return false;
  }
  send_at_once(fd.get());
  if (::connect(fd.get(), address.get(), address.length) != 0 && errno != EINPROGRESS && errno != EISCONN) {
    connect_cause_ = connect_cause(errno);
    connect_error_ = "connect to " + address.text() + ": " + std::strerror(errno);
    worker().descriptor_freed();
    return false;
  }
  upstream_.fd = std::move(fd);
  upstream_.readable = upstream_.writable = upstream_.hung = upstream_.failed = false;
  if (worker().add(upstream_.fd.get(), everything, upstream_)) return true;
  connect_error_ = std::string("epoll: ") + std::strerror(errno);
  close_socket(upstream_, false);
  return false;
}

/// The client is there already; it waits for its upstream until a descriptor is free.
void StreamConnection::await_descriptors() {
  connect_cause_ = Cause::scarce;
  connect_error_ = "no descriptor is free";
  worker().await_descriptors([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->phase_ != Phase::connecting || self->upstream_.fd) return;
    self->connect_next();
    if (self->phase_ != Phase::over) self->arm_timer();
  });
}

void StreamConnection::check_connected() {
  if (upstream_.fd && (upstream_.writable || upstream_.failed)) {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(upstream_.fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error == 0) {
      opened();
      return;
    }
    connect_cause_ = connect_cause(error);
    connect_error_ = "connect to " + addresses_[next_address_ - 1].text() + ": " + std::strerror(error);
    close_socket(upstream_, false);
    connect_next();
  } else if (worker().now() >= deadline_) {
    const bool scarce = connect_cause_ == Cause::scarce && !upstream_.fd;
    connect_failed(scarce ? Cause::scarce : Cause::timed_out,
                   scarce ? connect_error_ : "connect to " + shared().upstream_text + ": no answer in time");
  } else if (client_.failed) {
    finish(SideEnd::close, SideEnd::reset, Cause::client_left);
  }
}

void StreamConnection::connect_failed(Cause cause, std::string detail) {
  shared().counters.connect_failed.fetch_add(1, std::memory_order_relaxed);
  auto event = record(EventKind::connect_failed);
  event.cause = cause;
  event.detail = detail;
  worker().emit(std::move(event));
  finish(SideEnd::close, SideEnd::close, cause, {}, std::move(detail));
}

void StreamConnection::opened() {
  phase_ = Phase::open;
  std::vector<SocketAddress>().swap(addresses_);
  shared().counters.connected.fetch_add(1, std::memory_order_relaxed);
  worker().emit(record(EventKind::connected));
  renew_chains();
  worker().schedule(*this);
}

void StreamConnection::apply(const ArmedSetPtr& set) {
  const auto before = std::exchange(set_, set);
  if (phase_ == Phase::lingering || phase_ == Phase::over) return;
  if (phase_ == Phase::open) renew_chains();
  renew_rules(before.get());
  if (waits_for_ && !holds(set_.get(), waits_for_)) waits_for_.reset();
  worker().schedule(*this);
}

void StreamConnection::renew_chains() {
  for (auto* way : {&up_, &down_}) {
    if (!way->chain && set_->faults.empty()) continue;
    if (!way->chain)
      way->chain =
          std::make_unique<StreamChain>(StreamChain::Context{shared().seed, *shared().name, ordinal_, way->direction,
                                                             peer_.storage, way->read, shared().decisions.get()},
                                        static_cast<StrikeSink&>(*this));
    // What a fault that goes was to answer comes before what it lets go of: that may end within a message.
    deliver_back(*way);
    way->chain->replace(set_->faults, worker().now());
    if (way->chain->idle()) way->chain.reset();
    account(*way);
  }
}

void StreamConnection::renew_rules(const ArmedSet* before) {
  std::erase_if(rules_, [this](const Rule& rule) { return !holds(set_.get(), rule.fault); });
  for (const auto& fault : set_->faults) {
    const auto after = rule_time(fault->fault.effect);
    if (!after || holds(before, fault) || !selects(*fault, rule_direction(fault->fault))) continue;
    rules_.push_back({fault, worker().now() + *after});
  }
}

/// A side can vanish only when both are there.
bool StreamConnection::may_strike(const Rule& rule) const {
  return phase_ == Phase::open || !std::holds_alternative<HalfOpen>(rule.fault->fault.effect);
}

void StreamConnection::run_rules() {
  while (phase_ != Phase::lingering && phase_ != Phase::over) {
    const auto rule = std::find_if(rules_.begin(), rules_.end(),
                                   [this](const Rule& one) { return one.due <= worker().now() && may_strike(one); });
    if (rule == rules_.end()) return;
    const auto fault = rule->fault;
    rules_.erase(rule);
    struck(*fault, rule_direction(fault->fault), {});
    const auto& effect = fault->fault.effect;
    if (const auto* reset = std::get_if<Reset>(&effect))
      end_by(fault, reset->side);
    else if (const auto* half = std::get_if<HalfOpen>(&effect))
      vanish(half->gone);
    else if (const auto* cut = std::get_if<Cut>(&effect); cut != nullptr && cut->ending == Ending::close)
      end_by(fault, std::nullopt);
    else if (std::holds_alternative<Blackhole>(effect))
      end_by(fault, std::nullopt);
    else
      end_by(fault, Side::both);
  }
}

void StreamConnection::pump() {
  if (phase_ == Phase::over) return;
  retry_.reset();
  run_rules();
  switch (phase_) {
    case Phase::waiting: keep_waiting(); break;
    case Phase::connecting: check_connected(); break;
    case Phase::open:
      pump_way(up_);
      if (phase_ == Phase::open) pump_way(down_);
      if (phase_ == Phase::open) settle();
      break;
    case Phase::half_open:
    case Phase::lingering: linger(); break;
    case Phase::over: break;
  }
  if (phase_ != Phase::over) arm_timer();
}

void StreamConnection::due(Time) { pump(); }

void StreamConnection::arm_timer() {
  std::optional<Time> next = retry_;
  const auto consider = [&next](std::optional<Time> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  for (const auto& rule : rules_)
    if (may_strike(rule)) consider(rule.due);
  if (phase_ == Phase::waiting) consider(waits_until_);
  if (phase_ == Phase::connecting || phase_ == Phase::lingering) consider(deadline_);
  if (phase_ == Phase::open) {
    for (const auto* way : {&up_, &down_}) {
      if (way->chain) consider(way->chain->wake());
      for (const auto& back : way->back) consider(back.due);
    }
  }
  worker().timers().set(*this, next);
}

}  // namespace leafcutter::node::proxy
