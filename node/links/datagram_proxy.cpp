#include "node/links/datagram_proxy.hpp"

#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "node/links/engine_faults.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

/// What gets through has been seen by the one that it reaches, and shows that the link is not quiet.
class DatagramTap final : public proxy::StreamOrDatagramFilter {
 public:
  DatagramTap(Recorder& recorder, Activity& activity, const std::string& from, const std::string& to)
      : recorder_(recorder), activity_(activity), from_(from), to_(to) {}

  proxy::Filtered arrived(std::string_view bytes) override {
    activity_.touch();
    recorder_.deliver(to_, recorder_.now(from_));
    proxy::Filtered filtered;
    filtered.onward.push_back({std::string(bytes)});
    return filtered;
  }

 private:
  Recorder& recorder_;
  Activity& activity_;
  const std::string from_, to_;
};

class DatagramTaps final : public proxy::FilterFactory {
 public:
  DatagramTaps(Recorder& recorder, Activity& activity, const scenarios::Link& link)
      : recorder_(recorder), activity_(activity), caller_(link.from), callee_(link.to) {}

  std::unique_ptr<proxy::StreamOrDatagramFilter> make(const proxy::FilterContext& context) const override {
    const bool up = context.direction == proxy::Direction::to_upstream;
    return std::make_unique<DatagramTap>(recorder_, activity_, up ? caller_ : callee_, up ? callee_ : caller_);
  }

 private:
  Recorder& recorder_;
  Activity& activity_;
  const std::string caller_, callee_;
};

}  // namespace

struct DatagramProxy::State {
  State(DatagramContext given, scenarios::Link carried) : context(given), link(std::move(carried)), lane(link.id()) {}

  DatagramContext context;
  scenarios::Link link;
  std::string lane;
  std::vector<proxy::Fault> faults;                         ///< of the plan and of the embedder
  std::map<std::string, std::size_t, std::less<>> planned;  ///< the engine's ids of the plan's faults
  std::mutex mutex;
  std::map<std::string, Cut, std::less<>> cuts;  ///< in force

  proxy::FaultSet set() {
    proxy::FaultSet set;
    const std::lock_guard lock(mutex);
    for (const auto& [id, cut] : cuts) set.faults.push_back(cut.fault(lane, proxy::Blackhole::Mode::drop));
    set.faults.insert(set.faults.end(), faults.begin(), faults.end());
    return set;
  }

  Value ends(std::uint64_t session) const {
    return {{"from", link.from}, {"to", link.to}, {"port", link.port}, {"conn", session}};
  }

  void heard(const proxy::Event& event) {
    switch (event.kind) {
      case proxy::EventKind::accepted: {
        context.activity.touch();
        context.sites.visit({lane, session_operation, "udp"});
        auto attrs = ends(event.connection);
        attrs["accepted"] = true;
        context.recorder.record(lane, events::connect, std::move(attrs), {context.recorder.now(link.from)});
        break;
      }
      case proxy::EventKind::struck: struck(event); break;
      case proxy::EventKind::closed: {
        auto attrs = ends(event.connection);
        attrs["up_bytes"] = event.bytes;
        attrs["down_bytes"] = event.bytes_back;
        attrs["cause"] = std::string(proxy::name_of(event.cause));
        context.recorder.record(lane, events::close, std::move(attrs));
        break;
      }
      default: break;
    }
  }

  void struck(const proxy::Event& event) {
    {
      const std::lock_guard lock(mutex);
      if (const auto cut = cuts.find(event.fault); cut != cuts.end()) {
        cut->second.met(lane, event);
        return;
      }
    }
    const auto found = planned.find(event.fault);
    if (found == planned.end()) return;
    const bool up = event.direction == proxy::Direction::to_upstream;
    Value evidence = {{"conn", event.connection},
                      {"direction", up ? "to-service" : "to-caller"},
                      {"datagram", event.operation},
                      {"bytes", event.bytes}};
    if (event.delay.count() > 0) evidence["delay_ms"] = std::chrono::duration<double, std::milli>(event.delay).count();
    context.sites.fired(found->second, std::move(evidence));
    context.recorder.deliver(up ? link.to : link.from, context.recorder.now(lane));
  }

  base::Status add_planned() {
    const auto& plan = context.sites.plan();
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
      const auto& fault = plan.faults[i];
      if (fault.site.lane != lane || fault.site.operation != session_operation) continue;
      auto id = fault.text();
      if (planned.contains(id)) id += " again " + std::to_string(i);
      auto of_engine = engine_faults(fault, id, lane);
      if (!of_engine) return of_engine.error();
      const auto* kind = scenarios::fault_kind(fault.kind);
      for (auto& one : *of_engine) {
        one.selector.connections = {fault.occurrence,
                                    kind->lasting ? std::numeric_limits<std::uint64_t>::max() : fault.occurrence};
        planned.emplace(one.id, i);
        faults.push_back(std::move(one));
      }
    }
    return base::ok();
  }

  proxy::Fault tap() const {
    proxy::Fault fault;
    fault.id = "(seen)";
    fault.effect = proxy::Filter{std::make_shared<const DatagramTaps>(context.recorder, context.activity, link)};
    return fault;
  }
};

base::Expected<std::unique_ptr<DatagramProxy>> DatagramProxy::start(DatagramContext context,
                                                                    const scenarios::Link& link,
                                                                    std::vector<base::UniqueFd> sockets, Dial dial,
                                                                    std::vector<proxy::Fault> further) {
  const auto state = std::make_shared<State>(context, link);
  if (auto status = state->add_planned(); !status) return status.error();
  for (auto& fault : further) state->faults.push_back(std::move(fault));
  state->faults.push_back(state->tap());
  proxy::LinkConfig config;
  config.name = state->lane;
  config.transport = proxy::Transport::udp;
  config.listeners = std::move(sockets);
  config.open_socket = [dial = std::move(dial)](int, int) { return dial(); };
  config.faults = state->set();
  auto added = context.engine.add(std::move(config), [state](const proxy::Event& event) { state->heard(event); });
  if (!added) return added.error();
  return std::unique_ptr<DatagramProxy>(new DatagramProxy(state));
}

DatagramProxy::~DatagramProxy() { state_->context.engine.remove(state_->lane); }

const std::string& DatagramProxy::lane() const { return state_->lane; }

base::Status DatagramProxy::begin_cut(const Cut& cut) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->cuts.emplace(cut.id, cut);
  }
  return state_->context.engine.set_faults({{state_->lane, state_->set()}});
}

base::Status DatagramProxy::end_cut(const std::string& id) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->cuts.erase(id) == 0) return base::ok();
  }
  return state_->context.engine.set_faults({{state_->lane, state_->set()}});
}

}  // namespace leafcutter::node
