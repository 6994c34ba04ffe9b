// The workload's side of a conversation: one HTTP request or one raw exchange on a connection of its own, in the
// network of the calling thread, within a deadline.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace leafcutter::node {

using Deadline = std::chrono::steady_clock::time_point;
using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

struct HttpCall {
  std::string method = "GET", target, host;
  std::map<std::string, std::string> headers;
  std::string body;
};

struct HttpReply {
  unsigned status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// Tries the endpoints in order, then asks once. Errors: io (refused, reset, ...), timeout, protocol (no HTTP came
/// back).
base::Expected<HttpReply> http_call(const Endpoints& endpoints, const HttpCall& call, Deadline deadline);

/// Sends, then reads until `until` (RE2) matches what has come, or until the peer closes when it is empty.
base::Expected<std::string> tcp_exchange(const Endpoints& endpoints, const std::string& send, const std::string& until,
                                         Deadline deadline);

/// Connects and closes.
base::Status tcp_connect(const Endpoints& endpoints, Deadline deadline);

/// 127.0.0.1, the service's own address, ::1, its own address of IPv6: where a service may be listening, seen from
/// inside its network.
Endpoints local_endpoints(const std::string& address, std::uint16_t port);

}  // namespace leafcutter::node
