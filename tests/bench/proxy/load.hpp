// The two ends between which a proxy is measured: an upstream that echoes or swallows, and the clients.
#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace leafcutter::bench_proxy {

sockaddr_in loopback(std::uint16_t port);

/// A process of its own that serves until it is killed with its parent: byte 'E' first: echoes; 'S': swallows up to the
/// end and answers with one byte. Exits the bench when it cannot start.
std::uint16_t serve_upstream();

double bulk_megabytes_per_second(std::uint16_t port, std::uint64_t bytes);
/// Connections that carried one byte there and back, `at_once` at a time.
double connections_per_second(std::uint16_t port, int at_once, double seconds);
/// Of a 64-byte echo on one connection, in microseconds.
double echo_median_us(std::uint16_t port, int rounds);
/// False until something accepts there.
bool answers(std::uint16_t port);
std::uint16_t free_port();

}  // namespace leafcutter::bench_proxy
