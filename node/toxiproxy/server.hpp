// An HTTP/1.1 server on one thread of its own: bounded bodies, headers, connections and times. What a request means is
// the handler's.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "node/toxiproxy/api.hpp"

namespace leafcutter::node::toxiproxy {

struct ServerOptions {
  std::string address = "127.0.0.1:8474";  ///< port 0 takes a free one
  std::size_t connections = 256;           ///< beyond that the one idle longest makes room, or a new one waits
  std::size_t header_bytes = 16 << 10;
  std::size_t body_bytes = 1 << 20;
  std::chrono::milliseconds read_time{15'000};  ///< for a request to arrive whole
  std::chrono::milliseconds idle_time{60'000};  ///< between requests
  std::chrono::milliseconds write_time{30'000};
  std::chrono::milliseconds prepare_time{20'000};  ///< for what has to be known before a request is handled
};

/// Whether the address names this host's loopback and nothing else.
bool is_loopback(const std::string& address);

class Server {
 public:
  /// Called on the server's thread, one request at a time.
  using Handler = std::function<HttpReply(const HttpRequest&)>;
  /// Called before the handler, on the same thread: finds out what the handler will need and must not wait for, and
  /// calls `ready` when it is there, on any thread and as long as the server lives. Other requests are answered
  /// meanwhile. When it takes longer than the options say, the handler has to do without.
  using Prepare = std::function<void(const HttpRequest&, std::function<void()> ready)>;

  static base::Expected<std::unique_ptr<Server>> start(const ServerOptions& options, Handler handler,
                                                       Prepare prepare = {});
  ~Server();  ///< stops
  /// Closes every connection; nothing is handled or prepared any more.
  void stop();

  /// As listened on, "127.0.0.1:8474".
  const std::string& address() const;

 private:
  Server();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leafcutter::node::toxiproxy
