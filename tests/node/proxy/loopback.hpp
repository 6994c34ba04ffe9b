// Real peers around an engine, over loopback: blocking sockets with deadlines, upstreams, and the engine with what it
// said.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "make_fault.hpp"
#include "node/proxy/engine.hpp"

namespace leafcutter::node::proxy {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Sanitizers slow everything down; bounds on time are for what users run.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int slowness = 20;
#else
constexpr int slowness = 1;
#endif

/// "127.0.0.1:80" -> 80.
std::uint16_t port_of(const std::string& address);
/// Polls until `true_now`; false after `limit`.
bool eventually(const std::function<bool()>& true_now, Duration limit = 10s);
std::uint16_t dead_port();

/// A blocking TCP socket whose calls fail after 10 s. Ends and errors are named as an application sees them.
class Peer {
 public:
  Peer() = default;
  explicit Peer(base::UniqueFd fd);
  static Peer dial(const std::string& address);
  /// errno of the connect, 0 when it worked.
  static int try_dial(const std::string& address, Peer& peer);

  void send(std::string_view bytes);
  bool try_send(std::string_view bytes);
  /// Exactly that many bytes, or fewer at the end.
  std::string receive(std::size_t count);
  /// Nothing arrives for that long.
  bool quiet_for(Duration span);
  /// Everything up to the end.
  std::string receive_all();
  /// "end" or an errno name; after receive() came up short, or reads until then.
  std::string ending();
  void finish_sending();
  void reset();
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  base::UniqueFd fd_;
  std::string ending_;
};

/// Runs `serve` on a thread for each connection.
class Upstream {
 public:
  using Serve = std::function<void(Peer&)>;
  explicit Upstream(Serve serve, const std::string& host = "127.0.0.1");
  ~Upstream();
  const std::string& address() const { return address_; }
  int accepted() const { return accepted_; }

 private:
  void accept_all();
  Serve serve_;
  base::UniqueFd listener_;
  std::string address_;
  std::atomic<int> accepted_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::vector<int> open_;
  std::thread acceptor_;
};

/// Sends back what comes, until the end.
void echo(Peer& peer);

/// A UDP socket with a deadline.
class UdpPeer {
 public:
  explicit UdpPeer(const std::string& host = "127.0.0.1", std::uint16_t port = 0);
  const std::string& address() const { return address_; }
  void send_to(const std::string& address, std::string_view bytes);
  /// The next datagram and who sent it; empty after `limit`.
  std::string receive(Duration limit = 10s);
  const std::string& sender() const { return sender_; }
  int fd() const { return fd_.get(); }

 private:
  base::UniqueFd fd_;
  std::string address_, sender_;
};

/// An event with its own strings.
struct Seen {
  EventKind kind;
  std::string link, phase, fault, effect, detail;
  std::uint64_t connection, operation, offset, bytes, bytes_back;
  Direction direction;
  Duration delay;
  Cause cause;
};

class Rig {
 public:
  explicit Rig(EngineOptions options = {});

  /// Adds a TCP link to that upstream, on a free port; its address.
  std::string link(const std::string& name, const std::string& upstream, std::vector<Fault> faults = {},
                   LinkLimits limits = {});
  std::string udp_link(const std::string& name, const std::string& upstream, std::vector<Fault> faults = {},
                       LinkLimits limits = {});
  void set(const std::string& name, std::vector<Fault> faults, const std::string& phase = {});
  LinkStats stats(const std::string& name) const { return *engine->stats(name); }

  /// Events of the kind up to now, after the hook has seen everything.
  std::vector<Seen> events(EventKind kind);
  /// Waits until there are that many; fails the test, naming what is missing.
  std::vector<Seen> await(EventKind kind, std::size_t count);

 private:
  std::string add(LinkConfig config);
  std::mutex mutex_;
  std::vector<Seen> seen_;

 public:
  std::unique_ptr<Engine> engine;  ///< ends before what its hook writes to
};

/// The soft limit on descriptors, for a while.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t soft) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{soft, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  rlim_t hard() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

/// A link to an echoing upstream.
struct Line {
  explicit Line(std::vector<Fault> faults = {}, LinkLimits limits = {})
      : upstream(echo), address(rig.link("l", upstream.address(), std::move(faults), limits)) {}
  /// An open connection that has carried a byte both ways.
  Peer dial();
  Rig rig;
  Upstream upstream;
  std::string address;
};

/// A byte there and back.
Duration round_trip(Peer& client);

}  // namespace leafcutter::node::proxy
