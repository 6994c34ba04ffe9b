// What the tests of the event stream share: events to send, a leaf's end of the stream, and waiting for what can
// be observed.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "protocols/event.hpp"
#include "protocols/stream.hpp"
#include "tests/support/folder.hpp"

namespace leafcutter::tests {

using namespace std::chrono_literals;

/// Until `holds`, or until the deadline: then the test has failed and says what was missing.
inline bool wait_until(const std::string& what, const std::function<bool()>& holds,
                       std::chrono::milliseconds within = 20s) {
  const auto until = std::chrono::steady_clock::now() + within;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= until) {
      ADD_FAILURE() << "after " << within.count() << " ms still missing: " << what;
      return false;
    }
    ::poll(nullptr, 0, 1);
  }
  return true;
}

inline std::vector<protocols::Event> some_events(std::uint64_t first, std::uint64_t count,
                                                 const std::string& text = "x") {
  std::vector<protocols::Event> events;
  for (std::uint64_t i = 0; i < count; ++i) {
    protocols::Event event;
    event.lane = "shop";
    event.seq = first + i + 1;
    event.clock = {{"shop", event.seq}};
    event.kind = "log";
    event.attrs["line"] = text + std::to_string(event.seq);
    events.push_back(std::move(event));
  }
  return events;
}

/// A leaf's end of the stream: sends an execution's batches and repeats what is not acknowledged.
class LeafEnd {
 public:
  explicit LeafEnd(const std::string& endpoint) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.connect(endpoint);
  }

  void send(const protocols::BatchHeader& header, const std::string& chunk) {
    socket_.send(zmq::buffer(protocols::encode(header)), zmq::send_flags::sndmore);
    socket_.send(zmq::buffer(chunk), zmq::send_flags::none);
  }

  /// The next acknowledgement, or an empty one after the time-out.
  protocols::Ack ack(std::chrono::milliseconds within = 5s) {
    zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
    zmq::message_t message;
    if (zmq::poll(&item, 1, within) == 0 || !socket_.recv(message, zmq::recv_flags::dontwait)) return {};
    return *protocols::decode_ack(message.to_string_view());
  }

  /// The events in batches of `size`, all acknowledged when it returns true.
  bool run(const std::string& execution, const std::vector<protocols::Event>& events, std::uint64_t size,
           bool end = true, std::chrono::milliseconds within = 20s) {
    std::uint64_t acked = 0, sent = 0;
    const std::uint64_t all = events.size();
    const auto until = std::chrono::steady_clock::now() + within;
    while (std::chrono::steady_clock::now() < until) {
      while (sent < all && sent < acked + 8 * size) {
        const auto count = std::min(size, all - sent);
        const auto first = events.begin() + static_cast<std::ptrdiff_t>(sent);
        send({execution, sent, count, end && sent + count == all},
             protocols::encode_chunk({first, first + static_cast<std::ptrdiff_t>(count)}));
        sent += count;
      }
      const auto word = ack(500ms);
      if (word.execution.empty()) sent = acked;
      if (word.execution != execution) continue;
      acked = std::max(acked, word.next);
      if (word.complete || (!end && acked == all)) return true;
    }
    return false;
  }
  bool run(const std::string& execution, std::uint64_t events, std::uint64_t size, bool end = true) {
    return run(execution, some_events(0, events), size, end);
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

}  // namespace leafcutter::tests
