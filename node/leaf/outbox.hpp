// Sends a leaf's events to its node over ZeroMQ, from a thread of its own: in batches, acknowledged, sent again when an
// acknowledgement stays away. Whoever records an event never waits for it.
#pragma once

#include <zmq.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "protocols/event.hpp"

namespace leafcutter::node {

class Outbox {
 public:
  struct Limits {
    std::size_t batch = 50;               ///< events that are sent at once ...
    std::chrono::milliseconds linger{5};  ///< ... or after this long
    std::size_t batch_max = 1000;
    std::size_t window = 32;     ///< batches under way
    std::size_t held = 100'000;  ///< events not acknowledged; more are dropped and counted
    std::chrono::milliseconds resend{500};
  };

  Outbox(const std::string& endpoint, std::string execution) : Outbox(endpoint, std::move(execution), Limits()) {}
  Outbox(const std::string& endpoint, std::string execution, Limits limits);
  ~Outbox();

  /// Takes an event; `leaf.end` is always taken and is the last.
  void push(protocols::Event event);

  std::uint64_t dropped() const;

  /// After `leaf.end`: waits until everything is acknowledged. False at the deadline.
  bool finish(std::chrono::steady_clock::time_point deadline);

 private:
  using Clock = std::chrono::steady_clock;
  struct Batch {
    std::uint64_t base = 0, count = 0;
    std::string header, chunk;
  };
  void run();
  std::chrono::milliseconds patience() const;
  void receive_acks();
  void send_new();
  void send(const Batch& batch);
  bool take(std::vector<protocols::Event>& events, bool& last);
  void wake();

  const std::string execution_;
  const Limits limits_;
  zmq::context_t zmq_{1};
  zmq::socket_t socket_;
  base::UniqueFd wake_;

  mutable std::mutex mutex_;
  std::condition_variable finished_;
  std::deque<protocols::Event> queue_;
  Clock::time_point oldest_;  ///< when the first of the queue came
  std::size_t held_ = 0;      ///< queued and under way
  std::uint64_t dropped_ = 0;
  bool ended_ = false;  ///< leaf.end is in
  bool complete_ = false, stop_ = false;

  // The thread's own.
  std::deque<Batch> under_way_;
  std::uint64_t next_ = 0;  ///< base of the next batch
  Clock::time_point progress_;
  std::thread thread_;
};

}  // namespace leafcutter::node
