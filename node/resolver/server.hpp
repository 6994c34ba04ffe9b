// The resolver on its sockets: UDP and TCP, for one service of a leaf. Handed sockets that already live in the
// service's network; knows nothing of namespaces.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <vector>

#include "base/unique_fd.hpp"
#include "node/observe/activity.hpp"
#include "node/resolver/lookups.hpp"

namespace leafcutter::node::resolver {

struct ServerSockets {
  std::vector<base::UniqueFd> datagrams;  ///< bound, non-blocking, of IPv4
  std::vector<base::UniqueFd> streams;    ///< listening, non-blocking, of IPv4
};

/// Runs on `io` alone. Bounds: so many connections at a time (more wait in the listener's queue), which are closed when
/// nothing comes for a while, and so many answers that wait (a query beyond that is not answered).
class Server {
 public:
  static constexpr std::size_t most_connections = 64, most_waiting = 1024;
  static constexpr std::chrono::seconds idle{60};

  Server(boost::asio::io_context& io, Activity& activity, Lookups lookups, ServerSockets sockets);
  ~Server();

  /// To be called on `io`'s thread, or before it runs.
  void start();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leafcutter::node::resolver
