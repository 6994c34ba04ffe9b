// The networks of a leaf: one namespace for each service and one for the workload, joined by nothing but the sockets
// that the runner opens in them. What a service dials arrives in an anteroom of its own, a further namespace where
// every other address is local and nobody but the links listens: so a dial ends at a link or is refused, and a service
// may use the very port that it dials elsewhere. Who has no links has the same in common with the others like it, where
// nobody listens at all. What was meant for the world outside of the leaf is seen where it is refused.
#pragma once

#include <sys/socket.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "scenarios/model.hpp"

namespace leafcutter::node {

/// Moves the calling thread into a network and back. The way back cannot fail while we hold the descriptor: a thread
/// that stayed in a wrong network would make wrong observations, so the process ends instead.
class EnterNetwork {
 public:
  EnterNetwork(int network, int home);
  EnterNetwork(const EnterNetwork&) = delete;
  EnterNetwork& operator=(const EnterNetwork&) = delete;
  ~EnterNetwork();

  base::Status status() const;

 private:
  int home_;
  int error_ = 0;
};

/// "10.77.0.1" for the first service and so on; "10.77.0.200" for the workload.
std::map<std::string, std::string> service_addresses(const scenarios::Scenario& scenario);

/// Whether this kernel has it.
bool has_ipv6();

/// The IPv6 address of who has this one: "fd77::2" for "10.77.0.2". Names in hosts files resolve to the other alone.
std::string ipv6_address(const std::string& address);

/// Where what is sent out of the leaf can be seen: a packet socket that hears nothing else.
struct EgressTap {
  base::UniqueFd socket;             ///< non-blocking; packets begin with their IP header
  std::map<int, std::string> lanes;  ///< who sends, by the index of the interface it arrives at
};

class Network {
 public:
  /// Called while the process has a single thread; afterwards that thread is in the workload's network, which every
  /// later thread inherits. Errors: unavailable.
  /// `between`: with one further network, where nobody is but who opens sockets in it.
  static base::Expected<Network> create(const scenarios::Scenario& scenario, bool between);

  /// The namespace of a service or of the workload.
  int of(const std::string& lane) const;
  int home() const { return of(scenarios::workload_lane); }

  /// "10.77.0.2" of a service, "10.77.0.200" of the workload.
  const std::string& address(const std::string& lane) const { return addresses_.at(lane); }
  const std::map<std::string, std::string>& addresses() const { return addresses_; }

  /// Listeners of a way out: where its caller dials the destination, which has this address in the leaf.
  base::Expected<std::vector<base::UniqueFd>> listen(const scenarios::WayOut& way, const std::string& to) const;

  /// One tap for each family and place where dials are refused.
  base::Expected<std::vector<EgressTap>> tap_egress() const;

  /// A fresh non-blocking TCP socket there.
  base::Expected<base::UniqueFd> open_socket(const std::string& lane, int family) const;

  /// A fresh non-blocking IPv4 TCP socket in the network between the others.
  base::Expected<base::UniqueFd> open_between() const { return open_socket(between_lane, AF_INET); }

  /// A fresh non-blocking UDP socket there, connected to the port, on the address that somebody has it on.
  base::Expected<base::UniqueFd> dial_datagrams(const std::string& lane, std::uint16_t port) const;

  /// Listeners of a link (of UDP: bound sockets): on the callee's addresses, in the caller's anteroom (the workload
  /// needs none), and on the loopback addresses of the caller for dials that have "localhost" hard-coded, unless it or
  /// an earlier link uses that port there.
  base::Expected<std::vector<base::UniqueFd>> listen(const scenarios::Scenario& scenario,
                                                     const scenarios::Link& link) const;

 private:
  static constexpr const char* between_lane = "(between)";  ///< no service has such a name

  base::Status add_between();
  base::Status add_service(const std::string& service, bool dials);
  base::Status add_workload(bool dials_out);
  base::Status add_outside();
  base::Status connect_anteroom(const std::string& service, int own);
  /// From network `own`, in which the thread is, to `beyond`; what is in no other route goes there.
  base::Status connect(const std::string& lane, int own, int beyond, const std::string& far_end);
  base::Status await_cables() const;

  std::map<std::string, base::UniqueFd> namespaces_;
  std::map<std::string, base::UniqueFd> anterooms_;  ///< of services that dial
  base::UniqueFd outside_;                           ///< the one for all others and the workload
  std::map<std::string, std::string> addresses_;
  struct CableEnd {
    int network = -1;
    std::string interface;
    std::string lane;  ///< whose sendings arrive at it; empty: the near end
    int index = 0;
  };
  std::vector<CableEnd> ends_;
};

}  // namespace leafcutter::node
