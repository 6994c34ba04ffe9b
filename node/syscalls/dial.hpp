// Which connect() begins a connection: one of a fresh TCP socket to an address. Asking how far an earlier one has come,
// taking a peer away and naming a datagram socket's peer are none.
#pragma once

#include <linux/seccomp.h>

#include <string>

#include "node/syscalls/target.hpp"

namespace leafcutter::node {

/// The address that the call, a connect(), is about to dial: "10.77.0.2:7002", "[::1]:80". Empty: it dials nothing, or
/// that could not be found out. IPv4 in IPv6 is IPv4, and the address of no host the loopback one, as the kernel has
/// it.
std::string dialled_address(const seccomp_data& call, const Target& target);

/// Whether this kernel lets a process look at another one's calls, which it may do anywhere or nowhere.
bool calls_can_be_watched();

}  // namespace leafcutter::node
