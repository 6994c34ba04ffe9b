// Names to addresses on a thread of its own, because getaddrinfo blocks. Answers are kept for a second, so that many
// new connections ask once.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::proxy {

class Resolver {
 public:
  using Addresses = base::Expected<std::vector<SocketAddress>>;
  using Answer = std::function<void(const Addresses&)>;

  Resolver() = default;
  ~Resolver();

  /// Calls `answer` once: on this thread when the answer is known, otherwise on the resolver's.
  void resolve(const HostPort& host, Answer answer);

 private:
  struct Question {
    HostPort host;
    Answer answer;
  };
  struct Known {
    Addresses addresses;
    std::chrono::steady_clock::time_point until;
  };

  void run();
  const Known* known(const std::string& key);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Question> questions_;
  std::map<std::string, Known> known_;
  bool ending_ = false;
  std::thread thread_;  ///< started with the first question
};

}  // namespace leafcutter::node::proxy
