#include "node/links/datagram_proxy.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "node/links/engine_faults.hpp"
#include "node/links/session_choice.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"
#include "scenarios/link_aim.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

constexpr std::uint32_t all_millionths = 1'000'000;

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
  std::vector<proxy::Fault> further;                        ///< of the embedder, and the tap
  std::vector<std::size_t> awaiting_event;                  ///< rules that are not in force yet
  std::mutex mutex;                                         ///< of what follows: events come on the engine's threads
  std::map<std::string, Cut, std::less<>> cuts;             ///< in force
  std::map<std::size_t, std::vector<proxy::Fault>> faults;  ///< in force, by their places in the plan
  std::map<std::string, std::size_t, std::less<>> planned;  ///< the engine's ids of the plan's faults
  std::set<std::uint64_t> open;                             ///< sessions
  std::uint64_t last_session = 0;

  proxy::FaultSet set() {
    proxy::FaultSet set;
    const std::lock_guard lock(mutex);
    for (const auto& [id, cut] : cuts) set.faults.push_back(cut.fault(lane, proxy::Blackhole::Mode::drop));
    for (const auto& [index, ours] : faults) set.faults.insert(set.faults.end(), ours.begin(), ours.end());
    set.faults.insert(set.faults.end(), further.begin(), further.end());
    return set;
  }

  Value ends(std::uint64_t session) const {
    return {{"from", link.from}, {"to", link.to}, {"port", link.port}, {"conn", session}};
  }

  void heard(const proxy::Event& event) {
    switch (event.kind) {
      case proxy::EventKind::accepted: {
        context.activity.touch();
        {
          const std::lock_guard lock(mutex);
          open.insert(event.connection);
          last_session = std::max<std::uint64_t>(last_session, event.connection);
        }
        context.sites.visit({lane, session_operation, "udp"});
        auto attrs = ends(event.connection);
        attrs["accepted"] = true;
        context.recorder.record(lane, events::connect, std::move(attrs), {context.recorder.now(link.from)});
        break;
      }
      case proxy::EventKind::struck: struck(event); break;
      case proxy::EventKind::closed: {
        {
          const std::lock_guard lock(mutex);
          open.erase(event.connection);
        }
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
    std::size_t index = 0;
    {
      const std::lock_guard lock(mutex);
      if (const auto cut = cuts.find(event.fault); cut != cuts.end()) {
        cut->second.met(lane, event);
        return;
      }
      const auto found = planned.find(event.fault);
      if (found == planned.end()) return;
      index = found->second;
    }
    const bool up = event.direction == proxy::Direction::to_upstream;
    Value evidence = {{"conn", event.connection},
                      {"direction", up ? "to-service" : "to-caller"},
                      {"datagram", event.operation},
                      {"bytes", event.bytes}};
    if (event.delay.count() > 0) evidence["delay_ms"] = std::chrono::duration<double, std::milli>(event.delay).count();
    context.sites.fired(index, std::move(evidence));
    context.recorder.deliver(up ? link.to : link.from, context.recorder.now(lane));
  }

  base::Status add_planned() {
    const auto& plan = context.sites.plan();
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
      const auto& fault = plan.faults[i];
      if (fault.site.lane != lane || fault.site.operation != session_operation || scenarios::never_strikes(fault))
        continue;
      if (fault.aim && !fault.aim->after.empty()) {
        awaiting_event.push_back(i);
        continue;
      }
      auto of_engine = engine_faults(fault, id_of(i), lane);
      if (!of_engine) return of_engine.error();
      if (fault.aim)
        put(i, aimed(*of_engine, *fault.aim));
      else
        put(i, planned_ones(std::move(*of_engine), fault));
    }
    return base::ok();
  }

  /// What the engine draws depends on its ids, and so on the seed of a rule.
  std::string id_of(std::size_t index) const {
    const auto& fault = context.sites.plan().faults[index];
    auto id = fault.text();
    if (fault.aim) id += " seed " + std::to_string(fault.aim->seed);
    return planned.contains(id) ? id + " again " + std::to_string(index) : id;
  }

  void put(std::size_t index, std::vector<proxy::Fault> ours) {
    for (const auto& one : ours) planned.emplace(one.id, index);
    faults[index] = std::move(ours);
  }

  static std::vector<proxy::Fault> planned_ones(std::vector<proxy::Fault> ours, const scenarios::Fault& fault) {
    const bool lasting = scenarios::fault_kind(fault.kind)->lasting;
    for (auto& one : ours)
      one.selector.connections = {fault.occurrence,
                                  lasting ? std::numeric_limits<std::uint64_t>::max() : fault.occurrence};
    return ours;
  }

  /// The rule's faults on the sessions that it selects from now on.
  std::vector<proxy::Fault> aimed(const std::vector<proxy::Fault>& ours, const scenarios::Aim& aim) const {
    std::vector<proxy::Fault> out;
    const auto chosen = sessions_chosen(aim.occurrences, open, last_session);
    for (const auto& sessions : chosen) {
      for (auto one : ours) {
        one.selector.connections = sessions;
        if (chosen.size() > 1) one.id += " from session " + std::to_string(sessions.first);
        if (aim.message)
          one.selector.chunks = {aim.message->at_least.value_or(1),
                                 aim.message->at_most.value_or(std::numeric_limits<std::uint64_t>::max())};
        if (aim.per_million < all_millionths) {
          one.selector.probability = static_cast<double>(aim.per_million) / all_millionths;
          one.selector.draw = proxy::Selector::Draw::connection;
        }
        out.push_back(std::move(one));
      }
    }
    return out;
  }

  /// False: nothing has changed.
  base::Expected<bool> begin_awaited() {
    bool any = false;
    for (auto at = awaiting_event.begin(); at != awaiting_event.end();) {
      if (context.sites.waits(*at)) {
        ++at;
        continue;
      }
      const auto index = *at;
      at = awaiting_event.erase(at);
      const auto& fault = context.sites.plan().faults[index];
      const std::lock_guard lock(mutex);
      auto of_engine = engine_faults(fault, id_of(index), lane);
      if (!of_engine) return of_engine.error();
      put(index, aimed(*of_engine, *fault.aim));
      any = true;
    }
    return any;
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
  state->further = std::move(further);
  state->further.push_back(state->tap());
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

base::Status DatagramProxy::catch_up() {
  const auto changed = state_->begin_awaited();
  if (!changed) return changed.error();
  return *changed ? state_->context.engine.set_faults({{state_->lane, state_->set()}}) : base::ok();
}

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
