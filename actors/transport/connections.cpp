#include "actors/transport/connections.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <vector>

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;

constexpr auto read_again_after = std::chrono::seconds(1);
constexpr int sentences_a_second = 5;

}  // namespace

// --- one connection

TlsConnection::TlsConnection(std::shared_ptr<Connections> all, std::shared_ptr<SSL_CTX> context, int fd, bool server)
    : all_(std::move(all)),
      context_(std::move(context)),
      session_(*context_, fd, server, all_->options().admit),
      fd_(fd) {
  if (!server) return;
  BaspGuard::Rules rules;
  rules.payload_at_most = all_->options().payload_at_most;
  rules.may_reach = [this](std::uint64_t actor) { return all_->is_published(actor); };
  rules.claim = [this](std::string_view node) { return all_->claim(*this, node); };
  guard_.emplace(std::move(rules));
}

TlsConnection::~TlsConnection() {
  // Never admitted, and nobody counted why: it went away by itself.
  if (!counted_) all_->count(&TransportCounters::no_handshake);
  all_->release(*this);
}

void TlsConnection::let_go() {
  const std::lock_guard lock(mutex_);
  fd_ = -1;
}

void TlsConnection::end() {
  over_ = true;
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

TlsSession::Progress TlsConnection::drive() {
  if (over_) return TlsSession::Progress::failed;
  const auto progress = session_.handshake();
  if (progress == TlsSession::Progress::again || counted_) return progress;
  counted_ = true;
  if (progress == TlsSession::Progress::done)
    all_->count(&TransportCounters::admitted);
  else if (session_.turned_away())
    all_->count(&TransportCounters::turned_away, "turned away: " + session_.failure());
  else
    all_->count(&TransportCounters::no_handshake, "refused: " + session_.failure());
  return progress;
}

bool TlsConnection::examine(std::string_view piece, std::size_t& next) {
  if (over_) return false;
  if (!guard_) return true;
  const auto taken = guard_->take(piece);
  next = guard_->next_bytes();
  if (taken && !guard_->passes()) all_->count(&TransportCounters::unheard);
  if (taken) return guard_->passes();
  all_->count(&TransportCounters::offences,
              describe(session_.peer().identity) + " is disconnected: " + taken.error().message);
  end();
  return false;
}

bool TlsConnection::within_backlog(std::size_t bytes) {
  if (over_) return false;
  if (bytes <= all_->options().backlog_at_most) return true;
  all_->count(&TransportCounters::overrun,
              describe(session_.peer().identity) + " is disconnected: it does not take what is sent to it");
  end();
  return false;
}

bool TlsConnection::within_payload(std::size_t bytes) {
  if (over_) return false;
  if (bytes <= all_->options().payload_at_most) return true;
  all_->count(&TransportCounters::offences, "disconnected: a message of " + std::to_string(bytes) + " bytes; at most " +
                                                std::to_string(all_->options().payload_at_most) + " are taken");
  end();
  return false;
}

// --- all of them

base::Expected<std::shared_ptr<SSL_CTX>> Connections::context() {
  const auto now = TlsConnection::Clock::now();
  const std::lock_guard lock(mutex_);
  if (context_ && now - looked_ < read_again_after) return context_;
  looked_ = now;
  auto material = options_.material();
  const bool same = material && context_ && material->certificate == material_.certificate &&
                    material->key == material_.key && material->authority == material_.authority;
  if (same) return context_;
  auto made = material ? make_tls_context(*material) : base::Expected<TlsContextPtr>(material.error());
  if (!made) {
    if (context_) return context_;
    return made.error();
  }
  material_ = std::move(*material);
  context_ = std::shared_ptr<SSL_CTX>(made->release(), SSL_CTX_free);
  return context_;
}

bool Connections::arrive(const std::shared_ptr<TlsConnection>& connection) {
  std::erase_if(list_, [](const auto& entry) { return entry.expired(); });
  if (connection->guard_) count(&TransportCounters::accepted);
  if (list_.size() >= options_.connections_at_most) {
    connection->counted_ = true;
    count(&TransportCounters::crowded_out, "refused: " + std::to_string(list_.size()) + " are connected already");
    return false;
  }
  std::size_t waiting = 0;
  std::shared_ptr<TlsConnection> oldest;
  for (const auto& entry : list_) {
    const auto other = entry.lock();
    if (!other || other->session_.established() || other->over_) continue;
    if (!oldest) oldest = other;
    ++waiting;
  }
  // The oldest goes: whoever is honest is done in a moment.
  if (oldest && waiting >= options_.waiting_at_most) {
    oldest->counted_ = true;
    oldest->end();
    count(&TransportCounters::crowded_out);
  }
  list_.push_back(connection);
  return true;
}

void Connections::sweep(TlsConnection::Clock::time_point now) {
  std::erase_if(list_, [](const auto& entry) { return entry.expired(); });
  for (const auto& entry : list_)
    if (const auto connection = entry.lock(); connection && !connection->over_) end_if_unwanted(*connection, now);
}

void Connections::end_if_unwanted(TlsConnection& connection, TlsConnection::Clock::time_point now) {
  const bool late = now - connection.since_ > options_.handshake_within;
  if (!connection.session_.established()) {
    if (!late) return;
    connection.counted_ = true;
    connection.end();
    return count(&TransportCounters::too_slow, "refused: no handshake within the time for it");
  }
  const auto& peer = connection.session_.peer();
  if (late && connection.guard_ && !connection.guard_->greeted()) {
    connection.end();
    return count(&TransportCounters::too_slow, describe(peer.identity) + " is disconnected: it does not say anything");
  }
  auto wanted = options_.admit(peer);
  if (wanted && peer.expires <= std::chrono::system_clock::now())
    wanted = Error{ErrorCode::bad_input, "its certificate has expired"};
  if (wanted) return;
  connection.end();
  count(&TransportCounters::ended, describe(peer.identity) + " is disconnected: " + wanted.error().message);
}

void Connections::count(std::uint64_t TransportCounters::*what, const std::string& sentence) {
  {
    const std::lock_guard lock(mutex_);
    ++(counters_.*what);
  }
  if (!sentence.empty() && options_.on_refusal && may_tell()) options_.on_refusal(sentence);
}

bool Connections::may_tell() {
  const auto now = TlsConnection::Clock::now();
  const std::lock_guard lock(mutex_);
  if (now - told_at_ > std::chrono::seconds(1)) {
    told_at_ = now;
    told_ = 0;
  }
  return ++told_ <= sentences_a_second;
}

base::Status Connections::claim(TlsConnection& connection, std::string_view node) {
  const std::lock_guard lock(mutex_);
  const auto found = claims_.find(node);
  if (found == claims_.end()) {
    connection.node_ = node;
    claims_.emplace(connection.node_, Claim{&connection, connection.session_.peer()});
    return base::ok();
  }
  // The same program, whose last connection is dead without our knowing: it goes, and the next attempt succeeds.
  auto& other = *found->second.connection;
  if (other.session_.peer().key == connection.session_.peer().key) other.end();
  return Error{ErrorCode::conflict, "another connection of that program is open"};
}

void Connections::release(const TlsConnection& connection) {
  const std::lock_guard lock(mutex_);
  const auto found = claims_.find(connection.node_);
  if (found != claims_.end() && found->second.connection == &connection) claims_.erase(found);
}

void Connections::publish(std::uint64_t actor) {
  const std::lock_guard lock(mutex_);
  published_ = actor;
}

bool Connections::is_published(std::uint64_t actor) const {
  const std::lock_guard lock(mutex_);
  return published_ != 0 && actor == published_;
}

std::optional<Peer> Connections::peer_of(std::string_view node) const {
  const std::lock_guard lock(mutex_);
  const auto found = claims_.find(node);
  if (found == claims_.end()) return std::nullopt;
  return found->second.peer;
}

TransportCounters Connections::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace leafcutter::actors
