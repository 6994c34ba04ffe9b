// Everything that ends a connection.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "node/proxy/stream_link.hpp"

namespace leafcutter::node::proxy {
namespace {

/// How long a peer may go on after it was told the end, before its connection is closed anyway.
constexpr auto longest_linger = std::chrono::seconds(2);
/// How long a reset waits for bytes before it, which it would otherwise destroy on their way.
constexpr auto longest_wait = std::chrono::seconds(1);
constexpr auto acknowledgement_retry = std::chrono::milliseconds(1);
constexpr int swallows_in_a_row = 16;
/// Seconds of silence before a peer is asked whether it is there, and between one question and the next; how many go
/// unanswered before it is not.
constexpr int probe_after = 5, probe_every = 5, most_probes = 3;

/// Has the kernel find out whether the peer is still there: it answers with a reset when it is not, and with nothing
/// when its host is gone.
void probe_peer(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe_after, sizeof probe_after);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_every, sizeof probe_every);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &most_probes, sizeof most_probes);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

StreamConnection::Step StreamConnection::act_on_end(Way& way, ChunkQueue& queue) {
  const auto end = queue.front().end;
  const bool resets = end != StreamEnd::finished && end != StreamEnd::cut_close;
  if (resets && unacknowledged(way.to->fd.get()) > 0) {
    if (!end_waits_) end_waits_ = worker().now() + longest_wait;
    if (worker().now() < *end_waits_) {
      retry_ = worker().now() + acknowledgement_retry;
      return Step::blocked;
    }
  }
  const auto cause = queue.pop().cause;
  switch (end) {
    case StreamEnd::none: break;
    case StreamEnd::finished:
      way.shut = true;
      if (!way.broken) ::shutdown(way.to->fd.get(), SHUT_WR);
      return Step::blocked;
    case StreamEnd::reset:
      finish(SideEnd::reset, SideEnd::reset, way.from == &client_ ? Cause::client_reset : Cause::upstream_reset);
      break;
    case StreamEnd::cut_close: end_by(cause, std::nullopt); break;
    case StreamEnd::cut_reset: end_by(cause, Side::both); break;
    case StreamEnd::cut_client: end_by(cause, Side::client); break;
    case StreamEnd::cut_upstream: end_by(cause, Side::upstream); break;
  }
  return Step::over;
}

void StreamConnection::end_by(const ArmedFaultPtr& fault, std::optional<Side> reset) {
  const bool client = reset == Side::client || reset == Side::both;
  const bool upstream = reset == Side::upstream || reset == Side::both;
  finish(client ? SideEnd::reset : SideEnd::close, upstream ? SideEnd::reset : SideEnd::close, Cause::fault, fault);
}

/// One side is gone, and the other is told nothing.
void StreamConnection::vanish(Side gone) {
  phase_ = Phase::half_open;
  close_socket(gone == Side::client ? client_ : upstream_, true);
  for (auto* way : {&up_, &down_}) {
    way->chain.reset();
    way->out.clear();
    way->pipe.reset();
    account(*way);
  }
  worker().schedule(*this);
}

/// After both directions were pumped: whether it is over.
void StreamConnection::settle() {
  if (up_.shut && down_.shut) {
    // Who has not ended yet (a fault ended its direction) may go on for a moment.
    if (up_.ended && down_.ended) close_socket(client_, false), close_socket(upstream_, false);
    finish(SideEnd::close, SideEnd::close, Cause::finished);
    return;
  }
  for (auto* way : {&up_, &down_}) {
    const auto& other = way == &up_ ? down_ : up_;
    const auto cause = way == &up_ ? Cause::upstream_reset : Cause::client_reset;
    if (way->broken && (other.shut || other.broken)) {
      finish(SideEnd::reset, SideEnd::reset, cause);
      return;
    }
  }
  const auto takes_none = [](const Way& way) {
    return way.ended || way.broken || (way.chain && way.chain->room() == 0);
  };
  if (client_.failed && upstream_.failed && takes_none(up_) && takes_none(down_)) {
    const bool orderly = up_.ended && down_.ended && probing_;
    finish(SideEnd::reset, SideEnd::reset, orderly ? Cause::finished : Cause::client_reset);
    return;
  }
  // Both have said that they send no more, and a fault keeps it from the other: they may wait for an answer, or have
  // gone for good, which nobody would hear of.
  if ((up_.ended || client_.hung) && (down_.ended || upstream_.hung) && !std::exchange(probing_, true)) {
    probe_peer(client_.fd.get());
    probe_peer(upstream_.fd.get());
  }
}

void StreamConnection::end_removed() { finish(SideEnd::close, SideEnd::close, Cause::removed), forget(); }

void StreamConnection::finish(SideEnd client, SideEnd upstream, Cause cause, ArmedFaultPtr fault, std::string detail) {
  if (phase_ == Phase::over) return;
  if (!std::exchange(reported_closed_, true)) {
    auto& counters = shared().counters;
    counters.active.fetch_sub(1, std::memory_order_relaxed);
    counters.closed.fetch_add(1, std::memory_order_relaxed);
    auto event = record(EventKind::closed);
    event.cause = cause;
    event.fault = std::move(fault);
    event.bytes = up_.delivered;
    event.bytes_back = down_.delivered;
    event.detail = std::move(detail);
    worker().emit(std::move(event));
  }
  phase_ = Phase::lingering;
  deadline_ = worker().now() + longest_linger;
  rules_.clear();
  waits_for_.reset();
  for (auto* way : {&up_, &down_}) {
    way->chain.reset();
    way->out.clear();
    way->pipe.reset();
    account(*way);
  }
  if (client == SideEnd::reset) close_socket(client_, true);
  if (upstream == SideEnd::reset) close_socket(upstream_, true);
  for (auto* socket : {&client_, &upstream_})
    if (socket->fd && ::shutdown(socket->fd.get(), SHUT_WR) != 0) close_socket(*socket, false);
  linger();
}

/// Reads and loses what comes, until the peer ends too.
void StreamConnection::linger() {
  for (auto* socket : {&client_, &upstream_})
    if (socket->fd) swallow(*socket);
  const bool late = phase_ == Phase::lingering && worker().now() >= deadline_;
  if (!late && (client_.fd || upstream_.fd)) {
    arm_timer();
    return;
  }
  if (phase_ == Phase::half_open)
    finish(SideEnd::close, SideEnd::close, Cause::fault);
  else
    forget();
}

void StreamConnection::swallow(Socket& socket) {
  for (int i = 0; i < swallows_in_a_row; ++i) {
    const auto room = worker().scratch();
    const auto count = ::recv(socket.fd.get(), room.data(), room.size(), 0);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (count < 0 && errno == EAGAIN) return;
    close_socket(socket, false);
    return;
  }
  worker().schedule(*this);
}

void StreamConnection::close_socket(Socket& socket, bool reset) {
  if (!socket.fd) return;
  if (reset) reset_on_close(socket.fd.get());
  worker().remove(socket.fd.get());
  socket.fd.reset();
  worker().descriptor_freed();
}

void StreamConnection::forget() {
  if (phase_ == Phase::over) return;
  phase_ = Phase::over;
  close_socket(client_, false);
  close_socket(upstream_, false);
  worker().timers().clear(*this);
  link_.ended(*this);
}

}  // namespace leafcutter::node::proxy
