// Toxiproxy's interface as a client sees it: a service on a free port, and HTTP spoken to it over a real socket.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../proxy/loopback.hpp"
#include "node/toxiproxy/service.hpp"

namespace leafcutter::node::toxiproxy {

/// An upstream as the wire contract's own examples have it; nobody listens there.
inline const std::string upstream_text = "localhost:20001";

using namespace std::chrono_literals;
using proxy::eventually;
using proxy::Peer;
using proxy::Upstream;
using TestJson = nlohmann::ordered_json;

struct Reply {
  int status = 0;
  std::multimap<std::string, std::string> headers;  ///< names in lower case
  std::string body;

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  /// Fails the test when it is none.
  TestJson json() const;
};

/// Sends `bytes` as they are and reads until the server ends the connection.
Reply talk(const std::string& address, const std::string& bytes);

/// How the connection ends; "too late: ..." when that takes so long that the deadline of an upstream may have ended it.
std::string ending_soon(Peer& peer);

class ApiRig {
 public:
  explicit ApiRig(ServiceOptions options = {});

  Reply call(const std::string& method, const std::string& target, const std::string& body = {},
             const std::vector<std::string>& headers = {}) const;
  /// Fails the test when the status is another.
  Reply expect(int status, const std::string& method, const std::string& target, const std::string& body = {}) const;

  /// Creates a proxy to that upstream on a free port; its address.
  std::string proxy(const std::string& name, const std::string& upstream) const;
  /// Adds a toxic; `attributes` and `more` are JSON members.
  void toxic(const std::string& proxy, const std::string& type, const std::string& attributes,
             const std::string& more = {}) const;
  void remove_toxic(const std::string& proxy, const std::string& toxic) const;
  proxy::LinkStats stats(const std::string& name) const { return *service->engine().stats(name); }
  const std::string& address() const { return service->address(); }

  std::unique_ptr<Service> service;
};

/// Members of a JSON object.
std::string proxy_json(const std::string& name, const std::string& listen, const std::string& upstream,
                       const std::string& more = {});

/// Whether somebody accepts there.
bool listens(const std::string& address);

/// Errors are JSON, and are said to be text.
void expect_error(const Reply& reply, int status, const std::string& message);
void expect_json(const Reply& reply, int status);

}  // namespace leafcutter::node::toxiproxy
