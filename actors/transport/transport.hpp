// The way of CAF's actors across a network that others can reach: mutual TLS 1.3 under BASP, in place of CAF's own
// transports (its plain one believes everybody, and that of libcaf_openssl falls to anybody who sends garbage or
// nothing). Who has not shown an admitted certificate costs a bounded amount of memory and time, and is told nothing;
// who has is held to BaspGuard's rules, and is known to us by its certificate alone.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/io/middleman_actor.hpp>
#include <caf/node_id.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/messages.hpp"
#include "actors/transport/tls_session.hpp"

namespace leafcutter::actors {

/// What has come to the door since it was opened.
struct TransportCounters {
  std::uint64_t accepted = 0;      ///< connections, of anybody
  std::uint64_t admitted = 0;      ///< with an admitted certificate
  std::uint64_t no_handshake = 0;  ///< garbage, another authority, an expired certificate or none, an early end
  std::uint64_t turned_away = 0;   ///< a good certificate that is not (or no longer) admitted
  std::uint64_t too_slow = 0;      ///< not admitted, or not greeting, within the time for it
  std::uint64_t crowded_out = 0;   ///< the oldest of too many that were not admitted yet; too many altogether
  std::uint64_t offences = 0;      ///< admitted peers that said what no peer may say (BaspGuard)
  std::uint64_t unheard = 0;       ///< pieces of messages to others than the published actor: nobody gets them
  std::uint64_t overrun = 0;       ///< admitted peers that did not take what was sent to them
  std::uint64_t ended = 0;         ///< sessions whose key was revoked or whose certificate expired
};

struct TransportOptions {
  /// Read again now and then: a rotated key is shown to whoever connects from then on.
  std::function<base::Expected<TlsMaterial>()> material;
  /// Whether a verified peer is wanted; asked again, while it is connected, several times a second. Called from the
  /// transport's thread.
  TlsSession::Admit admit;
  std::chrono::milliseconds handshake_within = std::chrono::seconds(5);
  std::size_t waiting_at_most = 64;         ///< connections that are not admitted yet
  std::size_t connections_at_most = 4096;   ///< altogether
  std::size_t payload_at_most = 8u << 20;   ///< of one message
  std::size_t backlog_at_most = 64u << 20;  ///< that a peer has not taken
  /// A sentence for people about a connection that was refused or ended; from the transport's thread, at most a few a
  /// second.
  std::function<void(const std::string&)> on_refusal = {};
};

class Transport {
 public:
  /// Errors: those of the material. The system has a network (SystemConfig); it outlives the transport.
  static base::Expected<std::shared_ptr<Transport>> start(caf::actor_system& system, TransportOptions options);
  virtual ~Transport();

  /// Stands in for system.middleman().actor_handle() where others are dialled.
  virtual const caf::io::middleman_actor& middleman() const = 0;

  /// Lets admitted peers reach `actor`, and no other, at host:port; port 0 takes a free one. Errors: io (in use).
  virtual base::Expected<std::uint16_t> publish(const coordinator_actor& actor, const std::string& host,
                                                std::uint16_t port) = 0;

  /// Who is behind the actors of another system, while it is connected here; none: nobody that came through the door.
  virtual std::optional<Peer> peer_of(const caf::node_id& node) const = 0;

  virtual TransportCounters counters() const = 0;
};

}  // namespace leafcutter::actors
