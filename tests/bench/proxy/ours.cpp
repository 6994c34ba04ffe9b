#include "ours.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "node/proxy/engine.hpp"

namespace leafcutter::bench_proxy {
namespace {

namespace proxy = node::proxy;
constexpr auto plain = "leafcutter", copying = "leafcutter, no splice", delayed = "leafcutter, latency 10 ms",
               limited = "leafcutter, bandwidth 200 MB/s";

}  // namespace

std::vector<std::string> our_modes() { return {plain, copying, delayed, limited}; }

void serve_ours(const std::string& mode, std::uint16_t listen, std::uint16_t upstream) {
  proxy::EngineOptions options;
  options.splice = mode != copying;
  options.threads = std::max(1U, std::thread::hardware_concurrency());  // as haproxy and nginx have them
  auto engine = proxy::Engine::start(options);
  if (!engine) ::_exit(2);
  proxy::LinkConfig link;
  link.name = "bench";
  link.listen = "127.0.0.1:" + std::to_string(listen);
  link.upstream = "127.0.0.1:" + std::to_string(upstream);
  if (mode == delayed) link.faults.faults = {{"", {}, proxy::Latency{proxy::FixedTime{std::chrono::milliseconds(10)}}}};
  if (mode == limited) link.faults.faults = {{"", {}, proxy::Bandwidth{200'000'000}}};
  const auto added = (*engine)->add_link(std::move(link));
  if (!added) {
    std::fprintf(stderr, "%s\n", added.error().text().c_str());
    ::_exit(2);
  }
  ::pause();
}

}  // namespace leafcutter::bench_proxy
