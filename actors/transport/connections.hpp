// The connections of a transport: who has been let in, who is still at the door, and what has been counted. Sessions
// are touched in the multiplexer's thread only; counters and names may be asked for from any.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "actors/transport/basp_guard.hpp"
#include "actors/transport/tls_session.hpp"
#include "actors/transport/transport.hpp"

namespace leafcutter::actors {

class Connections;

/// One connection, owned by the scribe that CAF knows.
class TlsConnection {
 public:
  using Clock = std::chrono::steady_clock;

  TlsConnection(std::shared_ptr<Connections> all, std::shared_ptr<SSL_CTX> context, int fd, bool server);
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  TlsSession& session() { return session_; }
  bool over() const { return over_; }

  /// A step of the handshake; what it comes to is counted.
  TlsSession::Progress drive();
  /// False when the piece is not passed on: then it is over, or the next piece that CAF is to cut has `next` bytes.
  bool examine(std::string_view piece, std::size_t& next);
  /// False when there is too much for it that it does not take: it is over.
  bool within_backlog(std::size_t bytes);
  bool within_payload(std::size_t bytes);

  /// The socket is about to be closed.
  void let_go();

 private:
  friend class Connections;
  /// Nothing is read or written any more; CAF cleans up as for a connection that was lost.
  void end();

  std::shared_ptr<Connections> all_;
  std::shared_ptr<SSL_CTX> context_;
  TlsSession session_;
  std::optional<BaspGuard> guard_;  ///< of peers that dialled us
  Clock::time_point since_ = Clock::now();
  std::mutex mutex_;
  int fd_;
  bool counted_ = false, over_ = false;
  std::string node_;  ///< claimed
};

class Connections : public std::enable_shared_from_this<Connections> {
 public:
  explicit Connections(TransportOptions options) : options_(std::move(options)) {}

  const TransportOptions& options() const { return options_; }

  /// With what the files hold now; they are read again once a second at most. When they cannot be used, with what they
  /// held last.
  base::Expected<std::shared_ptr<SSL_CTX>> context();

  /// False when there are too many. Makes room among those that are still at the door.
  bool arrive(const std::shared_ptr<TlsConnection>& connection);

  /// Ends what has taken too long and what is not wanted any more.
  void sweep(TlsConnection::Clock::time_point now);

  void publish(std::uint64_t actor);
  bool is_published(std::uint64_t actor) const;
  std::optional<Peer> peer_of(std::string_view node) const;
  TransportCounters counters() const;

 private:
  friend class TlsConnection;
  void count(std::uint64_t TransportCounters::*what, const std::string& sentence = {});
  bool may_tell();
  base::Status claim(TlsConnection& connection, std::string_view node);
  void release(const TlsConnection& connection);
  void end_if_unwanted(TlsConnection& connection, TlsConnection::Clock::time_point now);

  TransportOptions options_;
  // Of the multiplexer's thread.
  std::deque<std::weak_ptr<TlsConnection>> list_;

  mutable std::mutex mutex_;
  TlsConnection::Clock::time_point told_at_{};
  int told_ = 0;
  std::shared_ptr<SSL_CTX> context_;
  TlsMaterial material_;
  TlsConnection::Clock::time_point looked_{};
  std::uint64_t published_ = 0;
  TransportCounters counters_;
  struct Claim {
    TlsConnection* connection = nullptr;
    Peer peer;
  };
  std::map<std::string, Claim, std::less<>> claims_;  ///< by serialized node_id
};

}  // namespace leafcutter::actors
