// The proxy of one link: accepts what the caller dials, brings it to the callee, and carries out the link faults of the
// plan. It is handed sockets that already live in the right network namespaces and knows nothing of namespaces itself.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "node/observe/activity.hpp"
#include "node/observe/recorder.hpp"
#include "node/observe/site_book.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

class Detour;
class Dials;

/// Everything a proxy works with; the references outlive it.
struct ProxyContext {
  boost::asio::io_context& io;
  Recorder& recorder;
  SiteBook& sites;
  Activity& activity;
  Detour* detour = nullptr;  ///< for faults of a connection's bytes; none: the plan has no such fault
  Dials* dials = nullptr;    ///< for faults of what is dialled; none: the plan has no such fault on this link
  /// Begins the partition that strikes at a connection; in force when it returns.
  std::function<void(const SiteBook::Strike&, Value when)> part = {};
  Recorder::Clock clock = {};  ///< the recorder's, for `started_ms`; empty: counted from the proxy's construction
};

class LinkProxy {
 public:
  /// A fresh, unconnected, non-blocking TCP socket of the given family (AF_INET, AF_INET6) in the callee's network.
  using OpenSocket = std::function<base::Expected<base::UniqueFd>(int family)>;

  /// `listeners` are bound and listening in the caller's network. `upstream` are tried in order for each connection
  /// (127.0.0.1 first, then the service's own address, then ::1).
  LinkProxy(ProxyContext context, scenarios::Link link, std::vector<base::UniqueFd> listeners, OpenSocket open_socket,
            std::vector<boost::asio::ip::tcp::endpoint> upstream);
  ~LinkProxy();

  /// Starts accepting. Runs on `io` alone: to be called on its thread, or before it runs.
  void start();

  /// What dials the link gets no answer, as if the packets were lost, until this is called with false as often as with
  /// true. On `io`'s thread.
  base::Status lose_connects(bool lose);
  /// How many attempts were lost so far (a caller's kernel tries again by itself).
  std::uint64_t lost_connects() const;

  const std::string& lane() const;

  /// Closes every connection and listener at once, without events. On `io`'s thread, or when it does not run any more.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leafcutter::node
