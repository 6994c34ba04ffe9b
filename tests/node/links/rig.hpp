// A link under test: a proxy on a real listener, a callee behind it, and callers in front, all over loopback.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "node/links/detour.hpp"
#include "node/links/proxy.hpp"

namespace leafcutter::node {

/// A blocking socket with deadlines. What it says of errors is the errno name that a caller would see.
class Peer {
 public:
  explicit Peer(base::UniqueFd fd);
  static Peer dial(std::uint16_t port);

  void send(std::string_view bytes);
  bool try_send(std::string_view bytes);
  /// Reads exactly `count` bytes, or fewer at an end or error.
  std::string receive(std::size_t count);
  std::string receive_all();
  /// Reads up to and including `end`.
  std::string receive_until(std::string_view end);
  /// One HTTP message with Content-Length (or none), head and body.
  std::string receive_message();
  /// "end", "ECONNRESET", or "" when nothing of the kind came up to now.
  const std::string& ending() const { return ending_; }
  /// Reads until the end; what it was.
  std::string await_ending();
  void finish_sending();
  void close() { fd_.reset(); }
  void close_with_reset();
  int fd() const { return fd_.get(); }
  void buffer_sizes(int bytes);

 private:
  bool fill();
  base::UniqueFd fd_;
  std::string pending_, ending_;
};

/// Runs `serve` on its own thread for each connection that it accepts.
class Callee {
 public:
  using Serve = std::function<void(Peer&)>;
  explicit Callee(Serve serve, int buffer_bytes = 0);
  ~Callee();
  std::uint16_t port() const { return port_; }
  int accepted() const { return accepted_; }

 private:
  void accept_all();
  Serve serve_;
  int buffer_bytes_;
  base::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

/// An HTTP callee: answers each request by `answer` and remembers it.
class HttpCallee {
 public:
  using Answer = std::function<std::string(const std::string& request)>;
  explicit HttpCallee(Answer answer = {});
  std::uint16_t port() const { return callee_.port(); }
  int accepted() const { return callee_.accepted(); }
  std::vector<std::string> requests() const;

 private:
  Answer answer_;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  Callee callee_;
};

std::string ok_response(const std::string& body, const std::string& headers = "");
std::string post(const std::string& path, const std::string& body);
std::string get(const std::string& path);

struct RigOptions {
  scenarios::Protocol protocol = scenarios::Protocol::http;
  std::vector<Fault> faults = {};
  int buffer_bytes = 0;  ///< of the proxy's kernel sockets; 0: the system's
  std::vector<std::uint16_t> dead_ports_first = {};
  bool later_never_comes = false;  ///< what the detour wants done later is not done
};

Fault link_fault(const std::string& kind, const std::string& operation, const std::string& resource,
                 std::uint32_t occurrence, Value params = Value::object());

class Rig {
 public:
  Rig(std::uint16_t callee_port, RigOptions options);
  ~Rig();

  Peer dial() const { return Peer::dial(port_); }
  std::uint16_t port() const { return port_; }

  /// Waits until `count` events of the kind are there; fails the test, naming what is missing, when they do not come.
  std::vector<Event> await_events(const std::string& kind, std::size_t count);
  std::vector<Event> events(const std::string& kind) const;
  std::vector<Event> all_events() const;
  void stop();
  /// Whether the event loop waits for something to happen: a loop that spins never does.
  bool loop_sleeps() const;

  Activity activity;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<SiteBook> sites;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  boost::asio::io_context io_;
  scenarios::Link link_;
  EngineHost engine_;
  std::unique_ptr<Detour> detour_;
  std::unique_ptr<LinkProxy> proxy_;
  std::uint16_t port_ = 0;
  std::atomic<pid_t> loop_{0};
  std::thread thread_;
};

/// A listening loopback socket on a free port, and the port.
std::pair<base::UniqueFd, std::uint16_t> listen_on_loopback(int buffer_bytes = 0);
/// A port that nobody listens on.
std::uint16_t dead_port();

/// Polls until `true_now`; false after 5 s.
bool eventually(const std::function<bool()>& true_now);

}  // namespace leafcutter::node
