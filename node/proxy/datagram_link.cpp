#include "node/proxy/datagram_link.hpp"

#include <cerrno>

#include "node/proxy/datagram_session.hpp"

namespace leafcutter::node::proxy {
namespace {

constexpr int datagrams_in_a_row = 64;

}  // namespace

DatagramLink::DatagramLink(Worker& worker, std::shared_ptr<Link> shared) : worker_(worker), shared_(std::move(shared)) {
  for (const auto& fd : shared_->listeners) {
    auto listener = std::make_unique<Listener>();
    listener->owner = this;
    listener->fd = fd.get();
    listeners_.push_back(std::move(listener));
  }
}

DatagramLink::~DatagramLink() {
  if (listening_)
    for (const auto& listener : listeners_) worker_.remove(listener->fd);
}

EventRecord DatagramLink::record(EventKind kind) const {
  EventRecord record;
  record.kind = kind;
  record.link = shared_->name;
  record.set = set_;
  return record;
}

void DatagramLink::apply(ArmedSetPtr set, bool listening) {
  if (std::exchange(listening_, listening) != listening) {
    for (const auto& listener : listeners_) {
      if (!listening) {
        worker_.remove(listener->fd);
        continue;
      }
      if (set_) drain(*listener);  // what came while the link was disabled is no traffic of it
      worker_.add(listener->fd, EPOLLIN, *listener);
    }
  }
  if (set == set_) return;
  set_ = std::move(set);
  for (const auto& [key, session] : sessions_) session->apply(set_);
}

void DatagramLink::end_all() {
  const auto sessions = sessions_;
  for (const auto& [key, session] : sessions) session->end(Cause::removed);
}

void DatagramLink::drain(const Listener& listener) {
  const auto room = worker_.scratch();
  // The socket's buffer bounds how many there are.
  while (::recv(listener.fd, room.data(), room.size(), MSG_DONTWAIT) >= 0) {
  }
}

void DatagramLink::receive(Listener& listener) {
  for (int i = 0; i < datagrams_in_a_row && listening_; ++i) {
    SocketAddress peer;
    peer.length = sizeof peer.storage;
    const auto room = worker_.scratch();
    const auto count = ::recvfrom(listener.fd, room.data(), room.size(), 0, peer.get(), &peer.length);
    if (count < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (auto* session = session_for(peer, listener.fd))
      session->from_client({room.data(), static_cast<std::size_t>(count)});
  }
}

DatagramSession* DatagramLink::session_for(const SocketAddress& peer, int listener) {
  auto key = peer.key();
  if (const auto found = sessions_.find(key); found != sessions_.end()) return found->second.get();
  if (sessions_.size() >= std::max<std::size_t>(shared_->limits.sessions, 1)) {
    auto* oldest = by_use_.front();
    discard(0, Direction::to_upstream, 0, "too many sessions: the one idle longest ends");
    oldest->end(Cause::scarce);
  }
  const auto ordinal = shared_->counters.accepted.fetch_add(1, std::memory_order_relaxed) + 1;
  shared_->counters.active.fetch_add(1, std::memory_order_relaxed);
  const auto session = std::make_shared<DatagramSession>(*this, key, peer, listener, ordinal);
  session->place = by_use_.insert(by_use_.end(), session.get());
  sessions_.emplace(std::move(key), session);
  session->start();
  return session.get();
}

void DatagramLink::used(DatagramSession& session) { by_use_.splice(by_use_.end(), by_use_, session.place); }

void DatagramLink::ended(DatagramSession& session) {
  const auto found = sessions_.find(session.key);
  if (found == sessions_.end()) return;
  by_use_.erase(session.place);
  worker_.bury(std::move(found->second));
  sessions_.erase(found);
}

void DatagramLink::discard(std::uint64_t session, Direction direction, std::size_t bytes, std::string detail) {
  shared_->counters.discarded.fetch_add(1, std::memory_order_relaxed);
  auto event = record(EventKind::discarded);
  event.connection = session;
  event.direction = direction;
  event.bytes = bytes;
  event.detail = std::move(detail);
  worker_.emit(std::move(event));
}

}  // namespace leafcutter::node::proxy
