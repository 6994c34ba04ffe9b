// Mutual TLS 1.3: a context from this side's key and certificate, and one session a connection, which is not anybody
// before its handshake is done and its peer was admitted. Not thread-safe; a session belongs to one event loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/trust/certificate.hpp"
#include "actors/trust/identity.hpp"
#include "actors/trust/openssl.hpp"
#include "base/error.hpp"

namespace leafcutter::actors {

/// What one side of a connection shows and trusts, as PEM.
struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string authority;
};

/// The peer of a verified certificate.
struct Peer {
  Identity identity;
  std::string key;  ///< fingerprint
  WallTime expires;
};

base::Expected<TlsContextPtr> make_tls_context(const TlsMaterial& material);

class TlsSession {
 public:
  enum class Progress { done, again, failed };
  /// Says why a peer with a good certificate is not wanted. Where the context does not insist on one, a peer without
  /// any is asked about as well: its key is empty.
  using Admit = std::function<base::Status(const Peer&)>;

  TlsSession(SSL_CTX& context, int fd, bool server, Admit admit);

  /// One step; `done` from when the peer is admitted. After `failed`, failure() says why.
  Progress handshake();
  bool established() const { return peer_.has_value(); }
  bool wants_write() const { return wants_write_; }
  /// The peer's certificate was good, but it was not admitted.
  bool turned_away() const { return turned_away_; }
  const std::string& failure() const { return failure_; }
  const Peer& peer() const { return *peer_; }

  /// False when the connection is over. `count` is 0 when nothing could be done yet.
  bool read(std::size_t& count, void* buffer, std::size_t size);
  bool write(std::size_t& count, const void* buffer, std::size_t size);
  /// Decrypted bytes that no event of the socket will announce.
  bool pending() const;

 private:
  bool again(int result);

  TlsPtr ssl_;
  Admit admit_;
  std::optional<Peer> peer_;
  std::string failure_;
  bool wants_write_ = false, turned_away_ = false, failed_ = false;
};

}  // namespace leafcutter::actors
