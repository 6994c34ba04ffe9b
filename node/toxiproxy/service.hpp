// Toxiproxy's interface, an engine under it and a server before it: everything that `leafcutter proxy --toxiproxy` is.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http/server.hpp"
#include "node/proxy/engine.hpp"
#include "node/proxy/resolver.hpp"
#include "node/toxiproxy/book.hpp"

namespace leafcutter::node::toxiproxy {

constexpr const char* token_variable = "LEAFCUTTER_TOXIPROXY_TOKEN";

/// Whether the address names this host's loopback and nothing else.
bool is_loopback(const std::string& address);

struct ServiceOptions {
  std::string address = "127.0.0.1:8474";  ///< port 0 takes a free one
  http::ServerOptions server;
  std::string token;                  ///< empty: none; then `address` must be loopback
  std::optional<std::string> config;  ///< proxies, as POST /populate takes them
  std::string config_file;            ///< where `config` comes from, for errors
  proxy::EngineOptions engine;
  proxy::Resolver::Lookup lookup = proxy::resolve_host;  ///< of names that proxies listen on
};

class Service {
 public:
  /// When it returns, every proxy of the configuration listens and requests are answered. `notes`: what in the
  /// configuration does nothing.
  static base::Expected<std::unique_ptr<Service>> start(ServiceOptions options, Notes& notes);
  ~Service();

  /// As listened on, "127.0.0.1:8474".
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
