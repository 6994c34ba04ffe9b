// One TCP connection of a link: two sockets, and in each direction bytes that pass through the faults in force.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "node/proxy/resolver.hpp"
#include "node/proxy/stream_chain.hpp"
#include "node/proxy/worker.hpp"

namespace leafcutter::node::proxy {

class StreamLink;

class StreamConnection final : public Pumped,
                               public Timed,
                               private StrikeSink,
                               public std::enable_shared_from_this<StreamConnection> {
 public:
  StreamConnection(StreamLink& link, base::UniqueFd client, const SocketAddress& peer, std::uint64_t ordinal);
  ~StreamConnection() override;

  void start();
  /// From now on this set.
  void apply(const ArmedSetPtr& set);
  /// Ends at once, both sides with an orderly end.
  void end_removed();
  std::uint64_t ordinal() const { return ordinal_; }

  void pump() override;
  void due(Time now) override;

 private:
  enum class Phase {
    waiting,  ///< a fault keeps it from the upstream
    connecting,
    open,
    half_open,  ///< one side is gone and the other does not know
    lingering,  ///< over; what still comes is read and lost, so that its end is orderly
    over,
  };

  struct Socket final : Source {
    StreamConnection* owner = nullptr;
    base::UniqueFd fd;
    bool readable = false, writable = false;
    bool hung = false;    ///< an end or error waits behind what is readable
    bool failed = false;  ///< the connection is no more
    void ready(std::uint32_t events) override;
  };

  struct Back {
    Time due;
    std::string bytes;
    ArmedFaultPtr by;
  };

  struct Way {
    Direction direction = Direction::to_upstream;
    Socket* from = nullptr;
    Socket* to = nullptr;
    std::unique_ptr<StreamChain> chain;  ///< null: no fault can strike any more
    ChunkQueue out;                      ///< goes before what the chain yields
    std::shared_ptr<HeldPipe> pipe;      ///< and this before that
    std::weak_ptr<HeldPipe> tail;        ///< into which the chain's next bytes go, while there are others in it
    std::uint64_t read = 0, delivered = 0;
    std::size_t charged = 0;  ///< of the link's memory
    bool ended = false;       ///< no more bytes come
    bool shut = false;        ///< and the other side has been told
    bool broken = false;      ///< `to` takes no more bytes
    bool bulk = false;        ///< many bytes at a time
    std::vector<Back> back;   ///< from filters of the other way, to `to`
  };

  /// A fault that strikes the connection at a time.
  struct Rule {
    ArmedFaultPtr fault;
    Time due;
  };

  enum class Step { moved, blocked, over };

  // stream_connection.cpp: the life of a connection
  bool decide_accept();
  void keep_waiting();
  void connect();
  void resolved(const Resolver::Addresses& addresses);
  void connect_next();
  bool try_address(const SocketAddress& address);
  void await_descriptors();
  void check_connected();
  void opened();
  void connect_failed(Cause cause, std::string detail);
  void renew_chains();
  void renew_rules(const ArmedSet* before);
  DrawKey key_of(const ArmedFault& fault, Direction direction);
  bool selects(const ArmedFault& fault, Direction direction);
  bool may_strike(const Rule& rule) const;
  void run_rules();
  void arm_timer();

  // stream_transfer.cpp: bytes
  void pump_way(Way& way);
  Step deliver(Way& way);
  Step deliver_pipe(Way& way);
  Step deliver_front(Way& way, ChunkQueue& queue);
  ssize_t write_front(Way& way, ChunkQueue& queue);
  Step write_failed(Way& way, int error);
  Step take(Way& way);
  Step take_spliced(Way& way, std::size_t most);
  Step take_held(Way& way, std::size_t most);
  Step take_copied(Way& way, std::size_t most);
  Step took(Way& way, long count, int error);
  std::size_t allowance(const Way& way) const;
  void delivered(Way& way, std::size_t bytes, bool spliced = false);
  void came_in(Way& way, std::size_t bytes);
  void collect_back(Way& way);
  void deliver_back(Way& way);
  void account(Way& way);
  void swallow(Socket& socket);

  // stream_end.cpp: ends
  Step act_on_end(Way& way, ChunkQueue& queue);
  void end_by(const ArmedFaultPtr& fault, std::optional<Side> reset);
  void vanish(Side gone);
  enum class SideEnd { close, reset };
  void finish(SideEnd client, SideEnd upstream, Cause cause, ArmedFaultPtr fault = {}, std::string detail = {});
  void settle();
  void linger();
  void close_socket(Socket& socket, bool reset);
  void forget();

  // evidence
  void struck(const ArmedFault& fault, Direction direction, const Strike& strike) override;
  void passed_over(const ArmedFault& fault, Direction direction) override;
  EventRecord record(EventKind kind) const;

  Worker& worker();
  Link& shared();

  StreamLink& link_;
  Worker& worker_;  ///< outlives the link
  std::uint64_t ordinal_;
  SocketAddress peer_;
  Phase phase_ = Phase::waiting;
  ArmedSetPtr set_;
  Socket client_, upstream_;
  Way up_, down_;
  Time accepted_, deadline_{};
  std::vector<Rule> rules_;
  ArmedFaultPtr waits_for_;  ///< HangConnect
  std::optional<Time> waits_until_;
  std::vector<SocketAddress> addresses_;
  std::size_t next_address_ = 0;
  std::string connect_error_;
  Cause connect_cause_ = Cause::unreachable;
  bool was_struck_ = false, reported_closed_ = false;
  bool probing_ = false;           ///< whether the peers are still there
  std::optional<Time> retry_;      ///< of what nothing tells of: memory of the link, acknowledgements
  std::optional<Time> end_waits_;  ///< a reset waits that long for bytes before it to be acknowledged
};

}  // namespace leafcutter::node::proxy
