// The network fault engine: links that listen, carry TCP or UDP to an upstream, and do to the bytes what the faults in
// force say. Embeddable: this header and those it includes are all that an embedder needs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "node/proxy/decisions.hpp"
#include "node/proxy/event.hpp"
#include "node/proxy/fault.hpp"

namespace leafcutter::node::proxy {

struct LinkLimits {
  std::size_t connections = 100'000;    ///< TCP, on each thread; more wait in the listener's queue
  std::size_t sessions = 4096;          ///< UDP; a new one beyond that replaces the one idle longest
  std::size_t memory_bytes = 64 << 20;  ///< held by the link's faults and for slow readers, hard
  /// Of that, by one direction of one connection. What is under way during a delay must fit: 32 MiB are 3.3 GB/s at 10
  /// ms.
  std::size_t direction_bytes = 32 << 20;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds session_idle{60'000};
};

/// A fresh, non-blocking, close-on-exec socket of that family and type (AF_INET.., SOCK_STREAM..) in the network that
/// the upstream is in; or one that is connected already, to whatever the embedder chose. Called on the
/// engine's threads.
using OpenSocket = std::function<base::Expected<base::UniqueFd>(int family, int type)>;

struct LinkConfig {
  std::string name;
  Transport transport = Transport::tcp;
  /// "127.0.0.1:8080", "[::1]:0", "localhost:0"; port 0 takes a free one.
  std::string listen = {};
  /// Sockets that are already bound (TCP: and listening), instead of `listen`.
  std::vector<base::UniqueFd> listeners = {};
  /// "host:port", an address or a name; a name is resolved for new connections, and all its addresses are tried. Empty:
  /// `open_socket` gives sockets that are connected.
  std::string upstream = {};
  /// Address literals, TCP: tried in order after those of `upstream`.
  std::vector<std::string> further_upstreams = {};
  OpenSocket open_socket = {};
  bool enabled = true;
  FaultSet faults = {};
  LinkLimits limits = {};
};

struct EngineOptions {
  std::uint64_t seed = 0;
  unsigned threads = 1;  ///< that carry bytes; a connection stays on its thread
  EventHook hook = {};
  /// The hook is called on the threads that carry bytes, before anybody can see what the event tells of. It waits for
  /// nothing and calls nothing of the engine.
  bool immediate = false;
  std::size_t event_queue = 1 << 16;  ///< per thread
  bool splice = true;
  /// Decisions of an earlier run, made again where there would be a draw. What is not in them (bits that are corrupted,
  /// sizes of slices, connections that were not there) is drawn from the seed.
  std::shared_ptr<const Decisions> decisions = {};
};

/// Every function may be called from any thread but the hook's and the filters'. None waits for bytes, peers or the
/// hook.
class Engine {
 public:
  static base::Expected<std::unique_ptr<Engine>> start(EngineOptions options);
  ~Engine();  ///< stops

  /// The address listened on ("127.0.0.1:40123"). Without effect on failure.
  base::Expected<std::string> add_link(LinkConfig config);
  /// Closes its listener and connections.
  base::Status remove_link(const std::string& name);

  /// Replaces the whole set of one link, on open connections too; in force when it returns.
  base::Status set_faults(const std::string& name, FaultSet set);
  /// The same for several links: all sets are checked before any is replaced, and each thread changes them in one step.
  base::Status set_faults(std::map<std::string, FaultSet> sets);
  /// As given, with ids filled in.
  base::Expected<FaultSet> faults(const std::string& name) const;

  /// Disabled: refuses connections, ends open ones, keeps the port. Enabling fails, and changes nothing, when somebody
  /// else has come to listen there.
  base::Status set_enabled(const std::string& name, bool enabled);

  base::Expected<LinkStats> stats(const std::string& name) const;
  EngineStats stats() const;

  /// Waits until the hook has seen every event up to now.
  void flush_events();

  /// Ends every link and connection; the hook has seen every event when it returns.
  void stop();

 private:
  Engine();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leafcutter::node::proxy
