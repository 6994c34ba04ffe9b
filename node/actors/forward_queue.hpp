// What a node still owes the coordinator: the spooled executions, how far each is sent and acknowledged, and what goes
// out next. A value without sockets, clocks or threads. Go-back-N: after a silence, or when the receiver says that it
// has less than it once had (it was restarted), everything from its last word on is sent again.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "node/actors/spool.hpp"
#include "protocols/stream.hpp"

namespace leafcutter::node {

class ForwardQueue {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  struct Options {
    std::string folder;
    std::chrono::milliseconds silence{500};  ///< without progress: send again
    std::size_t window_batches = 32;         ///< in flight, for each execution
    std::size_t window_bytes = 4u << 20;     ///< in flight, altogether
  };

  struct Stored {
    protocols::Ack ack;  ///< for the leaf
    bool news = false;   ///< something was stored
  };

  explicit ForwardQueue(Options options);

  /// Takes up what an earlier process left. A spool without an end gets one: its leaf died with that process.
  base::Status recover();

  /// A leaf's batch. Errors: io (nothing was stored; the leaf sends it again).
  base::Expected<Stored> store(const protocols::BatchHeader& header, const std::string& chunk);

  /// No more batches come; returns how many events are stored, also of an execution that the coordinator has
  /// altogether.
  std::uint64_t close(const std::string& execution);
  void discard(const std::string& execution);

  struct Outgoing {
    std::string header, chunk;
  };
  /// The next batch to send, or nothing while the window is full. sent() commits it; without that the same comes again.
  std::optional<Outgoing> next();
  void sent(Instant now);

  /// The receiver's word.
  void acknowledged(const protocols::Ack& ack, Instant now);

  /// Goes back where nothing has moved for too long.
  void tick(Instant now);

  /// Something is sent and not acknowledged: tick() has to be called again soon.
  bool in_flight() const;

  std::size_t executions() const { return streams_.size(); }
  std::uint64_t spooled_bytes() const { return spooled_; }

 private:
  struct Stream {
    SpoolFile file;
    std::uint64_t next = 0;           ///< events stored
    bool ended = false;               ///< the last batch is stored
    std::size_t sent = 0, acked = 0;  ///< batches
    Instant progress{};
  };
  using Streams = std::map<std::string, Stream>;

  std::size_t in_flight_bytes(const Stream& stream) const;
  void erase(Streams::iterator stream);
  void remember(const std::string& execution, std::uint64_t events);

  Options options_;
  Streams streams_;
  std::string turn_;  ///< the execution that sent last: round robin
  std::uint64_t spooled_ = 0;
  std::size_t flying_ = 0;  ///< bytes in flight
  std::map<std::string, std::uint64_t>
      gone_;  ///< over lately, with their events: late batches of these are not taken up again
  std::deque<std::string> gone_order_;
};

}  // namespace leafcutter::node
