// Sets up the interfaces of the calling thread's network, over rtnetlink (RFC 3549).
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace leafcutter::node {

/// Brings `lo` up and adds each address, of IPv4 or IPv6, with its longest prefix, so that no other becomes local.
base::Status configure_loopback(const std::vector<std::string>& addresses);

/// A virtual cable from interface `name` here to interface `peer` in another network (a descriptor of its namespace).
/// Both ends have one link-layer address and ask for none: what is sent into one end arrives at the other, of either
/// family and for whatever destination.
base::Status add_cable(const std::string& name, const std::string& peer, int peer_network);

/// Brings `interface` up and sends what is for `destination`/`prefix` over it, from address `source` (empty: any).
base::Status add_route(const std::string& interface, const std::string& destination, unsigned char prefix,
                       const std::string& source);

/// What is for `destination`/`prefix` has no route, whatever a wider one says.
base::Status forbid_route(const std::string& destination, unsigned char prefix);

/// Makes every address of the family of `any` ("0.0.0.0", "::") local that has no route of its own.
base::Status make_all_local(const std::string& any);

/// Waits until the kernel has noticed that both ends of a cable are up (RFC 2863 operational state). Until then it
/// drops what is sent, and a first connection would hang for the second that TCP takes to try again.
base::Status await_operational(const std::string& interface);

}  // namespace leafcutter::node
