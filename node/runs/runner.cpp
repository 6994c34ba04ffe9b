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

/// What the engine says of a proxy, at its place in the document.
base::Error at_listen(const ProxySpec& spec, base::Error error) {
  return {base::ErrorCode::bad_input, error.message, spec.listen_at};
}

}  // namespace

base::Expected<std::unique_ptr<Runner>> Runner::start(Run run, RunnerOptions options) {
  std::unique_ptr<Runner> runner(new Runner());
  runner->seed_ = options.seed.value_or(run.seed);
  proxy::EngineOptions engine;
  engine.seed = runner->seed_;
  engine.threads = options.threads;
  engine.hook = std::move(options.hook);
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
  link.listen = spec.listen;
  link.upstream = spec.upstream;
  link.limits = spec.limits;
  link.faults = run.phases.front().sets.at(spec.name);
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
  if (!other) return false;
  if (const auto set = engine_->set_faults(run_.phases[next.phase].sets); !set) return set.error();
  return true;
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
    const auto host = proxy::parse_host_port(spec.listen, "listen");
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
  if (const auto possible = try_ports(next); !possible) return possible.error();
  std::size_t changed = 0;
  auto old = run_;
  const auto exchanged = exchange_proxies(next, changed);
  if (!exchanged) {
    // Back to the old ones: what is there of the new run goes, what is missing of the old one comes again.
    std::size_t undone = 0;
    auto half = std::exchange(run_, std::move(next));
    const auto restored = exchange_proxies(half, undone);
    run_ = std::move(old);
    auto status = restored ? engine_->set_faults(run_.phases[point_.phase].sets) : restored;
    auto error = exchanged.error();
    if (!status) error.message += "; and the old proxies cannot all be opened again: " + status.error().message;
    return error;
  }
  run_ = std::move(next);
  started_ = now;
  point_ = phase_at(run_, {});
  if (const auto set = engine_->set_faults(run_.phases[point_.phase].sets); !set) return set.error();
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
