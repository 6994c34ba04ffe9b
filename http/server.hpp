// An HTTP/1.1 server on one thread of its own: bounded bodies, headers, connections and times. What a request means is
// the handler's.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "http/message.hpp"

namespace leafcutter::http {

struct ServerOptions {
  std::size_t connections = 256;  ///< beyond that the one idle longest makes room, or a new one waits
  std::size_t header_bytes = 16 << 10;
  std::size_t body_bytes = 1 << 20;
  std::chrono::milliseconds read_time{15'000};  ///< for a request to arrive whole
  std::chrono::milliseconds idle_time{60'000};  ///< between requests
  std::chrono::milliseconds write_time{30'000};
  std::chrono::milliseconds prepare_time{20'000};  ///< for what has to be known before a request is handled
  /// What is said to bytes that are no request, and when a handler fails.
  std::function<Reply(unsigned status, const std::string& why)> complaint = plain_complaint;

  static Reply plain_complaint(unsigned status, const std::string& why);
};

class Server {
 public:
  /// Called on the server's thread, one request at a time.
  using Handler = std::function<Reply(const Request&)>;
  /// Called before the handler, on the same thread: finds out what the handler will need and must not wait for, and
  /// calls `ready` when it is there, on any thread and as long as the server lives. Other requests are answered
  /// meanwhile. When it takes longer than the options say, the handler has to do without.
  using Prepare = std::function<void(const Request&, std::function<void()> ready)>;

  /// `listener`: a TCP socket that listens.
  static base::Expected<std::unique_ptr<Server>> start(base::UniqueFd listener, const ServerOptions& options,
                                                       Handler handler, Prepare prepare = {});
  ~Server();  ///< stops
  /// Closes every connection; nothing is handled or prepared any more.
  void stop();

 private:
  Server();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leafcutter::http
