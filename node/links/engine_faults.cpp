#include "node/links/engine_faults.hpp"

#include <functional>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

using scenarios::Value;
using EngineFaults = std::vector<proxy::Fault>;

constexpr std::uint64_t one_whole = 1'000'000;
constexpr double default_shape = 2;

/// The parameters of a planned fault; they have been checked when they were read.
class EngineParameters {
 public:
  explicit EngineParameters(const Value& params) : params_(params) {}

  std::optional<proxy::Duration> time(const char* name) const {
    const auto time = base::parse_duration(word(name, ""));
    return time ? std::optional<proxy::Duration>(*time) : std::nullopt;
  }
  proxy::Duration time_or_none(const char* name) const { return time(name).value_or(proxy::Duration{0}); }
  std::optional<std::uint64_t> count(const char* name) const {
    const auto found = params_.find(name);
    if (found == params_.end() || !found->is_number_integer()) return std::nullopt;
    return found->get<std::uint64_t>();
  }
  std::uint64_t count_or(const char* name, std::uint64_t preset) const { return count(name).value_or(preset); }
  std::string word(const char* name, const std::string& preset) const {
    const auto found = params_.find(name);
    return found != params_.end() && found->is_string() ? found->get<std::string>() : preset;
  }
  double decimal(const char* name, double preset) const {
    const auto millionths = scenarios::parse_millionths(word(name, ""));
    return millionths ? static_cast<double>(*millionths) / one_whole : preset;
  }
  proxy::Flow flow(proxy::Flow preset) const {
    const auto flow = word("flow", "");
    if (flow.empty()) return preset;
    return flow == "both"         ? proxy::Flow::both
           : flow == "to-service" ? proxy::Flow::to_upstream
                                  : proxy::Flow::to_client;
  }
  proxy::Ending ending() const {
    return word("ending", "close") == "reset" ? proxy::Ending::reset : proxy::Ending::close;
  }

 private:
  const Value& params_;
};

/// What the makers below work with.
struct EngineRequest {
  const EngineParameters& given;
  std::string id, link;
  bool at_bytes = false;  ///< what strikes a connection strikes it when bytes come, not at once
};

proxy::Fault one_fault(const EngineRequest& asked, proxy::Effect effect, proxy::Flow flow) {
  proxy::Fault fault;
  fault.id = asked.id;
  fault.selector.flow = flow;
  fault.effect = std::move(effect);
  return fault;
}

/// An effect with the direction that the user chose.
EngineFaults either_way(const EngineRequest& asked, proxy::Effect effect) {
  return {one_fault(asked, std::move(effect), asked.given.flow(proxy::Flow::both))};
}
EngineFaults one_way(const EngineRequest& asked, proxy::Effect effect) {
  return {one_fault(asked, std::move(effect), asked.given.flow(proxy::Flow::to_client))};
}
/// An effect on the connection as a whole.
EngineFaults whole(const EngineRequest& asked, proxy::Effect effect) {
  return {one_fault(asked, std::move(effect), proxy::Flow::to_upstream)};
}

proxy::Distribution distribution_of(const EngineParameters& given) {
  const auto name = given.word("distribution", "fixed");
  const auto time = given.time_or_none("for"), spread = given.time_or_none("spread");
  const proxy::ParetoTime pareto{given.decimal("shape", default_shape), time};
  if (name == "uniform") return proxy::UniformTime{time, time + spread};
  if (name == "normal") return proxy::NormalTime{time, spread};
  if (name == "pareto") return pareto;
  if (name == "pareto-normal") return proxy::ParetoNormalTime{pareto, {proxy::Duration{0}, spread}};
  return proxy::FixedTime{time};
}

EngineFaults latency_faults(const EngineRequest& asked) {
  proxy::Latency latency;
  latency.time = distribution_of(asked.given);
  latency.draw = asked.given.word("each", "connection") == "piece" ? proxy::Latency::Draw::each_chunk
                                                                   : proxy::Latency::Draw::connection;
  latency.cap = asked.given.time("at-most");
  return either_way(asked, latency);
}

EngineFaults bandwidth_faults(const EngineRequest& asked) {
  proxy::Bandwidth bandwidth;
  bandwidth.bytes_per_second = asked.given.count_or("bytes-per-second", 0);
  bandwidth.burst_bytes = asked.given.count_or("burst", 0);
  const auto flow = asked.given.flow(proxy::Flow::both);
  if (asked.given.word("scope", "connection") == "connection") return {one_fault(asked, bandwidth, flow)};
  // Every struck connection is a link of its own to the engine: they share a bucket by its name, one a direction.
  bandwidth.scope = proxy::Bandwidth::Scope::shared;
  EngineFaults faults;
  for (const auto& [way, name] : {std::pair{proxy::Flow::to_upstream, " up"}, {proxy::Flow::to_client, " down"}}) {
    if (flow != proxy::Flow::both && flow != way) continue;
    bandwidth.bucket = asked.id + " of " + asked.link + name;
    faults.push_back(one_fault(asked, bandwidth, way));
    faults.back().id += name;
  }
  return faults;
}

EngineFaults flip_faults(const EngineRequest& asked) {
  proxy::Corrupt corrupt;
  corrupt.flips = {
      {asked.given.count_or("offset", 0), static_cast<std::uint8_t>(1u << asked.given.count_or("bit", 0))}};
  return one_way(asked, corrupt);
}

EngineFaults reset_faults(const EngineRequest& asked) {
  const auto side = asked.given.word("side", "both");
  proxy::Reset reset;
  reset.side = side == "both" ? proxy::Side::both : side == "caller" ? proxy::Side::client : proxy::Side::upstream;
  reset.after = asked.given.time_or_none("after");
  if (asked.at_bytes) reset.when = proxy::Reset::When::first_bytes;
  return whole(asked, reset);
}

EngineFaults blackhole_faults(const EngineRequest& asked) {
  proxy::Blackhole hole;
  hole.mode =
      asked.given.word("mode", "drop") == "stall" ? proxy::Blackhole::Mode::stall : proxy::Blackhole::Mode::drop;
  return either_way(asked, hole);
}

EngineFaults half_open_faults(const EngineRequest& asked) {
  proxy::HalfOpen half;
  half.gone = asked.given.word("gone", "service") == "service" ? proxy::Side::upstream : proxy::Side::client;
  half.after = asked.given.time_or_none("after");
  return whole(asked, half);
}

EngineFaults slice_faults(const EngineRequest& asked) {
  proxy::Slice slice;
  slice.average_bytes = asked.given.count_or("bytes", 1);
  slice.variation_bytes = asked.given.count_or("variation", 0);
  slice.pause = asked.given.time_or_none("pause");
  return either_way(asked, slice);
}

/// The selector of datagrams: one of them, or each with a probability.
EngineFaults of_datagrams(const EngineRequest& asked, proxy::Effect effect, std::optional<std::uint64_t> nth) {
  auto faults = either_way(asked, std::move(effect));
  auto& selector = faults.front().selector;
  if (nth) selector.chunks = {*nth, *nth};
  selector.probability = asked.given.decimal("probability", 1);
  return faults;
}

EngineFaults loss_faults(const EngineRequest& asked) {
  return either_way(asked, proxy::Loss{asked.given.decimal("probability", 1)});
}

EngineFaults burst_loss_faults(const EngineRequest& asked) {
  return either_way(
      asked, proxy::BurstLoss{asked.given.decimal("good-to-bad", 0), asked.given.decimal("bad-to-good", 1),
                              asked.given.decimal("loss-when-good", 0), asked.given.decimal("loss-when-bad", 1)});
}

EngineFaults reorder_faults(const EngineRequest& asked) {
  proxy::Reorder reorder;
  reorder.gap = static_cast<unsigned>(asked.given.count_or("gap", 1));
  if (const auto longest = asked.given.time("at-most")) reorder.at_most = *longest;
  return of_datagrams(asked, reorder, asked.given.count("nth"));
}

using EngineMaker = EngineFaults (*)(const EngineRequest&);

const std::map<std::string, EngineMaker, std::less<>>& engine_makers() {
  static const std::map<std::string, EngineMaker, std::less<>> makers = {
      {"latency", latency_faults},
      {"bandwidth", bandwidth_faults},
      {"flip-bit", flip_faults},
      {"reset", reset_faults},
      {"blackhole", blackhole_faults},
      {"half-open", half_open_faults},
      {"slice", slice_faults},
      {"loss", loss_faults},
      {"burst-loss", burst_loss_faults},
      {"reorder", reorder_faults},
      {"lose-datagram",
       [](const EngineRequest& asked) { return of_datagrams(asked, proxy::Loss{1}, asked.given.count_or("nth", 1)); }},
      {"duplicate",
       [](const EngineRequest& asked) {
         return of_datagrams(asked, proxy::Duplicate{static_cast<unsigned>(asked.given.count_or("copies", 1))},
                             asked.given.count("nth"));
       }},
      {"jitter",
       [](const EngineRequest& asked) {
         return either_way(asked, proxy::Jitter{asked.given.time_or_none("from"), asked.given.time_or_none("up-to")});
       }},
      {"limit",
       [](const EngineRequest& asked) { return one_way(asked, proxy::Limit{asked.given.count_or("bytes", 0)}); }},
      {"truncate",
       [](const EngineRequest& asked) { return one_way(asked, proxy::Truncate{asked.given.count_or("keep", 0)}); }},
      {"hang-connect", [](const EngineRequest& asked) { return whole(asked, proxy::HangConnect{}); }},
      {"slow-accept",
       [](const EngineRequest& asked) {
         return whole(asked, proxy::SlowAccept{proxy::FixedTime{asked.given.time_or_none("for")}});
       }},
      {"reset-after-accept",
       [](const EngineRequest& asked) {
         return whole(asked, proxy::ResetAfterAccept{asked.given.time_or_none("after")});
       }},
      {"slow-close",
       [](const EngineRequest& asked) { return either_way(asked, proxy::SlowClose{asked.given.time_or_none("for")}); }},
      {"cut",
       [](const EngineRequest& asked) {
         return one_way(asked,
                        proxy::Cut{asked.given.time("after"), asked.given.count("after-bytes"), asked.given.ending()});
       }},
      {"lose-reply",
       [](const EngineRequest& asked) {
         return EngineFaults{one_fault(asked, proxy::LoseReply{asked.given.ending()}, proxy::Flow::to_client)};
       }},
  };
  return makers;
}

/// A reset that is given no time, nor a side, comes with the request that it takes.
bool comes_with_bytes(const scenarios::Fault& fault, const EngineAim& aim) {
  if (!fault.aim) return false;
  const auto* kind = scenarios::fault_kind(fault.kind);
  return fault.aim->after_bytes > 0 ||
         (!aim.open && kind != nullptr && !scenarios::strikes_stream(*kind, fault.params));
}

/// Leaves what is drawn and comes after so many bytes.
void narrow_to_aim(EngineFaults& faults, const scenarios::Aim& rule, const scenarios::Ways& ways) {
  std::erase_if(faults, [&](proxy::Fault& fault) {
    auto& flow = fault.selector.flow;
    if (flow == proxy::Flow::both && ways.up != ways.down)
      flow = ways.up ? proxy::Flow::to_upstream : proxy::Flow::to_client;
    return !(flow == proxy::Flow::to_client ? ways.down : flow == proxy::Flow::to_upstream ? ways.up : ways.any());
  });
  for (auto& fault : faults) fault.selector.bytes.from = rule.after_bytes;
}

}  // namespace

bool is_engine_fault(const scenarios::Fault& fault) {
  const auto* kind = scenarios::fault_kind(fault.kind);
  if (kind == nullptr || kind->mechanism != scenarios::Mechanism::link) return false;
  const bool of_a_rule = fault.aim && fault.site.operation == "connect" && fault.kind != "refuse" && !kind->between;
  return of_a_rule || scenarios::strikes_stream(*kind, fault.params) || fault.site.operation == session_operation;
}

bool strikes_before_dialling(const scenarios::Fault& fault) {
  const auto* kind = scenarios::fault_kind(fault.kind);
  return kind != nullptr && kind->at_opening;
}

base::Expected<std::vector<proxy::Fault>> engine_faults(const scenarios::Fault& fault, const std::string& id,
                                                        const std::string& link, const EngineAim& aim) {
  const auto maker = engine_makers().find(fault.kind);
  if (maker == engine_makers().end())
    return base::Error{base::ErrorCode::bad_input, "the network fault engine knows no \"" + fault.kind + "\"", {}};
  const EngineParameters given(fault.params);
  auto faults = maker->second({given, id, link, comes_with_bytes(fault, aim)});
  if (fault.aim) narrow_to_aim(faults, *fault.aim, aim.ways);
  return faults;
}

}  // namespace leafcutter::node
