// Toxiproxy's HTTP interface (version 2.12): a request and the book of proxies become a reply, and what the engine is
// told on the way. Knows HTTP's words, but no socket.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "http/message.hpp"
#include "node/proxy/event.hpp"
#include "node/proxy/socket_address.hpp"
#include "node/toxiproxy/book.hpp"

namespace leafcutter::node::toxiproxy {

/// What we answer GET /version with: the version whose interface this is.
constexpr const char* compatible_version = "2.12.0";

/// The engine, as far as the interface has to do with it.
class Links {
 public:
  virtual ~Links() = default;
  virtual base::Expected<std::string> perform(const Operation& operation) = 0;
  virtual proxy::EngineStats stats() const = 0;
  /// Connections of a proxy; 0 when it has no link.
  virtual std::uint64_t accepted(const std::string& proxy) const = 0;
};

struct ApiStats {
  std::array<std::uint64_t, 6> replies{};  ///< by the first digit of their status
};

class Api {
 public:
  /// `token`: what `Authorization: Bearer` must say; empty: nobody is asked. `identity` makes request ids differ from
  /// those of other processes.
  Api(Links& links, std::string token, std::uint64_t identity);

  http::Reply answer(const http::Request& request);
  /// Names that proxies may come to listen on by this request; their addresses are to be known before it is answered.
  std::vector<proxy::HostPort> names_wanted(const http::Request& request) const;
  std::vector<proxy::HostPort> names_wanted(std::string_view json) const;
  /// The same as POST /populate, for a file, which may also be what GET /proxies once answered.
  base::Status populate(std::string_view json, Notes& notes);
  const Book& book() const { return book_; }

 private:
  bool is_allowed(const http::Request& request) const;
  http::Reply route(const http::Request& request);
  http::Reply on_proxies(const http::Request& request);
  http::Reply on_proxy(const http::Request& request, const std::string& name);
  http::Reply on_toxics(const http::Request& request, const Proxy& proxy);
  http::Reply on_toxic(const http::Request& request, const Proxy& proxy, const std::string& name);
  http::Reply on_populate(const http::Request& request);
  http::Reply on_reset();
  /// The reply's body is written when it has been done.
  template <class Body>
  http::Reply carry_out(const base::Expected<Change>& change, unsigned status, Body body);
  std::string next_request_id();
  CountAccepted counter() const;

  Links& links_;
  std::string token_;
  std::uint64_t identity_, requests_ = 0;
  Book book_;
  ApiStats stats_;
  Notes notes_;  ///< of the request that is being answered
};

}  // namespace leafcutter::node::toxiproxy
