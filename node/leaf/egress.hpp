// What is sent out of the leaf: each destination that a service dials or sends to, and is refused, becomes an event.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "node/leaf/network.hpp"
#include "node/observe/recorder.hpp"

namespace leafcutter::node {

/// Whither a packet goes.
struct Destination {
  std::string transport;  ///< "tcp" or "udp"
  std::string address;
  std::uint16_t port = 0;
  auto operator<=>(const Destination&) const = default;
};

/// Of a packet that begins with its IP header: the first of a TCP connection, or a datagram. None for others, and for
/// what is cut short or is no beginning of a datagram.
std::optional<Destination> destination_of(std::string_view packet);

/// On the event loop's thread alone.
class Egress {
 public:
  static constexpr std::size_t most_destinations = 64;  ///< of a leaf that become events

  /// What the scenario lets out is not refused.
  Egress(boost::asio::io_context& io, Recorder& recorder, std::vector<EgressTap> taps,
         const scenarios::Scenario& scenario);

  void start();

  /// What was refused up to now is in the trace when it returns.
  void finish();

  /// Attempts that were not looked at: there were too many destinations, or too many at a time.
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Tap {
    boost::asio::posix::stream_descriptor socket;
    std::map<int, std::string> lanes;
  };
  void follow(Tap& tap);
  void read_some(Tap& tap, int packets);
  void sent(const std::string& lane, const Destination& to);
  void refused(const std::string& lane, const Destination& to);

  Recorder& recorder_;
  std::list<Tap> taps_;
  std::set<std::pair<std::string, Destination>> allowed_;
  std::map<std::string, std::string> names_;  ///< of hosts outside, by the address they have in the leaf
  std::map<std::pair<std::string, Destination>, std::uint64_t> seen_;
  std::uint64_t dropped_ = 0;
};

}  // namespace leafcutter::node
