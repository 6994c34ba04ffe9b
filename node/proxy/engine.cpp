#include "node/proxy/engine.hpp"

#include <algorithm>
#include <condition_variable>
#include <shared_mutex>

#include "base/text.hpp"
#include "node/proxy/datagram_link.hpp"
#include "node/proxy/receive_queue.hpp"
#include "node/proxy/stream_link.hpp"

namespace leafcutter::node::proxy {
namespace {

/// In the place of an upstream that nobody dials: the embedder's sockets have their peers.
constexpr const char* nowhere = "0.0.0.0:0";

constexpr unsigned most_threads = 64;
/// Of datagrams that have come and were not read yet: 20 ms of 200 MB/s.
constexpr int listener_queue = 4 << 20;

/// Waits until all of a number of things have happened.
class Countdown {
 public:
  explicit Countdown(std::size_t count) : left_(count) {}
  void one() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t left_;
};

base::Error in_link(const std::string& name, base::Error error) {
  error.message = "link \"" + name + "\": " + error.message;
  return error;
}

EventRecord link_record(const Link& link, EventKind kind) {
  EventRecord record;
  record.kind = kind;
  record.link = link.name;
  const std::lock_guard lock(link.mutex);
  record.set = link.set;
  return record;
}

}  // namespace

struct Engine::State {
  EngineOptions options;
  std::vector<std::unique_ptr<Worker>> workers;
  std::unique_ptr<Journal> journal;
  Resolver resolver;  ///< its thread ends before the workers that it answers to are gone

  std::mutex changing;  ///< one change at a time
  mutable std::shared_mutex links_mutex;
  std::map<std::string, std::shared_ptr<Link>> links;
  std::map<std::string, std::weak_ptr<SharedPacer>> buckets;
  bool stopped = false;

  base::Expected<std::shared_ptr<Link>> find(const std::string& name) const;
  base::Expected<std::shared_ptr<Link>> make_link(LinkConfig& config) const;
  ArmedSetPtr armed(Link& link, FaultSet set);
  std::vector<Worker*> workers_of(const Link& link) const;
  void on_workers(const std::function<void(Worker&)>& command);
  enum class Change { faults, enabled, disabled };
  base::Status tell(const std::vector<std::shared_ptr<Link>>& changed, Change change);
  base::Status listen_again(Link& link);
  void stop_listening(Link& link);
  void announce(const Link& link, EventKind kind, std::string detail = {});
};

base::Expected<std::shared_ptr<Link>> Engine::State::find(const std::string& name) const {
  const std::shared_lock lock(links_mutex);
  const auto found = links.find(name);
  if (found != links.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, link] : links) names.push_back(known);
  std::string message = "no link has the name \"" + name + "\"";
  if (const auto near = base::nearest(name, names)) message += "; did you mean \"" + *near + "\"?";
  return base::Error{base::ErrorCode::bad_input, message};
}

/// TCP connections are spread over all threads; a UDP link's socket is one thread's.
std::vector<Worker*> Engine::State::workers_of(const Link& link) const {
  std::vector<Worker*> all;
  for (const auto& worker : workers) all.push_back(worker.get());
  if (link.transport == Transport::udp) return {all[base::fnv1a(*link.name) % all.size()]};
  return all;
}

/// Runs the command on every worker's thread, and returns when all have.
void Engine::State::on_workers(const std::function<void(Worker&)>& command) {
  Countdown countdown(workers.size());
  for (const auto& worker : workers)
    worker->post([&] {
      command(*worker);
      countdown.one();
    });
  countdown.wait();
}

void Engine::State::announce(const Link& link, EventKind kind, std::string detail) {
  auto record = link_record(link, kind);
  record.detail = std::move(detail);
  auto* worker = workers.front().get();
  worker->post([worker, record = std::move(record)] { worker->emit(record); });
}

ArmedSetPtr Engine::State::armed(Link& link, FaultSet set) {
  const auto counters = [&](const std::string& id) {
    auto& counter = link.fault_counters[id];
    if (!counter) counter = std::make_shared<FaultCounters>();
    return counter;
  };
  const auto bucket = [&](const std::string& name, const Bandwidth& bandwidth) {
    auto shared = buckets[name].lock();
    if (!shared)
      buckets[name] = shared = std::make_shared<SharedPacer>(bandwidth.bytes_per_second, bandwidth.burst_bytes);
    else
      shared->change(bandwidth.bytes_per_second, bandwidth.burst_bytes);
    return shared;
  };
  const std::lock_guard lock(link.mutex);
  link.set = arm(std::move(set), link.set.get(), counters, bucket);
  return link.set;
}

/// Brings the state of links to the workers: each changes all of them in one step. An error: one that should listen
/// again does not; that is announced, too.
base::Status Engine::State::tell(const std::vector<std::shared_ptr<Link>>& changed, Change change) {
  base::Status listens = base::ok();
  for (const auto& link : changed)
    if (link->should_listen() && !link->listening)
      if (const auto status = listen_again(*link); !status) {
        announce(*link, EventKind::listening_failed, status.error().message);
        listens = status;
      }
  on_workers([&](Worker& worker) {
    for (const auto& link : changed) {
      // Before what follows from it.
      if (change == Change::faults && &worker == workers.front().get())
        worker.emit(link_record(*link, EventKind::faults_replaced));
      const auto found = worker.links().find(link.get());
      if (found == worker.links().end()) continue;
      found->second->apply(link->set, link->should_listen() && link->listening);
      if (change == Change::disabled) found->second->end_all();
    }
  });
  for (const auto& link : changed)
    if (!link->should_listen() && link->listening) stop_listening(*link);
  return listens;
}

base::Status Engine::State::listen_again(Link& link) {
  link.listening = true;
  if (link.transport == Transport::udp || link.adopted) return base::ok();
  for (const auto& fd : link.listeners)
    if (::listen(fd.get(), listen_backlog) != 0) {
      link.listening = false;
      auto error = base::system_error("listen on " + link.listen_text, errno);
      if (errno == EADDRINUSE) error.code = base::ErrorCode::conflict;
      return error;
    }
  return base::ok();
}

/// The port stays bound, so that nobody else gets it; connections that were not accepted yet are reset.
void Engine::State::stop_listening(Link& link) {
  link.listening = false;
  if (link.transport == Transport::udp || link.adopted) return;
  for (const auto& fd : link.listeners) ::shutdown(fd.get(), SHUT_RD);
}

base::Expected<std::shared_ptr<Link>> Engine::State::make_link(LinkConfig& config) const {
  auto link = std::make_shared<Link>();
  link->name = std::make_shared<const std::string>(config.name);
  link->transport = config.transport;
  link->seed = options.seed;
  link->decisions = options.decisions;
  link->upstream_text = config.upstream;
  link->open_socket = std::move(config.open_socket);
  link->limits = config.limits;
  link->enabled = config.enabled;
  const bool connected = config.upstream.empty() && link->open_socket;
  if (connected && !config.further_upstreams.empty())
    return base::Error{base::ErrorCode::bad_input, "further_upstreams: there is no upstream before them"};
  const auto upstream = parse_host_port(connected ? nowhere : config.upstream, "upstream");
  if (!upstream) return upstream.error();
  if (upstream->port == 0 && !connected)
    return base::Error{base::ErrorCode::bad_input, "upstream: port 0; 1 to 65535 would do"};
  link->upstream = *upstream;
  link->upstream_addresses = literal_address(*upstream);
  for (const auto& text : config.further_upstreams) {
    const auto further = parse_host_port(text, "further_upstreams");
    if (!further) return further.error();
    const auto addresses = literal_address(*further);
    if (addresses.empty() || link->upstream_addresses.empty())
      return base::Error{base::ErrorCode::bad_input,
                         "further_upstreams: \"" + text + "\" and upstream: addresses, no names"};
    link->upstream_addresses.push_back(addresses.front());
  }
  if (!config.listeners.empty()) {
    link->listeners = std::move(config.listeners);
    link->adopted = true;
  } else {
    const auto listen = parse_host_port(config.listen, "listen");
    if (!listen) return listen.error();
    const auto addresses = resolve_host(*listen);
    if (!addresses) return base::Error{base::ErrorCode::bad_input, "listen: " + addresses.error().message};
    auto fd = open_listener(addresses->front(), config.transport == Transport::tcp ? SOCK_STREAM : SOCK_DGRAM);
    if (!fd) return fd.error();
    link->listeners.push_back(std::move(*fd));
  }
  if (config.transport == Transport::udp)
    for (const auto& fd : link->listeners) widen_receive_queue(fd.get(), listener_queue);
  link->listen_text = local_address(link->listeners.front().get()).text();
  return link;
}

Engine::Engine() : state_(std::make_unique<State>()) {}

Engine::~Engine() { stop(); }

base::Expected<std::unique_ptr<Engine>> Engine::start(EngineOptions options) {
  if (options.threads == 0 || options.threads > most_threads)
    return base::Error{base::ErrorCode::bad_input, "threads: 1 to " + std::to_string(most_threads) + " would do"};
  std::unique_ptr<Engine> engine(new Engine());
  auto& state = *engine->state_;
  state.options = std::move(options);
  std::vector<EventRing*> rings;
  for (unsigned i = 0; i < state.options.threads; ++i) {
    auto worker = std::make_unique<Worker>(state.options.event_queue, state.options.splice, state.resolver);
    if (!worker->usable()) return base::system_error("cannot make an epoll and an eventfd", errno);
    rings.push_back(&worker->ring());
    state.workers.push_back(std::move(worker));
  }
  if (state.options.hook && !state.options.immediate)
    state.journal = std::make_unique<Journal>(state.options.hook, rings);
  for (const auto& worker : state.workers)
    worker->start(state.journal.get(), state.options.immediate ? state.options.hook : EventHook{});
  return engine;
}

base::Expected<std::string> Engine::add_link(LinkConfig config) {
  const std::lock_guard changing(state_->changing);
  const auto name = config.name;
  if (name.empty()) return base::Error{base::ErrorCode::bad_input, "name: a link needs one"};
  if (state_->stopped) return base::Error{base::ErrorCode::unavailable, "the engine has stopped"};
  if (state_->find(name))
    return base::Error{base::ErrorCode::conflict, "name: there is a link \"" + name + "\" already"};
  auto set = checked(std::move(config.faults), config.transport);
  if (!set) return in_link(name, set.error());
  auto made = state_->make_link(config);
  if (!made) return in_link(name, made.error());
  const auto link = *made;
  state_->armed(*link, std::move(*set));
  {
    const std::unique_lock lock(state_->links_mutex);
    state_->links.emplace(name, link);
  }
  if (!link->should_listen()) state_->stop_listening(*link);
  state_->announce(*link, EventKind::link_added, link->listen_text);
  const auto homes = state_->workers_of(*link);
  state_->on_workers([&](Worker& worker) {
    if (std::find(homes.begin(), homes.end(), &worker) == homes.end()) return;
    std::unique_ptr<LinkWorker> part;
    if (link->transport == Transport::tcp)
      part = std::make_unique<StreamLink>(worker, link);
    else
      part = std::make_unique<DatagramLink>(worker, link);
    part->apply(link->set, link->should_listen());
    worker.links().emplace(link.get(), std::move(part));
  });
  return link->listen_text;
}

base::Status Engine::remove_link(const std::string& name) {
  const std::lock_guard changing(state_->changing);
  const auto found = state_->find(name);
  if (!found) return found.error();
  const auto link = *found;
  state_->on_workers([&](Worker& worker) {
    const auto part = worker.links().find(link.get());
    if (part == worker.links().end()) return;
    part->second->apply(link->set, false);
    part->second->end_all();
    worker.links().erase(part);
  });
  state_->announce(*link, EventKind::link_removed);
  const std::unique_lock lock(state_->links_mutex);
  state_->links.erase(name);
  return base::ok();
}

base::Status Engine::set_faults(const std::string& name, FaultSet set) {
  std::map<std::string, FaultSet> sets;
  sets.emplace(name, std::move(set));
  return set_faults(std::move(sets));
}

base::Status Engine::set_faults(std::map<std::string, FaultSet> sets) {
  const std::lock_guard changing(state_->changing);
  std::vector<std::shared_ptr<Link>> changed;
  for (auto& [name, set] : sets) {
    const auto link = state_->find(name);
    if (!link) return link.error();
    auto good = checked(std::move(set), (*link)->transport);
    if (!good) return in_link(name, good.error());
    set = std::move(*good);
    changed.push_back(*link);
  }
  auto next = sets.begin();
  for (const auto& link : changed) state_->armed(*link, std::move((next++)->second));
  (void)state_->tell(changed, State::Change::faults);
  return base::ok();
}

base::Expected<FaultSet> Engine::faults(const std::string& name) const {
  const auto link = state_->find(name);
  if (!link) return link.error();
  const std::lock_guard lock((*link)->mutex);
  return (*link)->set->set;
}

base::Status Engine::set_enabled(const std::string& name, bool enabled) {
  const std::lock_guard changing(state_->changing);
  const auto link = state_->find(name);
  if (!link) return link.error();
  {
    const std::lock_guard lock((*link)->mutex);
    (*link)->enabled = enabled;
  }
  const auto listens = state_->tell({*link}, enabled ? State::Change::enabled : State::Change::disabled);
  if (listens || !enabled) return base::ok();
  const std::lock_guard lock((*link)->mutex);
  (*link)->enabled = false;
  return listens.error();
}

base::Expected<LinkStats> Engine::stats(const std::string& name) const {
  const auto found = state_->find(name);
  if (!found) return found.error();
  const auto& link = **found;
  const auto& counters = link.counters;
  LinkStats stats;
  stats.name = name;
  stats.listen = link.listen_text;
  stats.upstream = link.upstream_text;
  stats.transport = link.transport;
  stats.accepted = counters.accepted;
  stats.active = counters.active;
  stats.connected = counters.connected;
  stats.connect_failed = counters.connect_failed;
  stats.closed = counters.closed;
  stats.struck_connections = counters.struck_connections;
  stats.strikes = counters.strikes;
  stats.discarded = counters.discarded;
  stats.accept_failures = counters.accept_failures;
  stats.bytes_to_upstream = counters.bytes[0];
  stats.bytes_to_client = counters.bytes[1];
  stats.bytes_from_client = counters.received[0];
  stats.bytes_from_upstream = counters.received[1];
  stats.datagrams_to_upstream = counters.datagrams[0];
  stats.datagrams_to_client = counters.datagrams[1];
  stats.spliced_bytes = counters.spliced;
  stats.held_bytes = link.held;
  stats.held_bytes_peak = link.held_peak;
  const std::lock_guard lock(link.mutex);
  stats.enabled = link.enabled;
  stats.phase = link.set->set.phase;
  for (const auto& [id, fault] : link.fault_counters)
    stats.faults[id] = {std::string(fault->effect), fault->strikes, fault->bytes, fault->passed_over,
                        Duration{fault->delay.load()}};
  return stats;
}

EngineStats Engine::stats() const {
  EngineStats stats;
  std::vector<std::string> names;
  {
    const std::shared_lock lock(state_->links_mutex);
    for (const auto& [name, link] : state_->links) names.push_back(name);
  }
  for (const auto& name : names)
    if (auto one = this->stats(name)) stats.links.emplace(name, std::move(*one));
  for (const auto& worker : state_->workers) stats.dropped_events += worker->ring().dropped();
  return stats;
}

void Engine::flush_events() {
  state_->on_workers([](Worker&) {});
  if (state_->journal) state_->journal->flush();
}

void Engine::stop() {
  {
    const std::shared_lock lock(state_->links_mutex);
    if (state_->stopped) return;
  }
  std::vector<std::string> names;
  for (const auto& [name, link] : state_->links) names.push_back(name);
  for (const auto& name : names) (void)remove_link(name);
  const std::lock_guard changing(state_->changing);
  {
    const std::unique_lock lock(state_->links_mutex);
    if (std::exchange(state_->stopped, true)) return;
  }
  for (const auto& worker : state_->workers) worker->stop();
  state_->journal.reset();
}

}  // namespace leafcutter::node::proxy
