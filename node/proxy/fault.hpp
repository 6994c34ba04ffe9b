// What can be done to the bytes of a link, and to which of them: effects, selectors and the set of faults that is in
// force. Values only; the engine (engine.hpp) carries them out.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "node/proxy/filter.hpp"

namespace leafcutter::node::proxy {

using Duration = std::chrono::nanoseconds;
/// No duration of a fault may be longer.
constexpr Duration longest_fault_time = std::chrono::hours(24 * 365);

enum class Transport { tcp, udp };

/// One way through a link, from the client's point of view.
enum class Direction { to_upstream, to_client };

/// Which ways a fault applies to; `both` has independent state and draws in each direction.
enum class Flow { to_upstream, to_client, both };

/// The two sockets of a connection.
enum class Side { client, upstream, both };

/// How a connection is ended: orderly (FIN) or with a reset (RST).
enum class Ending { close, reset };

// --- durations that are drawn ---

struct FixedTime {
  Duration value{0};
  bool operator==(const FixedTime&) const = default;
};
/// Both ends included.
struct UniformTime {
  Duration min{0}, max{0};
  bool operator==(const UniformTime&) const = default;
};
/// Truncated at 0: a negative draw is drawn again, so the mean of what is drawn lies above `mean`.
struct NormalTime {
  Duration mean{0}, deviation{0};
  bool operator==(const NormalTime&) const = default;
};
/// `scale` is the smallest value; the tail is unbounded (the mean is infinite for shape <= 1): mind Latency::cap.
struct ParetoTime {
  double shape = 1;
  Duration scale{0};
  bool operator==(const ParetoTime&) const = default;
};
/// A Pareto draw plus a truncated normal draw.
struct ParetoNormalTime {
  ParetoTime pareto;
  NormalTime normal;
  bool operator==(const ParetoNormalTime&) const = default;
};
using Distribution = std::variant<FixedTime, UniformTime, NormalTime, ParetoTime, ParetoNormalTime>;

// --- effects on TCP and UDP ---

/// Every byte leaves `time` after it arrived; delays of different chunks overlap and order is kept (TCP). The end of
/// the stream follows the bytes and is not delayed itself (SlowClose does that).
struct Latency {
  enum class Draw {
    each_chunk,   ///< for every chunk read (every datagram)
    connection,   ///< once; every chunk gets the same delay
    first_bytes,  ///< once; only the first bytes are delayed, what follows queues behind them
  };
  Distribution time = FixedTime{};
  Draw draw = Draw::each_chunk;
  std::optional<Duration> cap = {};  ///< a longer draw becomes this
  Duration spread{0};                ///< evenly up to that much is added to a draw or taken from it, down to 0
  bool operator==(const Latency&) const = default;
};

/// Latency{UniformTime} whose selector draws for every chunk: the field's "jitter" beside a latency.
struct Jitter {
  Duration min{0}, max{0};
  bool operator==(const Jitter&) const = default;
};

/// Bytes take size/rate to leave, by absolute deadlines: a late wake-up is made up for. A rate of 0 stalls.
struct Bandwidth {
  enum class Scope {
    connection,  ///< each connection and direction has the rate for itself
    link,        ///< connections of the link share it, per direction
    shared,      ///< everything in the engine that names the same `bucket`
  };
  std::uint64_t bytes_per_second = 0;
  std::uint64_t burst_bytes = 0;  ///< pass at once after idle time
  Scope scope = Scope::connection;
  std::string bucket = {};              ///< with Scope::shared
  std::size_t queue_bytes = 256 << 10;  ///< UDP: what does not fit is dropped from the tail
  bool operator==(const Bandwidth&) const = default;
};

/// Nothing gets through. UDP has Mode::drop alone.
struct Blackhole {
  enum class Mode {
    stall,  ///< reading stops: the sender feels back-pressure, and what it sent arrives when the fault is removed
    drop,   ///< what arrives is read and lost, for good
  };
  Mode mode = Mode::stall;
  bool close_when_removed = false;  ///< end the connection when the fault goes, as nothing sensible can follow
  /// TCP: the connection ends that long after activation or accepting, whichever is later; traffic does not re-arm it.
  std::optional<Duration> close_after = {};
  bool operator==(const Blackhole&) const = default;
};

/// Bits are inverted, sizes stay. `flips` are at offsets of the direction's stream (TCP) or of the datagram (UDP);
/// without them, `random_bits` bits anywhere in every selected chunk or datagram.
struct Corrupt {
  struct Flip {
    std::uint64_t offset = 0;
    std::uint8_t mask = 1;
    bool operator==(const Flip&) const = default;
  };
  std::vector<Flip> flips = {};
  unsigned random_bits = 1;
  bool operator==(const Corrupt&) const = default;
};

/// TCP: the first `keep_bytes` get through, the rest is read and lost, and the connection stays open. UDP: each
/// datagram is cut to that size.
struct Truncate {
  std::uint64_t keep_bytes = 0;
  bool operator==(const Truncate&) const = default;
};

/// A piece of code of the embedder's (DNS faults, message-aware faults): see filter.hpp.
struct Filter {
  std::shared_ptr<const FilterFactory> make;
  bool operator==(const Filter&) const = default;
};

// --- effects on TCP alone ---

/// RST to one side or both; the other side of a one-sided reset gets an orderly end.
struct Reset {
  enum class When {
    at_once,      ///< also on an idle connection, `after` from activation or from accepting, whichever is later
    first_bytes,  ///< `after` from the first bytes that arrive in the direction; those are lost
  };
  Side side = Side::both;
  Duration after{0};
  When when = When::at_once;
  bool operator==(const Reset&) const = default;
};

/// One side's connection vanishes (it is reset) and the other side is told nothing: what it sends is read and lost.
struct HalfOpen {
  Side gone = Side::upstream;  ///< client or upstream
  Duration after{0};
  bool operator==(const HalfOpen&) const = default;
};

/// ECONNREFUSED for every connection while in force, if the selector selects everything (the listener stops listening
/// and keeps its port). For selected connections only: RST right after accepting.
struct Refuse {
  bool operator==(const Refuse&) const = default;
};

/// The connection is accepted, and nothing happens until the fault is removed.
struct HangConnect {
  bool operator==(const HangConnect&) const = default;
};

/// The connection is accepted, and brought to the upstream only after `time`.
struct SlowAccept {
  Distribution time = FixedTime{};
  bool operator==(const SlowAccept&) const = default;
};

/// RST `after` the connection was accepted; the upstream hears nothing of it.
struct ResetAfterAccept {
  Duration after{0};
  bool operator==(const ResetAfterAccept&) const = default;
};

/// The end of the stream is passed on that much later.
struct SlowClose {
  Duration delay{0};
  bool operator==(const SlowClose&) const = default;
};

/// The whole connection ends `after` a time (from activation or accepting, whichever is later; traffic does not re-arm
/// it) or when exactly `after_bytes` bytes of the direction got through, whichever comes first.
struct Cut {
  std::optional<Duration> after = {};
  std::optional<std::uint64_t> after_bytes = {};
  Ending ending = Ending::close;
  bool operator==(const Cut&) const = default;
};

/// Exactly `bytes` bytes get through, then this direction ends (FIN); the other one goes on.
struct Limit {
  std::uint64_t bytes = 0;
  bool operator==(const Limit&) const = default;
};

/// Chunks are cut into pieces of average_bytes +- variation_bytes, sent one by one with `pause` between them.
struct Slice {
  std::size_t average_bytes = 64;
  std::size_t variation_bytes = 0;
  Duration pause{0};
  bool operator==(const Slice&) const = default;
};

/// The request goes through, the answer does not: at the first bytes of the upstream's answer both sides are ended and
/// the answer is lost. Always to the client.
struct LoseReply {
  Ending ending = Ending::close;
  bool operator==(const LoseReply&) const = default;
};

// --- effects on UDP alone ---

struct Loss {
  double probability = 1;  ///< of each datagram
  bool operator==(const Loss&) const = default;
};

/// Gilbert-Elliott: a two-state Markov chain stepped once per datagram, with a loss probability in each state.
struct BurstLoss {
  double good_to_bad = 0, bad_to_good = 1;
  double loss_when_good = 0, loss_when_bad = 1;
  bool operator==(const BurstLoss&) const = default;
};

struct Duplicate {
  unsigned copies = 1;  ///< beyond the original
  bool operator==(const Duplicate&) const = default;
};

/// A selected datagram is held back until `gap` later ones passed it, `at_most` long.
struct Reorder {
  unsigned gap = 1;
  Duration at_most = std::chrono::milliseconds(100);
  bool operator==(const Reorder&) const = default;
};

using Effect = std::variant<Latency, Jitter, Bandwidth, Blackhole, Corrupt, Truncate, Filter, Reset, HalfOpen, Refuse,
                            HangConnect, SlowAccept, ResetAfterAccept, SlowClose, Cut, Limit, Slice, LoseReply, Loss,
                            BurstLoss, Duplicate, Reorder>;

/// "latency", "slow-accept", ...: what messages, events and statistics call the effect.
std::string_view kind_of(const Effect& effect);
/// Whether the effect exists on that transport.
bool exists_on(Transport transport, const Effect& effect);

// --- who and when ---

/// Numbers from 1: `first`, `first + every`, ... up to `last`.
struct Ordinals {
  std::uint64_t first = 1;
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t every = 1;
  bool has(std::uint64_t number) const {
    return number >= first && number <= last && (number - first) % (every == 0 ? 1 : every) == 0;
  }
  bool operator==(const Ordinals&) const = default;
};

/// Bytes of the direction's stream at offsets in [from, until).
struct ByteRange {
  std::uint64_t from = 0;
  std::uint64_t until = std::numeric_limits<std::uint64_t>::max();
  bool operator==(const ByteRange&) const = default;
};

struct Selector {
  enum class Draw {
    natural,     ///< each_chunk for jitter, corrupt, slice, truncate on UDP, duplicate, reorder; else connection
    connection,  ///< one draw decides for the connection (session) and direction
    each_chunk,  ///< a draw for every chunk read, every datagram
  };
  Flow flow = Flow::both;
  Ordinals connections = {};            ///< in the order of accepting on this link; for UDP: of sessions
  Ordinals chunks = {};                 ///< nth chunk read (datagram) of the direction while the fault is in force
  ByteRange bytes = {};                 ///< TCP
  std::vector<std::string> peers = {};  ///< client addresses, "127.0.0.1" or "10.0.0.0/8"; empty: all
  double probability = 1;               ///< 0: nothing is touched
  Draw draw = Draw::natural;

  /// Nothing is left out.
  bool selects_everything() const { return *this == Selector{}; }
  bool operator==(const Selector&) const = default;
};

struct Fault {
  /// Names the fault in events and statistics, and its random stream: (seed, link, connection, direction, id). Unique
  /// in its set; empty becomes the kind, and "kind#2", ... for the following ones.
  std::string id = {};
  Selector selector = {};
  Effect effect = Latency{};
  bool operator==(const Fault&) const = default;
};

/// All faults of a link, in the order in which bytes pass through them.
///
/// When a set replaces another on open connections, a fault that is in both (same id, same values, same order among
/// those that stay) keeps its state, and what it holds keeps its time. What any other fault holds is released at once,
/// in order, into those faults behind it that stay; it passes none of the new ones.
struct FaultSet {
  std::string phase = {};  ///< said in every event
  std::vector<Fault> faults = {};
  bool operator==(const FaultSet&) const = default;
};

/// The set with every id filled in, or what is wrong with it: "faults[1] (latency) selector.probability: ...".
base::Expected<FaultSet> checked(FaultSet set, Transport transport);

}  // namespace leafcutter::node::proxy
