// Reads along on a connection that speaks HTTP: tells messages apart without changing a byte of them, visits the site
// of each request before any of it goes on, carries out what strikes there, and records what became of each exchange.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "node/links/held_buffer.hpp"
#include "node/links/http_record.hpp"
#include "node/links/link_context.hpp"
#include "node/links/strikes.hpp"

namespace leafcutter::node {

/// What a tap may do to the connection it reads along on.
class Wire {
 public:
  virtual HeldBuffer& up() = 0;    ///< caller to callee
  virtual HeldBuffer& down() = 0;  ///< callee to caller
  virtual std::uint64_t number() const = 0;

  /// Bytes were allowed to leave, or room was made, outside of an arrival.
  virtual void resume() = 0;
  virtual void wake_at(std::chrono::steady_clock::time_point when) = 0;

  /// Resets the caller's connection once everything allowed so far has reached it, and closes the callee's.
  virtual void strike_reset(const std::string& kind, std::size_t fault) = 0;

  /// Lets nothing pass any more until the caller closes.
  virtual void strike_blackhole(std::size_t fault) = 0;

 protected:
  ~Wire() = default;
};

class HttpTap {
 public:
  HttpTap(LinkContext& context, Wire& wire);

  void up_arrived();    ///< bytes from the caller are in up()
  void up_ended();      ///< and no more will come
  void down_arrived();  ///< bytes from the callee are in down()
  void down_ended();
  void down_left();  ///< bytes have reached the caller
  void woken();      ///< the time given to wake_at() has come

  /// The connection is over; whatever is under way ends with `outcome`.
  void connection_ended(Outcome outcome);

  /// Ends what is under way without events.
  void abandon();

  /// Why the bytes are no longer looked into; empty while they are.
  const std::string& plain() const { return plain_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Gate { open, delayed, striking };

  void begin_request(const protocols::HttpMessage& head);
  void let_go();
  void release_delay();
  void try_strike();
  void strike();
  void response_head(Exchange& exchange, unsigned status);
  bool response_complete(protocols::HttpMessage message);
  void lose(const std::shared_ptr<Exchange>& exchange);
  void end(Exchange& exchange, Outcome outcome);
  void fall_back(const std::string& why);

  LinkContext& context_;
  Wire& wire_;
  protocols::HttpReader requests_{protocols::HttpReader::Role::request};
  protocols::HttpReader responses_{protocols::HttpReader::Role::response};
  std::shared_ptr<Exchange> reading_;                 ///< whose request is still arriving
  std::deque<std::shared_ptr<Exchange>> awaiting_;    ///< no complete response yet, in order
  std::deque<std::shared_ptr<Exchange>> delivering_;  ///< response complete, not all of it has left
  // The newest request of `awaiting_`, while a fault holds it back.
  Gate gate_ = Gate::open;
  LinkStrikes strikes_;
  Clock::time_point arrival_;
  bool up_over_ = false;
  bool struck_ = false;  ///< nothing is let through any more
  std::uint64_t requests_begun_ = 0;
  std::string plain_;
};

}  // namespace leafcutter::node
