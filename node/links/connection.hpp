// One connection of a link: the caller's socket, the callee's socket, and the bytes between them. Carries out what
// strikes the connection as a whole; what strikes a single request is the tap's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "node/links/held_buffer.hpp"
#include "node/links/http_tap.hpp"
#include "node/links/link_context.hpp"
#include "node/links/strikes.hpp"

namespace leafcutter::node {

class Connection final : public std::enable_shared_from_this<Connection>, private Wire {
 public:
  Connection(std::shared_ptr<LinkContext> context, std::uint64_t number, base::UniqueFd caller, bool caller_is_v6);

  /// Brings it to the callee; the visit is that of its site.
  void start(const SiteBook::Visit& visit);

  /// Closes both sockets, without events.
  void stop();

  std::uint64_t number() const override { return number_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Socket = boost::asio::ip::tcp::socket;

  /// How long a caller may take none of the bytes on their way to it before its connection is ended anyway.
  static constexpr auto longest_drain = std::chrono::seconds(1);

  enum class Phase {
    connecting,
    open,
    draining,    ///< what may still reach the caller does, then the caller's connection is reset
    swallowing,  ///< a blackhole: what arrives goes nowhere
    over,
  };

  struct Direction {
    Direction(boost::asio::io_context& io, Socket& from, Socket& to, std::size_t capacity)
        : in(from), out(to), buffer(capacity), timer(io) {}
    Socket& in;
    Socket& out;
    HeldBuffer buffer;
    bool ended = false;                         ///< no more bytes come
    bool shut = false;                          ///< and the other side has been told
    bool broken = false;                        ///< `out` takes no more bytes
    bool reading = false;                       ///< waits for `in` to become readable
    bool writing = false;                       ///< waits for `out` to become writable
    bool delay_begun = false, delayed = false;  ///< latency at connect: its first bytes (and what follows them) wait
    Clock::time_point first_bytes;
    boost::asio::steady_timer timer;
  };

  // connection.cpp: from accepting to pumping
  void connect_next();
  void connected(const boost::system::error_code& error);
  void opened();
  bool needs_detour() const;
  bool take_detour();
  void pump(Direction& direction);
  bool take(Direction& direction);
  bool give(Direction& direction);
  bool swallow(Direction& direction);
  void arrived(Direction& direction, std::size_t bytes);
  void ended(Direction& direction);
  void begin_delay(Direction& direction);
  void end_delay(Direction& direction);
  std::string on_its_way() const;
  void settle(Direction& direction);
  void await_readable(Direction& direction);
  void await_writable(Direction& direction);
  bool may_take(const Direction& direction) const;
  bool is_up(const Direction& direction) const { return &direction == &up_; }

  // connection_end.cpp: everything that ends it
  void refuse(const std::string& cause);
  void report_left();
  void check_drained();
  void poll_again(void (Connection::*check)());
  void drain(const std::string& cause);
  void caller_lost();
  void callee_lost();
  void await_caller();
  void caller_left();
  void end(const std::string& cause);
  void record_connect(bool accepted);
  void record_close();
  void end_detour();

  // Wire
  HeldBuffer& up() override { return up_.buffer; }
  HeldBuffer& down() override { return down_.buffer; }
  void resume() override;
  void wake_at(Clock::time_point when) override;
  void strike_reset(const std::string& kind, std::size_t fault) override;
  void strike_blackhole(std::size_t fault) override;

  std::shared_ptr<LinkContext> context_;
  std::uint64_t number_;
  Socket caller_, callee_;
  Direction up_, down_;
  std::unique_ptr<HttpTap> tap_;  ///< on http links
  Phase phase_ = Phase::connecting;
  LinkStrikes strikes_;      ///< of the connect site
  std::size_t attempt_ = 0;  ///< next of the upstream endpoints
  boost::asio::steady_timer deadline_, wake_, poll_;
  Clock::time_point poll_until_;
  bool resuming_ = false;
  bool on_detour_ = false;
  bool reporting_ = false;  ///< bytes to a caller that sends no more: did they arrive, or was it gone?
  bool caller_gone_ = false;
  std::string cause_, detail_;
  std::optional<std::size_t> ending_fault_;  ///< its effect is over when the connection is
  std::uint64_t withheld_ = 0;
  std::string awaited_;  ///< what the activity calls a caller that waits for a blackholed answer
};

}  // namespace leafcutter::node
