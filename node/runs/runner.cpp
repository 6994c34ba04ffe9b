#include "node/runs/runner.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::runs {
namespace {

const ProxySpec* spec_named(const Run& run, const std::string& name) {
  const auto found =
      std::find_if(run.proxies.begin(), run.proxies.end(), [&](const ProxySpec& one) { return one.name == name; });
  return found == run.proxies.end() ? nullptr : &*found;
}

const std::string& listens_on(const ProxySpec& spec) {
  return spec.listen_address.empty() ? spec.listen : spec.listen_address;
}

bool waits(const Run& run) {
  return std::any_of(run.phases.begin(), run.phases.end(), [](const Phase& phase) { return !phase.awaited.empty(); });
}

/// What the engine says of a proxy, which is a link to it, at its place in the document.
base::Error at_listen(const ProxySpec& spec, base::Error error) {
  const auto link = "link \"" + spec.name + "\"";
  if (error.message.starts_with(link)) error.message.replace(0, 4, "proxy");
  return {base::ErrorCode::bad_input, error.message, spec.listen_at};
}

}  // namespace

base::Expected<std::unique_ptr<Runner>> Runner::start(Run run, RunnerOptions options) {
  std::unique_ptr<Runner> runner(new Runner());
  runner->seed_ = options.seed.value_or(run.seed);
  proxy::EngineOptions engine;
  engine.seed = runner->seed_;
  engine.threads = options.threads;
  runner->heard_ = options.hook || options.may_be_replaced || waits(run);
  if (runner->heard_)
    engine.hook = [given = std::move(options.hook), &gates = runner->gates_](const proxy::Event& event) {
      if (given) given(event);
      gates.heard(event);
    };
  runner->gates_.begin(run.phases.front());
  engine.decisions = std::move(options.decisions);
  auto started = proxy::Engine::start(std::move(engine));
  if (!started) return started.error();
  runner->engine_ = std::move(*started);
  for (const auto& spec : run.proxies)
    if (const auto opened = runner->open(spec, run); !opened) return opened.error();
  runner->run_ = std::move(run);
  runner->started_ = options.start;
  runner->point_ = phase_at(runner->run_, {});
  return runner;
}

base::Status Runner::open(const ProxySpec& spec, const Run& run) {
  proxy::LinkConfig link;
  link.name = spec.name;
  link.transport = spec.transport;
  link.listen = listens_on(spec);
  link.upstream = spec.upstream;
  link.limits = spec.limits;
  link.faults = before_events(run.phases.front(), spec.name);
  const auto address = engine_->add_link(std::move(link));
  if (!address) return at_listen(spec, address.error());
  endpoints_.push_back({spec.name, *address, spec.upstream, spec.transport});
  return base::ok();
}

void Runner::close(const std::string& name) {
  (void)engine_->set_enabled(name, false);  // ends its connections, which are counted then
  if (const auto stats = engine_->stats(name)) add_to(gone_[name], *stats);
  (void)engine_->remove_link(name);
  std::erase_if(endpoints_, [&](const Endpoint& one) { return one.proxy == name; });
}

base::Expected<bool> Runner::advance(Time now) {
  const auto next = phase_at(run_, now - started_);
  const bool other = next.phase != point_.phase;
  point_ = next;
  begun_.clear();
  if (other) {
    gates_.begin(run_.phases[next.phase]);
    if (const auto set = engine_->set_faults(sets_in_force()); !set) return set.error();
    return true;
  }
  begun_ = gates_.open();
  std::map<std::string, proxy::FaultSet> sets;
  for (const auto& one : begun_) sets[one.proxy] = gates_.in_force(run_.phases[next.phase], one.proxy);
  if (sets.empty()) return false;
  if (const auto set = engine_->set_faults(std::move(sets)); !set) return set.error();
  return false;
}

std::map<std::string, proxy::FaultSet> Runner::sets_in_force() const {
  const auto& phase = run_.phases[point_.phase];
  std::map<std::string, proxy::FaultSet> sets;
  for (const auto& [name, set] : phase.sets) sets.emplace(name, gates_.in_force(phase, name));
  return sets;
}

std::optional<Time> Runner::deadline() const {
  if (point_.finished) return started_;
  if (!point_.until) return std::nullopt;
  return started_ + *point_.until;
}

/// Whether what is new in `next` could listen, as far as that shows before anything old is closed.
base::Status Runner::try_ports(const Run& next) const {
  for (const auto& spec : next.proxies) {
    const bool ours = std::any_of(run_.proxies.begin(), run_.proxies.end(), [&](const ProxySpec& old) {
      return old.listen == spec.listen && old.transport == spec.transport;
    });
    if (ours) continue;
    const auto host = proxy::parse_host_port(listens_on(spec), "listen");
    if (!host) return at_listen(spec, host.error());
    const auto addresses = proxy::resolve_host(*host);
    if (!addresses) return at_listen(spec, addresses.error());
    const int type = spec.transport == proxy::Transport::tcp ? SOCK_STREAM : SOCK_DGRAM;
    if (const auto opened = proxy::open_listener(addresses->front(), type); !opened)
      return at_listen(spec, opened.error());
  }
  return base::ok();
}

/// Closes what is not in `next`, opens what is new in it. On failure it may be half done.
base::Status Runner::exchange_proxies(const Run& next, std::size_t& changed) {
  const auto before = endpoints_;
  for (const auto& endpoint : before) {
    const auto* was = spec_named(run_, endpoint.proxy);
    const auto* is = spec_named(next, endpoint.proxy);
    if (was != nullptr && is != nullptr && was->same_as(*is)) continue;
    close(endpoint.proxy);
    ++changed;
  }
  for (const auto& spec : next.proxies) {
    if (engine_->stats(spec.name).ok()) continue;
    if (const auto opened = open(spec, next); !opened) return opened;
    ++changed;
  }
  return base::ok();
}

base::Expected<std::size_t> Runner::replace(Run next, Time now) {
  if (waits(next) && !heard_)
    return base::Error{base::ErrorCode::conflict, "nobody hears what the new document waits for", {}};
  if (const auto possible = try_ports(next); !possible) return possible.error();
  auto gates_before = gates_.begin(next.phases.front());
  std::size_t changed = 0;
  auto old = run_;
  const auto exchanged = exchange_proxies(next, changed);
  if (!exchanged) {
    // Back to the old ones: what is there of the new run goes, what is missing of the old one comes again.
    std::size_t undone = 0;
    auto half = std::exchange(run_, std::move(next));
    const auto restored = exchange_proxies(half, undone);
    run_ = std::move(old);
    gates_.restore(std::move(gates_before));
    auto status = restored ? engine_->set_faults(sets_in_force()) : restored;
    auto error = exchanged.error();
    if (!status) error.message += "; and the old proxies cannot all be opened again: " + status.error().message;
    return error;
  }
  run_ = std::move(next);
  started_ = now;
  point_ = phase_at(run_, {});
  if (const auto set = engine_->set_faults(sets_in_force()); !set) return set.error();
  return changed;
}

void Runner::end() {
  const auto names = endpoints_;
  for (const auto& endpoint : names) (void)engine_->set_enabled(endpoint.proxy, false);
  engine_->flush_events();
}

Totals Runner::totals() const {
  auto totals = gone_;
  for (const auto& [name, link] : engine_->stats().links) add_to(totals[name], link);
  return totals;
}

std::uint64_t Runner::dropped_records() const { return engine_->stats().dropped_events; }

}  // namespace leafcutter::node::runs
