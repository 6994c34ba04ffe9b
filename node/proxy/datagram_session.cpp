#include "node/proxy/datagram_session.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "node/proxy/receive_queue.hpp"
#include "node/proxy/strike_record.hpp"

namespace leafcutter::node::proxy {
namespace {

constexpr int replies_in_a_row = 64;
/// Bytes of replies that were not read yet. Less than a listener's: there are as many as sessions.
constexpr int replies_queue = 1 << 20;
/// Datagrams that wait for the upstream's name to be resolved.
constexpr std::size_t most_waiting = 64;

/// The embedder's socket may be connected already.
bool has_peer(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
}

}  // namespace

DatagramSession::DatagramSession(DatagramLink& link, std::string session_key, const SocketAddress& peer, int listener,
                                 std::uint64_t ordinal)
    : key(std::move(session_key)),
      link_(link),
      worker_(link.worker()),
      peer_(peer),
      listener_(listener),
      ordinal_(ordinal),
      set_(link.set()),
      last_used_(link.worker().now()) {}

DatagramSession::~DatagramSession() { worker_.timers().clear(*this); }

EventRecord DatagramSession::record(EventKind kind) const {
  auto record = link_.record(kind);
  record.set = set_;
  record.connection = ordinal_;
  return record;
}

void DatagramSession::start() {
  auto event = record(EventKind::accepted);
  event.detail = peer_.text();
  worker_.emit(std::move(event));
  renew_chains();
  arm_timer();
  auto& shared = link_.shared();
  if (!shared.upstream_addresses.empty()) {
    open_upstream(shared.upstream_addresses);
    return;
  }
  resolving_ = true;
  auto& home = worker_;
  home.resolver().resolve(shared.upstream, [&home, weak = weak_from_this()](const Resolver::Addresses& addresses) {
    home.post([weak, addresses] {
      if (const auto self = weak.lock(); self && !self->over_) self->open_upstream(addresses);
    });
  });
}

void DatagramSession::open_upstream(const Resolver::Addresses& addresses) {
  resolving_ = false;
  const auto waiting = std::exchange(waiting_, {});
  if (!addresses) {
    report_failure(Cause::unresolved, addresses.error().message);
    end(Cause::unresolved);
    return;
  }
  const auto& address = addresses->front();
  base::UniqueFd fd;
  std::string error;
  if (link_.shared().open_socket) {
    auto opened = link_.shared().open_socket(address.family(), SOCK_DGRAM);
    opened ? (fd = std::move(*opened), void()) : (error = opened.error().message, void());
  } else {
    fd.reset(::socket(address.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) error = std::string("socket: ") + std::strerror(errno);
  }
  if (fd && link_.shared().upstream_text.empty() && !has_peer(fd.get())) {
    error = "there is no upstream, and the embedder's socket is not connected";
    errno = ENOTCONN;
    fd.reset();
  }
  if (fd && !has_peer(fd.get()) && ::connect(fd.get(), address.get(), address.length) != 0) {
    error = "connect to " + address.text() + ": " + std::strerror(errno);
    fd.reset();
  }
  if (!fd || !worker_.add(fd.get(), EPOLLIN, *this)) {
    report_failure(is_scarcity(errno) ? Cause::scarce : Cause::failed, error);
    end(is_scarcity(errno) ? Cause::scarce : Cause::failed);
    return;
  }
  widen_receive_queue(fd.get(), replies_queue);
  upstream_ = std::move(fd);
  link_.shared().counters.connected.fetch_add(1, std::memory_order_relaxed);
  worker_.emit(record(EventKind::connected));
  for (const auto& bytes : waiting) send(Direction::to_upstream, bytes);
  close_if_done();
}

void DatagramSession::report_failure(Cause cause, std::string detail) {
  if (std::exchange(failing_, true)) return;  // once, until a datagram gets through
  link_.shared().counters.connect_failed.fetch_add(1, std::memory_order_relaxed);
  auto event = record(EventKind::connect_failed);
  event.cause = cause;
  event.detail = std::move(detail);
  worker_.emit(std::move(event));
}

void DatagramSession::from_client(std::string_view bytes) {
  if (over_) return;
  last_used_ = worker_.now();
  link_.used(*this);
  pass(Direction::to_upstream, bytes);
}

void DatagramSession::ready(std::uint32_t) {
  for (int i = 0; i < replies_in_a_row && !over_; ++i) {
    const auto room = worker_.scratch();
    const auto count = ::recv(upstream_.get(), room.data(), room.size(), 0);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      send_failed(Direction::to_upstream, 0, errno);  // an ICMP error of a datagram sent before
      continue;
    }
    failing_ = false;
    last_used_ = worker_.now();
    link_.used(*this);
    pass(Direction::to_client, {room.data(), static_cast<std::size_t>(count)});
  }
}

/// False: it was sent on, since there are no faults that way, or discarded, since there is no memory for it.
bool DatagramSession::meets_faults(Direction direction, std::string_view bytes) {
  const auto& one = way(direction);
  if (!one.chain) {
    send(direction, bytes);
    return false;
  }
  if (has_room(one, bytes.size())) return true;
  link_.discard(ordinal_, direction, bytes.size(), "the link's memory is used up");
  return false;
}

void DatagramSession::pass(Direction direction, std::string_view bytes) {
  if (closing_) {
    link_.discard(ordinal_, direction, bytes.size(), "a fault ends the session");
    return;
  }
  if (!meets_faults(direction, bytes)) return;
  // It came just now, and not when the round began: other sockets may have been served for long since then.
  way(direction).chain->push(std::string(bytes), worker_.refresh());
  deliver(direction);
  close_if_done();
  if (!over_) arm_timer();
}

bool DatagramSession::has_room(const Way& one, std::size_t bytes) const {
  const auto& shared = link_.shared();
  return shared.held.load(std::memory_order_relaxed) + bytes + datagram_overhead <= shared.limits.memory_bytes &&
         one.charged + bytes <= shared.limits.direction_bytes;
}

/// Sends what the faults let through by now.
void DatagramSession::deliver(Direction direction) {
  auto& one = way(direction);
  if (!one.chain) return;
  one.chain->pump(worker_.now());
  if (!closing_) closing_ = one.chain->closed_by();
  for (const auto& bytes : one.chain->take_out()) send(direction, bytes);
  const auto opposite = direction == Direction::to_upstream ? Direction::to_client : Direction::to_upstream;
  for (auto& back : one.chain->take_back()) send_back(std::move(back), opposite);
  account(one);
}

/// A fault ends the session: when nothing of it waits any more, that is its end.
void DatagramSession::close_if_done() {
  const auto waits = [](const Way& one) { return one.chain && one.chain->cost() > 0; };
  if (!closing_ || over_ || resolving_ || !back_.empty() || waits(ways_[0]) || waits(ways_[1])) return;
  end(Cause::fault, closing_);
}

/// From the fault's place on, the other way.
void DatagramSession::pass_back(const ArmedFaultPtr& by, Direction direction, std::string bytes) {
  if (!meets_faults(direction, bytes)) return;
  way(direction).chain->insert(by, std::move(bytes), worker_.now());
  deliver(direction);
}

/// What a filter answers, now or later; for that it is charged like all that waits.
void DatagramSession::send_back(BackPassage back, Direction direction) {
  auto& [passage, by] = back;
  if (over_) return;
  if (passage.delay.count() == 0) {
    pass_back(by, direction, std::move(passage.bytes));
    return;
  }
  auto& shared = link_.shared();
  const auto cost = passage.bytes.size() + datagram_overhead;
  if (shared.held.load(std::memory_order_relaxed) + cost > shared.limits.memory_bytes) {
    link_.discard(ordinal_, direction, passage.bytes.size(), "the link's memory is used up");
    return;
  }
  shared.charge(0, cost);
  back_.push_back({worker_.now() + passage.delay, direction, std::move(passage.bytes), std::move(by)});
}

void DatagramSession::send_back_due() {
  const auto is_due = [&](const Back& back) {
    return back.due <= worker_.now() ||
           std::find(set_->faults.begin(), set_->faults.end(), back.by) == set_->faults.end();
  };
  const auto later = std::stable_partition(back_.begin(), back_.end(), is_due);
  std::vector<Back> due(std::make_move_iterator(back_.begin()), std::make_move_iterator(later));
  back_.erase(back_.begin(), later);
  for (auto& back : due) {
    link_.shared().charge(back.bytes.size() + datagram_overhead, 0);
    pass_back(back.by, back.direction, std::move(back.bytes));
  }
}

void DatagramSession::send(Direction direction, std::string_view bytes) {
  if (over_) return;
  const bool up = direction == Direction::to_upstream;
  if (up && !upstream_) {
    if (resolving_ && waiting_.size() < most_waiting)
      waiting_.emplace_back(bytes);
    else
      link_.discard(ordinal_, direction, bytes.size(), "the upstream has no address yet");
    return;
  }
  const auto attempt = [&] {
    return up ? ::send(upstream_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL)
              : ::sendto(listener_, bytes.data(), bytes.size(), MSG_NOSIGNAL, peer_.get(), peer_.length);
  };
  auto count = attempt();
  if (count < 0 && up && errno == ECONNREFUSED) {
    // The error is of a datagram sent before; this one has not been sent.
    send_failed(direction, 0, errno);
    count = attempt();
  }
  if (count < 0) {
    send_failed(direction, bytes.size(), errno);
    return;
  }
  way(direction).bytes += bytes.size();
  auto& counters = link_.shared().counters;
  counters.bytes[static_cast<std::size_t>(direction)].fetch_add(bytes.size(), std::memory_order_relaxed);
  counters.datagrams[static_cast<std::size_t>(direction)].fetch_add(1, std::memory_order_relaxed);
}

void DatagramSession::send_failed(Direction direction, std::size_t bytes, int error) {
  if (error == ECONNREFUSED)
    report_failure(Cause::refused, link_.shared().upstream_text + ": " + std::strerror(error));
  else if (bytes > 0)
    link_.discard(ordinal_, direction, bytes, std::strerror(error));
  else
    report_failure(Cause::failed, std::strerror(error));
}

void DatagramSession::apply(const ArmedSetPtr& set) {
  set_ = set;
  renew_chains();
  worker_.schedule(*this);
}

void DatagramSession::renew_chains() {
  for (const auto direction : {Direction::to_upstream, Direction::to_client}) {
    auto& one = way(direction);
    if (!one.chain && set_->faults.empty()) continue;
    if (!one.chain)
      one.chain = std::make_unique<DatagramChain>(
          DatagramChain::Context{link_.shared().seed, *link_.shared().name, ordinal_, direction, peer_.storage,
                                 link_.shared().decisions.get()},
          static_cast<StrikeSink&>(*this));
    one.chain->replace(set_->faults, worker_.now());
  }
}

void DatagramSession::pump() {
  for (const auto direction : {Direction::to_upstream, Direction::to_client}) {
    deliver(direction);
    if (auto& chain = way(direction).chain; chain && chain->idle()) chain.reset();
  }
  send_back_due();
  close_if_done();
  if (over_) return;
  if (last_used_ + link_.shared().limits.session_idle <= worker_.now())
    end(Cause::idle);
  else
    arm_timer();
}

void DatagramSession::due(Time) { pump(); }

void DatagramSession::arm_timer() {
  Time next = last_used_ + link_.shared().limits.session_idle;
  for (const auto& one : ways_)
    if (one.chain)
      if (const auto wake = one.chain->wake()) next = std::min(next, *wake);
  for (const auto& back : back_) next = std::min(next, back.due);
  worker_.timers().set(*this, next);
}

void DatagramSession::account(Way& one) {
  const auto cost = one.chain ? one.chain->cost() : 0;
  link_.shared().charge(one.charged, cost);
  one.charged = cost;
}

void DatagramSession::end(Cause cause, ArmedFaultPtr fault) {
  if (std::exchange(over_, true)) return;
  auto& counters = link_.shared().counters;
  counters.active.fetch_sub(1, std::memory_order_relaxed);
  counters.closed.fetch_add(1, std::memory_order_relaxed);
  auto event = record(EventKind::closed);
  event.cause = cause;
  event.fault = std::move(fault);
  event.bytes = way(Direction::to_upstream).bytes;
  event.bytes_back = way(Direction::to_client).bytes;
  worker_.emit(std::move(event));
  for (auto& one : ways_) {
    one.chain.reset();
    account(one);
  }
  for (const auto& back : std::exchange(back_, {})) link_.shared().charge(back.bytes.size() + datagram_overhead, 0);
  if (upstream_) worker_.remove(upstream_.get());
  upstream_.reset();
  worker_.descriptor_freed();
  worker_.timers().clear(*this);
  link_.ended(*this);
}

void DatagramSession::struck(const ArmedFault& fault, Direction direction, const Strike& strike) {
  count_strike(fault, strike, link_.shared().counters, was_struck_);
  if (worker_.recording()) worker_.emit(strike_record(record(kind_of_event(strike)), fault, direction, strike));
}

void DatagramSession::passed_over(const ArmedFault& fault, Direction direction) {
  fault.counters->passed_over.fetch_add(1, std::memory_order_relaxed);
  auto event = record(EventKind::passed_over);
  event.fault = fault.shared_from_this();
  event.direction = direction;
  worker_.emit(std::move(event));
}

}  // namespace leafcutter::node::proxy
