// Two ends of a transport for tests: a door with somebody behind it who answers, and callers.
#pragma once

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/system.hpp"
#include "actors/transport/transport.hpp"
#include "tests/actors/authority.hpp"

namespace leafcutter::tests {

/// What the one behind the door has heard.
struct Heard {
  std::mutex mutex;
  std::optional<caf::node_id> from;
};

inline caf::behavior doorman_of_tests(caf::event_based_actor* self, const std::shared_ptr<Heard>& heard) {
  return {[=](actors::watch_atom, const std::string& text) {
    const std::lock_guard lock(heard->mutex);
    heard->from = self->current_sender()->node();
    actors::Progress answer;
    answer.note = text;
    return answer;
  }};
}

/// Until `holds`; the test has failed when it does not within the time.
inline bool await(const char* what, const std::function<bool()>& holds, std::chrono::milliseconds within = 20s) {
  const auto until = std::chrono::steady_clock::now() + within;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= until) {
      ADD_FAILURE() << "still missing: " << what;
      return false;
    }
    ::poll(nullptr, 0, 2);
  }
  return true;
}

class Door {
 public:
  explicit Door(const Authority& authority, actors::TransportOptions options = {}) : config_(true), system_(config_) {
    if (!options.material)
      options.material = [material = authority.issue(actors::Role::coordinator, "base")] { return material; };
    if (!options.admit) options.admit = [](const actors::Peer&) { return base::ok(); };
    auto started = actors::Transport::start(system_, std::move(options));
    EXPECT_TRUE(started.ok()) << started.error().message;
    transport = std::move(*started);
    boss_ = system_.spawn(doorman_of_tests, heard);
    const auto bound = transport->publish(caf::actor_cast<actors::coordinator_actor>(boss_), "127.0.0.1", 0);
    EXPECT_TRUE(bound.ok()) << bound.error().message;
    port = *bound;
  }
  ~Door() {
    transport.reset();
    caf::anon_send_exit(boss_, caf::exit_reason::kill);
  }
  /// Of the one who was heard last.
  std::optional<actors::Identity> caller() const {
    const std::lock_guard lock(heard->mutex);
    if (!heard->from) return std::nullopt;
    const auto peer = transport->peer_of(*heard->from);
    return peer ? std::optional(peer->identity) : std::nullopt;
  }
  std::uint64_t boss_id() const { return boss_.id(); }

 private:
  actors::SystemConfig config_;
  caf::actor_system system_;
  caf::actor boss_;

 public:
  std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  std::shared_ptr<actors::Transport> transport;
  std::uint16_t port = 0;
};

class Caller {
 public:
  explicit Caller(const actors::TlsMaterial& material) : config_(true), system(config_), self(system) {
    actors::TransportOptions options;
    options.material = [material] { return material; };
    options.admit = [](const actors::Peer& peer) -> base::Status {
      if (peer.identity.role == actors::Role::coordinator) return base::ok();
      return base::Error{base::ErrorCode::bad_input, "not a coordinator"};
    };
    transport = std::move(*actors::Transport::start(system, std::move(options)));
  }
  /// Dials; false when there is nobody who wants us.
  bool dial(std::uint16_t port) {
    bool well = false;
    self->request(transport->middleman(), 10s, caf::connect_atom::value, std::string("127.0.0.1"), port)
        .receive(
            [&](const caf::node_id&, const caf::strong_actor_ptr& peer, const std::set<std::string>&) {
              well = peer != nullptr;
              if (well) boss = caf::actor_cast<caf::actor>(peer);
            },
            [](const caf::error&) {});
    return well;
  }
  /// Asks, and is answered with the same text.
  bool ask(const std::string& text, std::chrono::milliseconds within = 5s) {
    bool well = false;
    self->request(boss, within, actors::watch_atom_v, text)
        .receive([&](const actors::Progress& answer) { well = answer.note == text; }, [](const caf::error&) {});
    return well;
  }

 private:
  actors::SystemConfig config_;

 public:
  caf::actor_system system;
  caf::scoped_actor self;
  std::shared_ptr<actors::Transport> transport;
  caf::actor boss;
};

}  // namespace leafcutter::tests
