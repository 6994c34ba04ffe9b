#include "node/leaf/egress.hpp"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>

#include "scenarios/event_kinds.hpp"
#include "scenarios/ways_out.hpp"

namespace leafcutter::node {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

unsigned byte_at(std::string_view packet, std::size_t at) { return static_cast<unsigned char>(packet[at]); }
unsigned word_at(std::string_view packet, std::size_t at) { return byte_at(packet, at) << 8 | byte_at(packet, at + 1); }

std::string packet_address(std::string_view packet, std::size_t at, int family) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, packet.data() + at, text.data(), text.size());
  return text.data();
}

/// Where the transport's header begins, and which protocol it is of; none: not in this packet.
std::optional<std::pair<std::size_t, unsigned>> transport_of(std::string_view packet, bool six) {
  if (!six) {
    const bool first = (word_at(packet, 6) & 0x1fff) == 0;  // of its fragments
    if (!first) return std::nullopt;
    return std::pair<std::size_t, unsigned>{(byte_at(packet, 0) & 0xf) * 4, byte_at(packet, 9)};
  }
  if (byte_at(packet, 6) != IPPROTO_FRAGMENT) return std::pair<std::size_t, unsigned>{40, byte_at(packet, 6)};
  if (packet.size() < 48 || (word_at(packet, 42) & 0xfff8) != 0) return std::nullopt;
  return std::pair<std::size_t, unsigned>{48, byte_at(packet, 40)};
}

}  // namespace

std::optional<Destination> destination_of(std::string_view packet) {
  if (packet.empty()) return std::nullopt;
  const auto version = byte_at(packet, 0) >> 4;
  const bool six = version == 6;
  if ((version != 4 && !six) || packet.size() < (six ? 40u : 20u)) return std::nullopt;
  const auto transport = transport_of(packet, six);
  if (!transport) return std::nullopt;
  const auto [begin, protocol] = *transport;
  const bool tcp = protocol == IPPROTO_TCP;
  if ((!tcp && protocol != IPPROTO_UDP) || packet.size() < begin + (tcp ? 20 : 8)) return std::nullopt;
  if (tcp && (byte_at(packet, begin + 13) & 0x12) != 0x02) return std::nullopt;  // SYN without ACK
  return Destination{tcp ? "tcp" : "udp", packet_address(packet, six ? 24 : 16, six ? AF_INET6 : AF_INET),
                     static_cast<std::uint16_t>(word_at(packet, begin + 2))};
}

Egress::Egress(boost::asio::io_context& io, Recorder& recorder, std::vector<EgressTap> taps,
               const scenarios::Scenario& scenario)
    : recorder_(recorder) {
  for (auto& tap : taps) taps_.push_back({Descriptor(io, tap.socket.release()), std::move(tap.lanes)});
  const auto addresses = scenarios::outside_addresses(scenario);
  for (const auto& [name, address] : addresses) names_[address] = name;
  for (const auto& way : scenario.ways_out)
    allowed_.insert({way.from, {"tcp", way.is_name() ? addresses.at(way.to) : way.to, way.port}});
}

void Egress::start() {
  for (auto& tap : taps_) follow(tap);
}

void Egress::follow(Tap& tap) {
  tap.socket.async_wait(Descriptor::wait_read, [this, &tap](const auto& error) {
    if (error) return;
    read_some(tap, 64);  // a share, so that who sends without end does not starve the loop
    follow(tap);
  });
}

void Egress::finish() {
  constexpr int whole_queue = 4096;  // more than its buffer holds
  for (auto& tap : taps_) {
    read_some(tap, whole_queue);
    tpacket_stats lost{};
    socklen_t size = sizeof lost;
    if (::getsockopt(tap.socket.native_handle(), SOL_PACKET, PACKET_STATISTICS, &lost, &size) == 0)
      dropped_ += lost.tp_drops;
  }
}

void Egress::read_some(Tap& tap, int packets) {
  std::array<char, 256> packet;
  for (int i = 0; i < packets; ++i) {
    sockaddr_ll from{};
    socklen_t size = sizeof from;
    const auto n = ::recvfrom(tap.socket.native_handle(), packet.data(), packet.size(), 0,
                              reinterpret_cast<sockaddr*>(&from), &size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    const auto lane = tap.lanes.find(from.sll_ifindex);
    if (lane == tap.lanes.end()) continue;
    if (const auto to = destination_of({packet.data(), static_cast<std::size_t>(n)})) sent(lane->second, *to);
  }
}

void Egress::sent(const std::string& lane, const Destination& to) {
  if (allowed_.contains({lane, to})) return;
  const auto named = names_.find(to.address);
  refused(lane, named == names_.end() ? to : Destination{to.transport, named->second, to.port});
}

void Egress::refused(const std::string& lane, const Destination& to) {
  auto entry = seen_.find({lane, to});
  if (entry == seen_.end()) {
    if (seen_.size() >= most_destinations) {
      ++dropped_;
      return;
    }
    entry = seen_.emplace(std::pair(lane, to), 0).first;
  }
  const auto n = ++entry->second;
  if (!std::has_single_bit(n)) return;
  recorder_.record(lane, scenarios::events::egress_refused,
                   {{"transport", to.transport}, {"address", to.address}, {"port", to.port}, {"n", n}});
}

}  // namespace leafcutter::node
