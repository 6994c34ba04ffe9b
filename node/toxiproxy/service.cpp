#include "node/toxiproxy/service.hpp"

#include <chrono>

#include <unistd.h>

#include "base/random.hpp"
#include "node/proxy/socket_address.hpp"
#include "node/toxiproxy/engine_links.hpp"
#include "node/toxiproxy/token.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

/// Makes request ids of two processes differ; decides nothing.
std::uint64_t identity_of_process() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return base::split_mix(static_cast<std::uint64_t>(now)) ^ base::split_mix(static_cast<std::uint64_t>(::getpid()));
}

}  // namespace

struct Service::State {
  std::unique_ptr<proxy::Engine> engine;
  std::unique_ptr<EngineLinks> links;
  std::unique_ptr<Api> api;
  std::map<std::string, Proxy> first_proxies;
  std::unique_ptr<Server> server;  ///< ends first
};

Service::Service() : state_(std::make_unique<State>()) {}
Service::~Service() = default;

base::Expected<std::unique_ptr<Service>> Service::start(ServiceOptions options, Notes& notes) {
  if (const auto address = proxy::parse_host_port(options.server.address, "--toxiproxy"); !address)
    return address.error();
  if (options.token.empty() && !is_loopback(options.server.address))
    return base::Error{base::ErrorCode::bad_input,
                       "whoever reaches " + options.server.address +
                           " could redirect and break every connection through the proxies: an address outside of "
                           "loopback needs a token, in the file that --toxiproxy-token-file names or in " +
                           token_variable + "; 127.0.0.1:8474 needs none",
                       {"--toxiproxy", 0, 0}};
  std::unique_ptr<Service> service(new Service());
  auto& state = *service->state_;
  auto engine = proxy::Engine::start(std::move(options.engine));
  if (!engine) return engine.error();
  state.engine = std::move(*engine);
  state.links = std::make_unique<EngineLinks>(*state.engine);
  state.api = std::make_unique<Api>(*state.links, options.token, identity_of_process());
  if (options.config) {
    if (const auto populated = state.api->populate(*options.config, notes); !populated) {
      auto error = populated.error();
      error.where.file = options.config_file;
      return error;
    }
  }
  state.first_proxies = state.api->book().proxies();
  auto server = Server::start(options.server, [&api = *state.api](const HttpRequest& one) { return api.answer(one); });
  if (!server) return server.error();
  state.server = std::move(*server);
  return service;
}

const std::string& Service::address() const { return state_->server->address(); }
proxy::Engine& Service::engine() { return *state_->engine; }
const std::map<std::string, Proxy>& Service::first_proxies() const { return state_->first_proxies; }

}  // namespace leafcutter::node::toxiproxy
