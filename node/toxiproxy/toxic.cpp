#include "node/toxiproxy/toxic.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>

namespace leafcutter::node::toxiproxy {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::int64_t most_milliseconds = proxy::longest_fault_time / milliseconds(1) / 2;  // two may be added up
constexpr std::int64_t most_microseconds = proxy::longest_fault_time / microseconds(1);
constexpr std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t most_rate = 1'000'000'000;  // KB/s: a terabyte
constexpr std::int64_t most_slice = 1 << 30;
constexpr std::int64_t bytes_of_kilobyte = 1000;
constexpr bool our_addition = true;

std::int64_t attribute_value(const Toxic& toxic, const std::string& name) {
  const auto found = toxic.attributes.find(name);
  return found == toxic.attributes.end() ? 0 : found->second;
}

std::optional<proxy::Effect> latency_effect(const Toxic& toxic) {
  proxy::Latency latency;
  latency.time = proxy::FixedTime{milliseconds(attribute_value(toxic, "latency"))};
  latency.spread = milliseconds(attribute_value(toxic, "jitter"));
  return latency;
}

std::optional<proxy::Effect> bandwidth_effect(const Toxic& toxic) {
  proxy::Bandwidth bandwidth;
  bandwidth.bytes_per_second = static_cast<std::uint64_t>(attribute_value(toxic, "rate") * bytes_of_kilobyte);
  if (attribute_value(toxic, "shared") != 0) bandwidth.scope = proxy::Bandwidth::Scope::link;
  return bandwidth;
}

std::optional<proxy::Effect> slow_close_effect(const Toxic& toxic) {
  return proxy::SlowClose{milliseconds(attribute_value(toxic, "delay"))};
}

std::optional<proxy::Effect> timeout_effect(const Toxic& toxic) {
  proxy::Blackhole hole{proxy::Blackhole::Mode::drop};
  hole.close_when_removed = true;
  if (const auto after = attribute_value(toxic, "timeout"); after > 0) hole.close_after = milliseconds(after);
  return hole;
}

std::optional<proxy::Effect> reset_peer_effect(const Toxic& toxic) {
  return proxy::Reset{proxy::Side::both, milliseconds(attribute_value(toxic, "timeout"))};
}

/// Of a variation that leaves no size, as much as leaves a byte.
std::optional<proxy::Effect> slicer_effect(const Toxic& toxic) {
  const auto average = attribute_value(toxic, "average_size");
  if (average == 0) return std::nullopt;
  proxy::Slice slice;
  slice.average_bytes = static_cast<std::size_t>(average);
  slice.variation_bytes = static_cast<std::size_t>(std::min(attribute_value(toxic, "size_variation"), average - 1));
  slice.pause = microseconds(attribute_value(toxic, "delay"));
  return slice;
}

std::optional<proxy::Effect> limit_data_effect(const Toxic& toxic) {
  proxy::Cut cut;
  cut.after_bytes = static_cast<std::uint64_t>(attribute_value(toxic, "bytes"));
  return cut;
}

/// Numbers that count from the connection after that one.
proxy::Ordinals counted_after(proxy::Ordinals numbers, std::uint64_t after) {
  if (numbers == proxy::Ordinals{}) return numbers;
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  numbers.first = numbers.first > most - after ? most : numbers.first + after;
  numbers.last = numbers.last > most - after ? most : numbers.last + after;
  return numbers;
}

std::optional<proxy::Effect> no_effect(const Toxic&) { return std::nullopt; }

struct ToxicMeaning {
  ToxicKind kind;
  std::function<std::optional<proxy::Effect>(const Toxic&)> effect;
};

const std::vector<ToxicMeaning>& toxic_meanings() {
  static const std::vector<ToxicMeaning> all = {
      {{"latency", {{"latency", most_milliseconds}, {"jitter", most_milliseconds}}}, latency_effect},
      {{"bandwidth", {{"rate", most_rate}, {"shared", 1, our_addition}}}, bandwidth_effect},
      {{"slow_close", {{"delay", most_milliseconds}}}, slow_close_effect},
      {{"timeout", {{"timeout", most_milliseconds}}}, timeout_effect},
      {{"reset_peer", {{"timeout", most_milliseconds}}}, reset_peer_effect},
      {{"slicer", {{"average_size", most_slice}, {"size_variation", most_slice}, {"delay", most_microseconds}}},
       slicer_effect},
      {{"limit_data", {{"bytes", most_bytes}}}, limit_data_effect},
      {{"noop", {}}, no_effect},
  };
  return all;
}

}  // namespace

std::string_view name_of(Stream stream) { return stream == Stream::upstream ? "upstream" : "downstream"; }

std::optional<Stream> stream_named(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto stream : {Stream::upstream, Stream::downstream})
    if (lower == name_of(stream)) return stream;
  return std::nullopt;
}

const AttributeKind* ToxicKind::attribute(std::string_view name) const {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(), [&](const AttributeKind& one) { return one.name == name; });
  return found == attributes.end() ? nullptr : &*found;
}

const std::vector<ToxicKind>& toxic_kinds() {
  static const std::vector<ToxicKind> kinds = [] {
    std::vector<ToxicKind> list;
    for (const auto& meaning : toxic_meanings()) list.push_back(meaning.kind);
    return list;
  }();
  return kinds;
}

const ToxicKind* toxic_kind(std::string_view type) {
  for (const auto& kind : toxic_kinds())
    if (kind.type == type) return &kind;
  return nullptr;
}

bool say_the_same(const std::vector<Toxic>& one, const std::vector<Toxic>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const Toxic& a, Toxic b) {
    b.after = a.after;
    return a == b;
  });
}

std::optional<proxy::Fault> fault_of(const Toxic& toxic) {
  for (const auto& meaning : toxic_meanings()) {
    if (meaning.kind.type != toxic.type) continue;
    auto effect = meaning.effect(toxic);
    if (!effect) return std::nullopt;
    proxy::Fault fault{toxic.name, {}, std::move(*effect)};
    fault.selector.flow = toxic.stream == Stream::upstream ? proxy::Flow::to_upstream : proxy::Flow::to_client;
    fault.selector.probability = toxic.toxicity;
    fault.selector.draw = proxy::Selector::Draw::connection;
    fault.selector.connections = counted_after(toxic.only.connections, toxic.after);
    fault.selector.peers = toxic.only.peers;
    return fault;
  }
  return std::nullopt;
}

proxy::FaultSet faults_of(const std::vector<Toxic>& toxics) {
  proxy::FaultSet set;
  for (const auto& toxic : toxics)
    if (auto fault = fault_of(toxic)) set.faults.push_back(std::move(*fault));
  return set;
}

}  // namespace leafcutter::node::toxiproxy
