#include "node/proxy/fault.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "node/proxy/gate.hpp"

namespace leafcutter::node::proxy {
namespace {

constexpr bool on_tcp = true, on_udp = true, not_on_tcp = false, not_on_udp = false;

struct EffectTraits {
  std::string_view kind;
  bool tcp, udp;
};

/// In the order of Effect's alternatives.
constexpr EffectTraits effect_traits[] = {
    {"latency", on_tcp, on_udp},
    {"jitter", on_tcp, on_udp},
    {"bandwidth", on_tcp, on_udp},
    {"blackhole", on_tcp, on_udp},
    {"corrupt", on_tcp, on_udp},
    {"truncate", on_tcp, on_udp},
    {"filter", on_tcp, on_udp},
    {"reset", on_tcp, not_on_udp},
    {"half-open", on_tcp, not_on_udp},
    {"refuse", on_tcp, not_on_udp},
    {"hang-connect", on_tcp, not_on_udp},
    {"slow-accept", on_tcp, not_on_udp},
    {"reset-after-accept", on_tcp, not_on_udp},
    {"slow-close", on_tcp, not_on_udp},
    {"cut", on_tcp, not_on_udp},
    {"limit", on_tcp, not_on_udp},
    {"slice", on_tcp, not_on_udp},
    {"lose-reply", on_tcp, not_on_udp},
    {"loss", not_on_tcp, on_udp},
    {"burst-loss", not_on_tcp, on_udp},
    {"duplicate", not_on_tcp, on_udp},
    {"reorder", not_on_tcp, on_udp},
};
static_assert(std::size(effect_traits) == std::variant_size_v<Effect>);

/// What is wrong with one value, or nothing.
using Complaint = std::optional<std::string>;

Complaint bad_probability(std::string_view field, double value) {
  if (std::isfinite(value) && value >= 0 && value <= 1) return {};
  return std::string(field) + ": " + std::to_string(value) + " is no probability; a number from 0 to 1 would do";
}

Complaint bad_time(std::string_view field, Duration value) {
  if (value.count() < 0) return std::string(field) + ": a negative duration; 0 or more would do";
  if (value > longest_fault_time) return std::string(field) + ": longer than a year";
  return {};
}

Complaint first_of(std::initializer_list<Complaint> complaints) {
  for (const auto& one : complaints)
    if (one) return one;
  return {};
}

struct DistributionCheck {
  Complaint operator()(const FixedTime& d) const { return bad_time("time.value", d.value); }
  Complaint operator()(const UniformTime& d) const {
    if (d.min > d.max) return "time.min: greater than time.max; exchange them";
    return first_of({bad_time("time.min", d.min), bad_time("time.max", d.max)});
  }
  Complaint operator()(const NormalTime& d) const {
    return first_of({bad_time("time.mean", d.mean), bad_time("time.deviation", d.deviation)});
  }
  Complaint operator()(const ParetoTime& d) const {
    if (!std::isfinite(d.shape) || d.shape <= 0) return "time.shape: a number greater than 0 would do";
    if (d.scale.count() <= 0) return "time.scale: more than 0 would do";
    return bad_time("time.scale", d.scale);
  }
  Complaint operator()(const ParetoNormalTime& d) const { return first_of({(*this)(d.pareto), (*this)(d.normal)}); }
};

Complaint bad_distribution(const Distribution& time) { return std::visit(DistributionCheck{}, time); }

struct EffectCheck {
  Transport transport;
  Complaint operator()(const Latency& e) const {
    return first_of(
        {bad_distribution(e.time), e.cap ? bad_time("cap", *e.cap) : Complaint{}, bad_time("spread", e.spread)});
  }
  Complaint operator()(const Jitter& e) const {
    if (e.min > e.max) return "min: greater than max; exchange them";
    return first_of({bad_time("min", e.min), bad_time("max", e.max)});
  }
  Complaint operator()(const Bandwidth& e) const {
    if ((e.scope == Bandwidth::Scope::shared) == e.bucket.empty())
      return "bucket: scope shared needs the name of a bucket, and no other scope has one";
    if (e.bytes_per_second > (std::uint64_t{1} << 40)) return "bytes_per_second: more than a terabyte";
    if (e.burst_bytes > (std::uint64_t{1} << 40)) return "burst_bytes: more than a terabyte";
    return {};
  }
  Complaint operator()(const Blackhole& e) const {
    if (transport == Transport::udp && e.close_when_removed)
      return "close_when_removed: a datagram link has nothing to close";
    if (!e.close_after) return {};
    if (transport == Transport::udp) return "close_after: a datagram link has nothing to close";
    return bad_time("close_after", *e.close_after);
  }
  Complaint operator()(const Corrupt& e) const {
    if (e.flips.empty() && e.random_bits == 0) return "random_bits: 0 bits and no flips: nothing would be corrupted";
    for (const auto& flip : e.flips)
      if (flip.mask == 0) return "flips: a mask of 0 flips nothing; 1 to 255 would do";
    return {};
  }
  Complaint operator()(const Filter& e) const {
    if (!e.make) return "make: no filter";
    return {};
  }
  Complaint operator()(const Reset& e) const { return bad_time("after", e.after); }
  Complaint operator()(const HalfOpen& e) const {
    if (e.gone == Side::both) return "gone: client or upstream; if both are gone it is a reset";
    return bad_time("after", e.after);
  }
  Complaint operator()(const SlowAccept& e) const { return bad_distribution(e.time); }
  Complaint operator()(const ResetAfterAccept& e) const { return bad_time("after", e.after); }
  Complaint operator()(const SlowClose& e) const { return bad_time("delay", e.delay); }
  Complaint operator()(const Cut& e) const {
    if (!e.after && !e.after_bytes) return "after: neither after nor after_bytes is given; one of them would do";
    return e.after ? bad_time("after", *e.after) : Complaint{};
  }
  Complaint operator()(const Slice& e) const {
    if (e.average_bytes == 0) return "average_bytes: 1 or more would do";
    if (e.variation_bytes >= e.average_bytes) return "variation_bytes: less than average_bytes would do";
    return bad_time("pause", e.pause);
  }
  Complaint operator()(const Loss& e) const { return bad_probability("probability", e.probability); }
  Complaint operator()(const BurstLoss& e) const {
    return first_of({bad_probability("good_to_bad", e.good_to_bad), bad_probability("bad_to_good", e.bad_to_good),
                     bad_probability("loss_when_good", e.loss_when_good),
                     bad_probability("loss_when_bad", e.loss_when_bad)});
  }
  Complaint operator()(const Duplicate& e) const {
    if (e.copies == 0 || e.copies > 16) return "copies: 1 to 16 would do";
    return {};
  }
  Complaint operator()(const Reorder& e) const {
    if (e.gap == 0 || e.gap > 1024) return "gap: 1 to 1024 would do";
    return bad_time("at_most", e.at_most);
  }
  template <class Other>
  Complaint operator()(const Other&) const {
    return {};
  }
};

Complaint bad_ordinals(std::string_view field, const Ordinals& ordinals) {
  if (ordinals.first >= 1 && ordinals.first <= ordinals.last && ordinals.every >= 1) return {};
  return std::string(field) + ": numbers count from 1, first is at most last, every is at least 1";
}

/// Whether the effect is decided for a connection as a whole, so that a selector of bytes or chunks says nothing.
bool of_connection(const Effect& effect) {
  if (const auto* reset = std::get_if<Reset>(&effect)) return reset->when == Reset::When::at_once;
  return std::holds_alternative<HalfOpen>(effect) || std::holds_alternative<Refuse>(effect) ||
         std::holds_alternative<HangConnect>(effect) || std::holds_alternative<SlowAccept>(effect) ||
         std::holds_alternative<ResetAfterAccept>(effect);
}

Complaint bad_selector(const Fault& fault, Transport transport) {
  const auto& s = fault.selector;
  const bool chunks = s.chunks != Ordinals{}, bytes = s.bytes != ByteRange{};
  if (bytes && transport == Transport::udp) return "selector.bytes: datagrams have no stream; chunks would do";
  if (bytes && s.bytes.from >= s.bytes.until) return "selector.bytes: from is not below until";
  if ((chunks || bytes || s.draw == Selector::Draw::each_chunk) && of_connection(fault.effect))
    return "selector: the effect strikes connections, not their bytes; leave chunks, bytes and draw out";
  if (std::holds_alternative<LoseReply>(fault.effect) && s.flow == Flow::to_upstream)
    return "selector.flow: replies go to-client";
  for (const auto& peer : s.peers)
    if (!Subnet::parse(peer)) return "selector.peers: \"" + peer + "\" is no address; 127.0.0.1 or 10.0.0.0/8 would do";
  return first_of({bad_probability("selector.probability", s.probability),
                   bad_ordinals("selector.connections", s.connections), bad_ordinals("selector.chunks", s.chunks)});
}

std::string free_id(const std::set<std::string>& taken, std::string_view kind) {
  std::string id(kind);
  for (std::size_t n = 2; taken.count(id) != 0; ++n) id = std::string(kind) + "#" + std::to_string(n);
  return id;
}

Complaint bad_fault(const Fault& fault, Transport transport) {
  if (!exists_on(transport, fault.effect)) {
    const bool tcp = transport == Transport::tcp;
    return std::string("effect: does not exist on ") + (tcp ? "tcp" : "udp") + "; the link would have to be " +
           (tcp ? "udp" : "tcp");
  }
  return first_of({std::visit(EffectCheck{transport}, fault.effect), bad_selector(fault, transport)});
}

}  // namespace

std::string_view kind_of(const Effect& effect) { return effect_traits[effect.index()].kind; }

bool exists_on(Transport transport, const Effect& effect) {
  const auto& traits = effect_traits[effect.index()];
  return transport == Transport::tcp ? traits.tcp : traits.udp;
}

base::Expected<FaultSet> checked(FaultSet set, Transport transport) {
  std::set<std::string> ids;
  for (const auto& fault : set.faults)
    if (!fault.id.empty() && !ids.insert(fault.id).second)
      return base::Error{base::ErrorCode::bad_input, "faults: two have the id \"" + fault.id + "\"; ids are unique"};
  for (std::size_t i = 0; i < set.faults.size(); ++i) {
    auto& fault = set.faults[i];
    if (const auto complaint = bad_fault(fault, transport))
      return base::Error{base::ErrorCode::bad_input, "faults[" + std::to_string(i) + "] (" +
                                                         std::string(kind_of(fault.effect)) + ") " + *complaint};
    if (fault.id.empty()) ids.insert(fault.id = free_id(ids, kind_of(fault.effect)));
  }
  return set;
}

}  // namespace leafcutter::node::proxy
