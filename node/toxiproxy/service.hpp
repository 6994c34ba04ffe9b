// Toxiproxy's interface, an engine under it and a server before it: everything that `leafcutter proxy --toxiproxy` is.
#pragma once

#include <memory>
#include <string>

#include "node/proxy/engine.hpp"
#include "node/toxiproxy/server.hpp"

namespace leafcutter::node::toxiproxy {

struct ServiceOptions {
  ServerOptions server;
  std::string token;   ///< empty: none; then `server.address` must be loopback
  std::string config;  ///< the text of a file of proxies, as POST /populate takes it; empty: none
  proxy::EngineOptions engine;
};

class Service {
 public:
  /// When it returns, every proxy of the configuration listens and requests are answered. `notes`: what in the
  /// configuration does nothing.
  static base::Expected<std::unique_ptr<Service>> start(ServiceOptions options, Notes& notes);
  ~Service();

  const std::string& address() const;
  proxy::Engine& engine();
  /// As they were when the service began; afterwards the server's thread has them.
  const std::map<std::string, Proxy>& first_proxies() const;

 private:
  Service();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leafcutter::node::toxiproxy
