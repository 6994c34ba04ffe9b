// Names to addresses on threads of their own, because getaddrinfo blocks, for as long as name servers are silent. Each
// name is asked for once at a time, so that a slow one keeps others waiting only when there are as many of them as
// threads. Answers are kept for a second, so that many new connections ask once.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "node/proxy/socket_address.hpp"

namespace leafcutter::node::proxy {

class Resolver {
 public:
  using Addresses = base::Expected<std::vector<SocketAddress>>;
  using Answer = std::function<void(const Addresses&)>;
  /// Blocks; called on the resolver's threads.
  using Lookup = std::function<Addresses(const HostPort&)>;

  /// So many names can be slow before others wait for them.
  static constexpr std::size_t most_lookups = 16;

  explicit Resolver(Lookup lookup = resolve_host);
  /// Calls no answer any more when it returns. It does not wait for lookups: those that are under way end by
  /// themselves, and what they found is forgotten.
  ~Resolver();

  /// Calls `answer` once: on this thread when the answer is known, otherwise on one of the resolver's.
  void resolve(const HostPort& host, Answer answer);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leafcutter::node::proxy
