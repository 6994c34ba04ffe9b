#include "node/links/connection.hpp"

#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "node/links/detour.hpp"
#include "node/links/sockets.hpp"

namespace leafcutter::node {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// A head must fit into its buffer whole, since it is held back until it is complete.
constexpr std::size_t plain_capacity = 64 * 1024;
constexpr std::size_t http_capacity = 2 * protocols::http_head_limit;
constexpr auto connect_deadline = std::chrono::seconds(30);
/// Reads and writes of one connection before the others get their turn.
constexpr int rounds_in_a_row = 16;

std::string endpoint_text(const tcp::endpoint& endpoint) {
  const auto address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

std::size_t capacity_for(const scenarios::Link& link) {
  return link.protocol == scenarios::Protocol::http ? http_capacity : plain_capacity;
}

}  // namespace

Connection::Connection(std::shared_ptr<LinkContext> context, std::uint64_t number, base::UniqueFd caller,
                       bool caller_is_v6)
    : context_(std::move(context)),
      number_(number),
      caller_(context_->proxy.io, caller_is_v6 ? tcp::v6() : tcp::v4(), caller.release()),
      callee_(context_->proxy.io),
      up_(context_->proxy.io, caller_, callee_, capacity_for(context_->link)),
      down_(context_->proxy.io, callee_, caller_, capacity_for(context_->link)),
      deadline_(context_->proxy.io),
      wake_(context_->proxy.io),
      poll_(context_->proxy.io) {
  if (context_->link.protocol == scenarios::Protocol::http)
    tap_ = std::make_unique<HttpTap>(*context_, static_cast<Wire&>(*this));
}

void Connection::start(const SiteBook::Visit& visit) {
  context_->proxy.activity.touch();
  strikes_ = link_strikes(visit);
  if (strikes_.final && strikes_.final->end == LinkStrikes::End::refuse) {
    ending_fault_ = strikes_.final->index;
    context_->fired(*ending_fault_,
                    {{"conn", number_},
                     {"bytes_forwarded", 0},
                     {"seen_as", "accepted, then reset: nobody looks at what this caller dials"}},
                    context_->link.from);
    refuse("fault:refuse");
    return;
  }
  for (const auto& strike : strikes_.partitions)
    if (context_->proxy.part) context_->proxy.part(strike, {{"at_connection", number_}, {"link", context_->id}});
  if (strikes_.before_dialling() && take_detour()) {
    opened();
    return;
  }
  connect_next();
}

bool Connection::needs_detour() const {
  const auto* detour = context_->proxy.detour;
  return !strikes_.engine.empty() || (detour != nullptr && detour->covers(context_->id));
}

/// From here on the bytes pass through the engine, which has the callee's socket, or dials it when its faults let it.
bool Connection::take_detour() {
  auto* detour = context_->proxy.detour;
  if (detour == nullptr || on_detour_) return false;
  Detour::Passage passage{context_->link, context_->id, number_, strikes_.engine};
  boost::system::error_code error;
  if (callee_.is_open()) {
    passage.callee.reset(callee_.release(error));
  } else {
    for (const auto& endpoint : context_->upstream) passage.endpoints.push_back(endpoint_text(endpoint));
    passage.open_far = [open = context_->open_socket](int family, int) { return open(family); };
  }
  auto near = detour->lead(std::move(passage));
  if (near) callee_.assign(tcp::v4(), near->get(), error);
  if (!near || error) {
    detail_ = "detour: " + (near ? error.message() : near.error().message);
    return false;
  }
  near->release();
  return on_detour_ = true;
}

void Connection::connect_next() {
  if (attempt_ == context_->upstream.size()) {
    refuse("refused");
    return;
  }
  const auto& endpoint = context_->upstream[attempt_++];
  auto socket = context_->open_socket(endpoint.protocol().family());
  if (!socket) {
    detail_ = socket.error().message;
    connect_next();
    return;
  }
  boost::system::error_code error;
  callee_.close(error);
  callee_.assign(endpoint.protocol(), socket->get(), error);
  if (error) {
    connected(error);
    return;
  }
  socket->release();
  const auto self = shared_from_this();
  deadline_.expires_after(connect_deadline);
  deadline_.async_wait([self](const boost::system::error_code& cancelled) {
    boost::system::error_code ignored;
    if (!cancelled && self->phase_ == Phase::connecting) self->callee_.cancel(ignored);
  });
  callee_.async_connect(endpoint, [self](const boost::system::error_code& result) { self->connected(result); });
}

void Connection::connected(const boost::system::error_code& error) {
  if (phase_ != Phase::connecting) return;
  deadline_.cancel();
  if (!error) {
    opened();
    return;
  }
  if (error != asio::error::connection_refused) detail_ = "connect: " + error.message();
  connect_next();
}

void Connection::opened() {
  detail_.clear();
  if (needs_detour() && !on_detour_ && !take_detour()) {
    refuse("failed");
    return;
  }
  phase_ = Phase::open;
  send_at_once(caller_.native_handle());
  send_at_once(callee_.native_handle());
  record_connect(true);
  context_->carry_up();
  if (strikes_.final && strikes_.final->end == LinkStrikes::End::blackhole) {
    ending_fault_ = strikes_.final->index;
    phase_ = Phase::swallowing;
  }
  pump(up_);
  pump(down_);
}

// --- bytes ---

void Connection::pump(Direction& direction) {
  if (phase_ == Phase::over) return;  // called by a wait that the end cancelled
  for (int round = 0;; ++round) {
    const bool took = take(direction);
    if (phase_ == Phase::over) return;
    const bool gave = give(direction);
    if (phase_ == Phase::over) return;
    if (!took && !gave) break;
    if (round == rounds_in_a_row) {
      resume();
      return;
    }
  }
  settle(direction);
}

bool Connection::may_take(const Direction& direction) const {
  if (direction.ended || direction.broken) return direction.broken && !direction.ended && !is_up(direction);
  return phase_ == Phase::swallowing || (phase_ == Phase::open && !direction.buffer.full());
}

bool Connection::take(Direction& direction) {
  if (!may_take(direction)) return false;
  if (phase_ == Phase::swallowing) return swallow(direction);
  const auto room = direction.buffer.room();
  if (room.empty()) return false;
  const auto got = receive(direction.in.native_handle(), room);
  switch (got.result) {
    case Moved::Result::again: return false;
    case Moved::Result::end: ended(direction); return true;
    case Moved::Result::failed: is_up(direction) ? caller_lost() : callee_lost(); return true;
    case Moved::Result::moved: break;
  }
  direction.buffer.arrived(got.bytes);
  context_->proxy.activity.touch();
  arrived(direction, got.bytes);
  return true;
}

void Connection::arrived(Direction& direction, std::size_t bytes) {
  const bool up = is_up(direction);
  if (up && strikes_.final && strikes_.final->end == LinkStrikes::End::reset) {
    context_->fired(strikes_.final->index, {{"conn", number_}, {"bytes", bytes}, {"bytes_forwarded", 0}},
                    context_->link.from);
    direction.buffer.drop_everything();
    strike_reset("reset", strikes_.final->index);
    return;
  }
  if (!strikes_.delays.empty() && !direction.delay_begun) begin_delay(direction);
  if (tap_) {
    up ? tap_->up_arrived() : tap_->down_arrived();
    return;
  }
  up ? context_->carry_up() : context_->carry_down();
  direction.buffer.allow_everything();
}

void Connection::ended(Direction& direction) {
  direction.ended = true;
  if (!is_up(direction) && up_.broken) {
    callee_lost();
    return;
  }
  if (is_up(direction) && on_detour_) context_->proxy.detour->caller_ended(context_->id, number_);
  if (cause_.empty()) cause_ = is_up(direction) ? "caller-closed" : "callee-closed";
  if (!tap_) return;
  if (is_up(direction)) {
    tap_->up_ended();
  } else {
    tap_->down_ended();
    if (phase_ == Phase::open) report_left();  // the end may have completed a response that has left already
  }
}

bool Connection::give(Direction& direction) {
  const auto leaving = direction.buffer.leaving();
  if (leaving.empty() || direction.delayed || phase_ == Phase::swallowing) return false;
  if (phase_ == Phase::draining && is_up(direction)) return false;
  if (direction.broken) {
    direction.buffer.discard_leaving();
    return true;
  }
  const auto sent = transmit(direction.out.native_handle(), leaving);
  if (sent.result == Moved::Result::again) return false;
  if (sent.result == Moved::Result::moved) {
    direction.buffer.left(sent.bytes);
    if (phase_ == Phase::draining) poll_until_ = Clock::now() + longest_drain;
    if (!is_up(direction)) report_left();
    return true;
  }
  if (!is_up(direction)) {
    caller_lost();
    return true;
  }
  // The callee is gone; what it said before it went is still to be read and brought to the caller.
  direction.broken = true;
  direction.buffer.drop_everything();
  if (down_.ended)
    callee_lost();
  else
    resume();
  return true;
}

bool Connection::swallow(Direction& direction) {
  direction.buffer.drop_everything();
  const auto got = receive(direction.in.native_handle(), direction.buffer.room());
  if (got.result == Moved::Result::again) return false;
  if (got.result == Moved::Result::moved) {
    withheld_ += got.bytes;
    await_caller();
    context_->proxy.sites.fired(*ending_fault_, {{"conn", number_}, {"bytes_withheld", withheld_}});
    return true;
  }
  direction.ended = true;
  if (is_up(direction)) end("fault:blackhole");
  return true;
}

void Connection::begin_delay(Direction& direction) {
  direction.delay_begun = direction.delayed = true;
  context_->proxy.activity.begin(on_its_way());
  direction.first_bytes = Clock::now();
  direction.timer.expires_at(direction.first_bytes + strikes_.delay());
  direction.timer.async_wait([self = shared_from_this(), &direction](const boost::system::error_code& cancelled) {
    if (cancelled || self->phase_ == Phase::over) return;
    self->end_delay(direction);
    const std::chrono::duration<double, std::milli> actual = Clock::now() - direction.first_bytes;
    for (const auto& delay : self->strikes_.delays) {
      const std::chrono::duration<double, std::milli> scheduled = delay.length;
      self->context_->fired(
          delay.index, {{"conn", self->number_}, {"scheduled_ms", scheduled.count()}, {"actual_ms", actual.count()}},
          self->is_up(direction) ? self->context_->link.to : self->context_->link.from);
    }
    self->pump(direction);
  });
}

void Connection::end_delay(Direction& direction) {
  if (!std::exchange(direction.delayed, false)) return;
  context_->proxy.activity.touch();  // whoever they are for has the whole time to act
  context_->proxy.activity.end(on_its_way());
}

std::string Connection::on_its_way() const {
  return "bytes on their way on " + context_->id + " #" + std::to_string(number_);
}

/// After a pump: waits for what the direction needs next, or ends what has come to its end.
void Connection::settle(Direction& direction) {
  if (phase_ == Phase::draining) {
    check_drained();
    if (phase_ == Phase::over || is_up(direction)) return;
  }
  if (may_take(direction)) await_readable(direction);
  if (phase_ == Phase::swallowing) return;
  if (!direction.buffer.leaving().empty() && !direction.delayed) await_writable(direction);
  if (phase_ != Phase::open) return;
  if (direction.ended && direction.buffer.empty() && !direction.shut) {
    direction.shut = true;
    if (is_up(direction) && caller_gone_) {
      end("caller-reset");
      return;
    }
    boost::system::error_code ignored;
    if (!direction.broken) direction.out.shutdown(Socket::shutdown_send, ignored);
  }
  if (up_.shut && down_.shut && !reporting_) end(cause_);
}

void Connection::await_readable(Direction& direction) {
  if (direction.reading) return;
  direction.reading = true;
  direction.in.async_wait(Socket::wait_read, [self = shared_from_this(), &direction](const boost::system::error_code&) {
    direction.reading = false;
    self->pump(direction);
  });
}

void Connection::await_writable(Direction& direction) {
  if (direction.writing) return;
  direction.writing = true;
  direction.out.async_wait(Socket::wait_write,
                           [self = shared_from_this(), &direction](const boost::system::error_code&) {
                             direction.writing = false;
                             self->pump(direction);
                           });
}

// --- what the tap asks for ---

void Connection::resume() {
  if (resuming_) return;
  resuming_ = true;
  asio::post(context_->proxy.io, [self = shared_from_this()] {
    self->resuming_ = false;
    self->pump(self->up_);
    self->pump(self->down_);
  });
}

void Connection::wake_at(Clock::time_point when) {
  wake_.expires_at(when);
  wake_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    if (!cancelled && self->phase_ == Phase::open) self->tap_->woken();
  });
}

void Connection::strike_reset(const std::string& kind, std::size_t fault) {
  ending_fault_ = fault;
  drain("fault:" + kind);
}

void Connection::strike_blackhole(std::size_t fault) {
  ending_fault_ = fault;
  phase_ = Phase::swallowing;
  withheld_ = up_.buffer.size();
  if (withheld_ > 0) await_caller();
  up_.buffer.drop_everything();
  down_.buffer.drop_everything();
  if (up_.ended)
    end("fault:blackhole");
  else
    resume();
}

}  // namespace leafcutter::node
