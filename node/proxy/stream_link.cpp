#include "node/proxy/stream_link.hpp"

#include <cerrno>
#include <cstring>

namespace leafcutter::node::proxy {
namespace {

constexpr int accepts_in_a_row = 64;

}  // namespace

StreamLink::StreamLink(Worker& worker, std::shared_ptr<Link> shared) : worker_(worker), shared_(std::move(shared)) {
  for (const auto& fd : shared_->listeners) {
    auto listener = std::make_unique<Listener>();
    listener->owner = this;
    listener->fd = fd.get();
    listeners_.push_back(std::move(listener));
  }
}

StreamLink::~StreamLink() { watch(false); }

EventRecord StreamLink::record(EventKind kind) const {
  EventRecord record;
  record.kind = kind;
  record.link = shared_->name;
  record.set = set_;
  return record;
}

void StreamLink::watch(bool listening) {
  if (std::exchange(watching_, listening) == listening) return;
  for (const auto& listener : listeners_) {
    // One connection wakes one of the threads.
    if (listening)
      worker_.add(listener->fd, EPOLLIN | EPOLLEXCLUSIVE, *listener);
    else
      worker_.remove(listener->fd);
  }
}

void StreamLink::apply(ArmedSetPtr set, bool listening) {
  listening_ = listening;
  watch(listening && !scarce_ && !full_);
  if (set == set_) return;
  set_ = std::move(set);
  for (const auto& [ordinal, connection] : connections_) connection->apply(set_);
}

void StreamLink::end_all() {
  const auto connections = connections_;
  for (const auto& [ordinal, connection] : connections) connection->end_removed();
}

void StreamLink::accept(Listener& listener) {
  for (int i = 0; i < accepts_in_a_row && watching_; ++i) {
    SocketAddress peer;
    peer.length = sizeof peer.storage;
    base::UniqueFd fd(::accept4(listener.fd, peer.get(), &peer.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      resume();
      begin(std::move(fd), peer);
      if (connections_.size() < shared_->limits.connections) continue;
      full_ = true;
      watch(false);
      return;
    }
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
    if (is_scarcity(errno)) pause_for(errno);
    return;
  }
}

void StreamLink::pause_for(int error) {
  if (!std::exchange(scarce_, true)) {
    shared_->counters.accept_failures.fetch_add(1, std::memory_order_relaxed);
    auto failed = record(EventKind::accept_failed);
    failed.cause = Cause::scarce;
    failed.detail = std::strerror(error);
    worker_.emit(std::move(failed));
  }
  watch(false);
  worker_.await_descriptors([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    watch(listening_ && !full_);
    for (const auto& listener : listeners_)
      if (watching_) accept(*listener);
  });
}

/// Accepting works (again).
void StreamLink::resume() {
  if (!std::exchange(scarce_, false)) return;
  worker_.emit(record(EventKind::accept_resumed));
}

void StreamLink::begin(base::UniqueFd client, const SocketAddress& peer) {
  const auto ordinal = shared_->counters.accepted.fetch_add(1, std::memory_order_relaxed) + 1;
  shared_->counters.active.fetch_add(1, std::memory_order_relaxed);
  const auto connection = std::make_shared<StreamConnection>(*this, std::move(client), peer, ordinal);
  connections_.emplace(ordinal, connection);
  connection->start();
}

void StreamLink::ended(StreamConnection& connection) {
  const auto found = connections_.find(connection.ordinal());
  if (found == connections_.end()) return;
  worker_.bury(std::move(found->second));
  connections_.erase(found);
  if (std::exchange(full_, false)) watch(listening_ && !scarce_);
}

}  // namespace leafcutter::node::proxy
