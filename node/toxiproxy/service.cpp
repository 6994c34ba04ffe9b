#include "node/toxiproxy/service.hpp"

#include <unistd.h>

#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <chrono>

#include "base/random.hpp"
#include "node/proxy/socket_address.hpp"
#include "node/toxiproxy/engine_links.hpp"
#include "node/toxiproxy/render.hpp"

namespace leafcutter::node::toxiproxy {
namespace {

/// Makes request ids of two processes differ; decides nothing.
std::uint64_t identity_of_process() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return base::split_mix(static_cast<std::uint64_t>(now)) ^ base::split_mix(static_cast<std::uint64_t>(::getpid()));
}

base::Expected<base::UniqueFd> listener_on(const std::string& address) {
  const auto parsed = proxy::parse_host_port(address, "--toxiproxy");
  if (!parsed) return parsed.error();
  const auto addresses = proxy::resolve_host(*parsed);
  if (!addresses) return addresses.error();
  return proxy::open_listener(addresses->front(), SOCK_STREAM);
}

}  // namespace

bool is_loopback(const std::string& address) {
  const auto parsed = proxy::parse_host_port(address, "address");
  if (!parsed) return false;
  if (parsed->host == "localhost") return true;
  boost::system::error_code error;
  const auto ip = boost::asio::ip::make_address(parsed->host, error);
  return !error && ip.is_loopback();
}

struct Service::State {
  std::unique_ptr<proxy::Engine> engine;
  std::unique_ptr<EngineLinks> links;
  std::unique_ptr<Api> api;
  std::map<std::string, Proxy> first_proxies;
  std::string address;
  std::unique_ptr<http::Server> server;       ///< has stopped by then
  std::unique_ptr<proxy::Resolver> resolver;  ///< ends first: it answers to the server

  void prepare(const http::Request& request, std::function<void()> ready);
};

/// Finds the addresses of names beside the thread that answers requests.
void Service::State::prepare(const http::Request& request, std::function<void()> ready) {
  const auto names = api->names_wanted(request);
  if (names.empty()) return ready();
  const auto left = std::make_shared<std::atomic<std::size_t>>(names.size());
  for (const auto& name : names)
    resolver->resolve(name, [this, name, left, ready](const proxy::Resolver::Addresses& addresses) {
      links->remember(name, addresses);
      if (--*left == 0) ready();
    });
}

Service::Service() : state_(std::make_unique<State>()) {}
Service::~Service() {
  if (state_->server) state_->server->stop();
}

base::Expected<std::unique_ptr<Service>> Service::start(ServiceOptions options, Notes& notes) {
  if (const auto address = proxy::parse_host_port(options.address, "--toxiproxy"); !address) return address.error();
  if (options.token.empty() && !is_loopback(options.address))
    return base::Error{base::ErrorCode::bad_input,
                       "whoever reaches " + options.address +
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
    // Nobody else is kept waiting yet.
    for (const auto& name : state.api->names_wanted(*options.config)) state.links->remember(name, options.lookup(name));
    if (const auto populated = state.api->populate(*options.config, notes); !populated) {
      auto error = populated.error();
      error.where.file = options.config_file;
      return error;
    }
  }
  state.resolver = std::make_unique<proxy::Resolver>(std::move(options.lookup));
  state.first_proxies = state.api->book().proxies();
  auto listener = listener_on(options.address);
  if (!listener) return listener.error();
  state.address = proxy::local_address(listener->get()).text();
  options.server.complaint = [](unsigned status, const std::string& why) {
    return http::Reply{status, {{"Content-Type", "text/plain; charset=utf-8"}}, json_of_error(why, status) + "\n"};
  };
  auto server = http::Server::start(
      std::move(*listener), options.server, [&api = *state.api](const http::Request& one) { return api.answer(one); },
      [&state](const http::Request& one, std::function<void()> ready) { state.prepare(one, std::move(ready)); });
  if (!server) return server.error();
  state.server = std::move(*server);
  return service;
}

const std::string& Service::address() const { return state_->address; }
proxy::Engine& Service::engine() { return *state_->engine; }
const std::map<std::string, Proxy>& Service::first_proxies() const { return state_->first_proxies; }

}  // namespace leafcutter::node::toxiproxy
