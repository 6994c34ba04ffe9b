#include <boost/asio/post.hpp>
#include <utility>

#include "node/links/connection.hpp"
#include "node/links/connection_events.hpp"
#include "node/links/detour.hpp"
#include "node/links/sockets.hpp"

namespace leafcutter::node {
namespace {

constexpr auto poll_interval = std::chrono::milliseconds(1);

bool by_fault(const std::string& cause) { return cause.starts_with("fault:"); }

Outcome outcome_for(const std::string& cause) {
  return cause == "callee-reset" || by_fault(cause) ? Outcome::reset : Outcome::no_reply;
}

}  // namespace

void Connection::refuse(const std::string& cause) {
  record_connect(false);
  end(cause);
}

/// Bytes went to the caller. If the caller has sent its end it may just be half-closed, or be gone: only its kernel's
/// acknowledgement tells whether a response was delivered.
void Connection::report_left() {
  if (!tap_) return;
  if (!up_.ended) {
    tap_->down_left();
    return;
  }
  if (!reporting_) {
    reporting_ = true;
    poll_until_ = Clock::now() + longest_drain;
  }
  switch (arrival(caller_.native_handle())) {
    case Arrival::refused:
      reporting_ = false;
      caller_lost();
      return;
    case Arrival::under_way:
      if (Clock::now() < poll_until_) {
        poll_again(&Connection::report_left);
        return;
      }
      [[fallthrough]];
    case Arrival::arrived:
      reporting_ = false;
      tap_->down_left();
      if (phase_ != Phase::over) resume();
  }
}

void Connection::poll_again(void (Connection::*check)()) {
  poll_.expires_after(poll_interval);
  poll_.async_wait([self = shared_from_this(), check](const boost::system::error_code& cancelled) {
    if (!cancelled && self->phase_ != Phase::over) ((*self).*check)();
  });
}

void Connection::drain(const std::string& cause) {
  if (phase_ == Phase::over || phase_ == Phase::draining) return;
  cause_ = cause;
  if (caller_gone_) {
    end(cause);
    return;
  }
  phase_ = Phase::draining;
  poll_until_ = Clock::now() + longest_drain;
  resume();
}

void Connection::check_drained() {
  if (!down_.buffer.leaving().empty() && !down_.broken) {
    if (Clock::now() < poll_until_)
      poll_again(&Connection::check_drained);
    else
      end(cause_);
    return;
  }
  if (arrival(caller_.native_handle()) == Arrival::under_way && Clock::now() < poll_until_) {
    poll_again(&Connection::check_drained);
    return;
  }
  end(cause_);
}

/// The caller's connection was reset. What it had sent is still on its way, as it would be on a real network.
void Connection::caller_lost() {
  if (caller_gone_ || phase_ == Phase::over) return;
  caller_gone_ = true;
  if (phase_ == Phase::draining) {
    end(cause_);
    return;
  }
  cause_ = "caller-reset";
  down_.broken = true;
  down_.buffer.discard_leaving();
  if (!up_.ended) {
    up_.ended = true;
    if (tap_) tap_->up_ended();
  }
  if (phase_ == Phase::over) return;
  if (up_.buffer.empty())
    end("caller-reset");
  else
    resume();
}

void Connection::callee_lost() {
  down_.ended = true;
  drain("callee-reset");
}

// A caller whose bytes went into a blackhole still waits for an answer: nothing is quiet before it has given up. What
// it sends into the hole meanwhile is no movement.
void Connection::await_caller() {
  if (!awaited_.empty()) return;
  awaited_ = "blackholed connection " + context_->id + " #" + std::to_string(number_);
  context_->proxy.activity.begin(awaited_);
}

void Connection::caller_left() {
  if (!awaited_.empty()) context_->proxy.activity.end(awaited_);
  awaited_.clear();
}

void Connection::end(const std::string& cause) {
  if (phase_ == Phase::over) return;
  const auto self = shared_from_this();
  phase_ = Phase::over;
  cause_ = cause;
  caller_left();
  for (auto* direction : {&up_, &down_}) end_delay(*direction);
  if (tap_) tap_->connection_ended(outcome_for(cause));
  // A caller whose connection fails must not take it for an orderly end; the same holds for a callee whose caller
  // vanished.
  if (cause == "refused" || cause == "callee-reset" || (by_fault(cause) && cause != "fault:blackhole"))
    reset_on_close(caller_.native_handle());
  if (cause == "caller-reset" && callee_.is_open()) reset_on_close(callee_.native_handle());
  boost::system::error_code ignored;
  caller_.close(ignored);
  callee_.close(ignored);
  for (auto* timer : {&deadline_, &wake_, &poll_, &up_.timer, &down_.timer}) timer->cancel();
  auto& sites = context_->proxy.sites;
  if (ending_fault_)
    sites.undone(*ending_fault_, cause == "fault:blackhole" ? "the caller closed the connection; " +
                                                                  std::to_string(withheld_) + " bytes were withheld"
                                                            : "the connection is closed; later ones are let through");
  for (const auto& delay : strikes_.delays) sites.undone(delay.index, "the delayed connection is closed");
  end_detour();
  sites.forget_connection(context_->id, number_);
  record_close();
  context_->ended(*this);
}

/// What ended the far side of a detour ended the connection.
void Connection::end_detour() {
  if (!std::exchange(on_detour_, false)) return;
  const auto far = context_->proxy.detour->release(context_->id, number_);
  if (!far || !cause_.starts_with("callee-")) return;
  if (!far->fault.empty()) cause_ = "fault:" + far->fault;
  if (far->refused) cause_ = "refused";
  if (!far->detail.empty()) detail_ = far->detail;
}

void Connection::stop() {
  if (phase_ == Phase::over) return;
  phase_ = Phase::over;
  end_detour();
  caller_left();
  for (auto* direction : {&up_, &down_}) end_delay(*direction);
  if (tap_) tap_->abandon();
  boost::system::error_code ignored;
  caller_.close(ignored);
  callee_.close(ignored);
  for (auto* timer : {&deadline_, &wake_, &poll_, &up_.timer, &down_.timer}) timer->cancel();
}

void Connection::record_connect(bool accepted) {
  record_opening(context_->proxy.recorder, context_->link, context_->id, number_, accepted);
}

void Connection::record_close() {
  const auto& detail = tap_ && !tap_->plain().empty() ? tap_->plain() : detail_;
  record_end(context_->proxy.recorder, context_->link, context_->id,
             {number_, up_.buffer.total(), down_.buffer.total(), cause_, detail});
}

}  // namespace leafcutter::node
