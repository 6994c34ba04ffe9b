#include "node/proxy/armed.hpp"

namespace leafcutter::node::proxy {
namespace {

ArmedFaultPtr find_unchanged(const ArmedSet* before, const Fault& fault) {
  if (before == nullptr) return nullptr;
  for (const auto& one : before->faults)
    if (one->fault == fault) return one;
  return nullptr;
}

ArmedFaultPtr armed_fault(const Fault& fault, const FindCounters& counters, const FindBucket& bucket) {
  auto armed = std::make_shared<ArmedFault>();
  armed->fault = fault;
  for (const auto& peer : fault.selector.peers)
    if (const auto subnet = Subnet::parse(peer)) armed->peers.push_back(*subnet);
  armed->counters = counters(fault.id);
  armed->counters->effect = kind_of(fault.effect);
  armed->activation = ++armed->counters->activations;
  if (const auto* bandwidth = std::get_if<Bandwidth>(&fault.effect)) {
    if (bandwidth->scope == Bandwidth::Scope::shared) {
      armed->pacers[0] = armed->pacers[1] = bucket(bandwidth->bucket, *bandwidth);
    } else if (bandwidth->scope == Bandwidth::Scope::link) {
      for (auto& pacer : armed->pacers)
        pacer = std::make_shared<SharedPacer>(bandwidth->bytes_per_second, bandwidth->burst_bytes);
    }
  }
  return armed;
}

bool is_for_everybody(const Fault& fault) {
  auto selector = fault.selector;
  selector.flow = Flow::both;
  return selector.selects_everything();
}

}  // namespace

DrawKey draw_key(const ArmedFault& fault, std::uint64_t seed, std::string_view link, std::uint64_t connection,
                 Direction direction, const Decisions* decisions) {
  DrawKey key{seed, link, connection, direction, fault.fault.id};
  if (decisions != nullptr)
    key.recorded = decisions->find({std::string(link), connection, direction, fault.fault.id, fault.activation});
  return key;
}

ArmedSetPtr arm(FaultSet set, const ArmedSet* before, const FindCounters& counters, const FindBucket& bucket) {
  auto armed = std::make_shared<ArmedSet>();
  armed->set = std::move(set);
  for (const auto& fault : armed->set.faults) {
    auto unchanged = find_unchanged(before, fault);
    armed->faults.push_back(unchanged ? unchanged : armed_fault(fault, counters, bucket));
    if (std::holds_alternative<Refuse>(fault.effect) && is_for_everybody(fault)) armed->refuses_all = true;
  }
  return armed;
}

}  // namespace leafcutter::node::proxy
