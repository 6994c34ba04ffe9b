// The network fault engine in a program of your own: a proxy in front of a server, which faults come and go while
// connections are open. Usage: embed UPSTREAM, for example: embed localhost:6379
//
// It listens on a free port and reads commands: "slow", "cut", "heal". At the end of its input it says what happened.
#include <cstdio>
#include <iostream>
#include <string>

#include "node/proxy/engine.hpp"

namespace proxy = leafcutter::node::proxy;
using namespace std::chrono_literals;

namespace {

/// What a command means: a set of faults, each with whom and what it strikes.
proxy::FaultSet faults_for(const std::string& command) {
  proxy::FaultSet set;
  set.phase = command;
  if (command == "slow") {
    proxy::Fault latency{"far", {}, proxy::Latency{proxy::NormalTime{50ms, 5ms}}};
    latency.selector.flow = proxy::Flow::to_client;
    set.faults.push_back(latency);
  } else if (command == "cut") {
    proxy::Fault cut{"cut", {}, proxy::Cut{{}, 100, proxy::Ending::reset}};
    cut.selector.probability = 0.5;
    set.faults.push_back(cut);
  }
  return set;
}

/// On a thread of the engine's own; the bytes do not wait for it.
void say(const proxy::Event& event) {
  if (event.kind != proxy::EventKind::struck) return;
  std::printf("%.*s struck connection %llu\n", static_cast<int>(event.fault.size()), event.fault.data(),
              static_cast<unsigned long long>(event.connection));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: embed UPSTREAM\n"), 2;
  proxy::EngineOptions options;
  options.seed = 42;  // the same decisions every time
  options.hook = say;
  auto engine = proxy::Engine::start(options);
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().text().c_str()), 1;

  proxy::LinkConfig link;
  link.name = "server";
  link.listen = "127.0.0.1:0";
  link.upstream = argv[1];
  const auto address = (*engine)->add_link(std::move(link));
  if (!address) return std::fprintf(stderr, "%s\n", address.error().text().c_str()), 1;
  std::printf("listening on %s\n", address->c_str());
  std::fflush(stdout);

  for (std::string command; std::getline(std::cin, command);) {
    // In force on open connections, too, when it returns.
    if (const auto set = (*engine)->set_faults("server", faults_for(command)); !set)
      std::fprintf(stderr, "%s\n", set.error().text().c_str());
    std::printf("%s\n", command.c_str());
    std::fflush(stdout);
  }
  (*engine)->flush_events();
  const auto stats = (*engine)->stats("server");
  if (stats)
    std::printf("%llu connections, %llu strikes\n", static_cast<unsigned long long>(stats->accepted),
                static_cast<unsigned long long>(stats->strikes));
  return 0;
}
