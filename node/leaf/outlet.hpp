// The way out of a leaf: a small process of ours that stays in the host's network and hands the leaf's runner, and
// nobody else, sockets that live there. It exists only for scenarios that let something out, and ends with the leaf.
// The runner dials on them what the scenario allows (its list is checked at load and is the only thing that listens for
// services); services hold neither the channel nor such a socket.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node {

/// The leaf's end. To be used on one thread.
class Outlet {
 public:
  /// How long a name may take to be looked up.
  static constexpr std::chrono::seconds patience{10};
  static constexpr std::size_t most_addresses = 8;  ///< of a name

  Outlet() = default;
  explicit Outlet(base::UniqueFd channel);

  /// The addresses of a name (or address) as the host knows it now. Errors: unavailable, timeout.
  base::Expected<std::vector<std::string>> look_up(const std::string& host);

  /// A fresh, unconnected, non-blocking TCP socket in the host's network. Errors: unavailable.
  base::Expected<base::UniqueFd> open_socket(int family);

 private:
  base::UniqueFd channel_;
};

/// Both ends of a channel: the leaf's, the outlet's.
base::Expected<std::pair<base::UniqueFd, base::UniqueFd>> outlet_channel();

/// The process: answers until the leaf has gone.
void run_outlet(base::UniqueFd channel);

}  // namespace leafcutter::node
