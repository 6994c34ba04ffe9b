#include "node/proxy/gate.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
#include <string>

#include "node/proxy/decisions.hpp"

namespace leafcutter::node::proxy {
namespace {

constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::array<std::uint8_t, 16> mapped(const in_addr& address) {
  std::array<std::uint8_t, 16> bytes{};
  std::copy(mapped_prefix.begin(), mapped_prefix.end(), bytes.begin());
  std::memcpy(bytes.data() + 12, &address, 4);
  return bytes;
}

bool drawn_per_chunk(const Fault& fault) {
  if (fault.selector.draw != Selector::Draw::natural) return fault.selector.draw == Selector::Draw::each_chunk;
  const auto& effect = fault.effect;
  return std::holds_alternative<Jitter>(effect) || std::holds_alternative<Corrupt>(effect) ||
         std::holds_alternative<Slice>(effect) || std::holds_alternative<Duplicate>(effect) ||
         std::holds_alternative<Reorder>(effect);
}

}  // namespace

std::optional<Subnet> Subnet::parse(std::string_view text) {
  const auto slash = text.find('/');
  const std::string host(text.substr(0, slash));
  Subnet subnet;
  in_addr v4{};
  in6_addr v6{};
  unsigned width = 0;
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    subnet.bytes_ = mapped(v4);
    width = 32;
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    std::memcpy(subnet.bytes_.data(), &v6, 16);
    width = 128;
  } else {
    return std::nullopt;
  }
  unsigned prefix = width;
  if (slash != std::string_view::npos) {
    const auto digits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (error != std::errc{} || end != digits.data() + digits.size() || prefix > width) return std::nullopt;
  }
  subnet.bits_ = 128 - width + prefix;
  return subnet;
}

bool Subnet::has(const sockaddr_storage& address) const {
  std::array<std::uint8_t, 16> bytes{};
  if (address.ss_family == AF_INET)
    bytes = mapped(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  else if (address.ss_family == AF_INET6)
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, 16);
  else
    return false;
  for (unsigned bit = 0; bit < bits_; bit += 8) {
    const unsigned left = bits_ - bit;
    const auto mask = static_cast<std::uint8_t>(left >= 8 ? 0xff : 0xff << (8 - left));
    if (((bytes[bit / 8] ^ bytes_[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

bool flows(Flow flow, Direction direction) {
  return flow == Flow::both || (flow == Flow::to_upstream) == (direction == Direction::to_upstream);
}

Gate::Gate(const Fault& fault, const DrawKey& key, bool selected_peer)
    : selector_(&fault.selector), recorded_(key.recorded), each_chunk_(drawn_per_chunk(fault)), draws_(key, "select") {
  if (!selected_peer || !flows(selector_->flow, key.direction) || !selector_->connections.has(key.connection)) return;
  if (each_chunk_)
    selected_ = selector_->probability > 0;
  else
    selected_ = recorded_ != nullptr && drawn() ? !recorded_->passed_over() : draws_.happens(selector_->probability);
  passed_over_ = !selected_ && selector_->probability > 0;
}

GateResult Gate::next(std::uint64_t offset) {
  GateResult result{false, ++chunks_};
  if (!selected_ || !selector_->chunks.has(result.operation)) return result;
  if (offset < selector_->bytes.from || offset >= selector_->bytes.until) return result;
  if (each_chunk_ && recorded_ != nullptr && drawn())
    result.struck = recorded_->at(result.operation, offset) != nullptr;
  else
    result.struck = !each_chunk_ || draws_.happens(selector_->probability);
  return result;
}

std::uint64_t Gate::edge_after(std::uint64_t offset) const {
  auto edge = std::numeric_limits<std::uint64_t>::max();
  if (recorded_ != nullptr) edge = recorded_->edge_after(offset);
  if (offset < selector_->bytes.from) return std::min(edge, selector_->bytes.from - offset);
  if (offset < selector_->bytes.until) return std::min(edge, selector_->bytes.until - offset);
  return edge;
}

bool Gate::past(std::uint64_t offset) const {
  return !selected_ || offset >= selector_->bytes.until || chunks_ >= selector_->chunks.last;
}

}  // namespace leafcutter::node::proxy
