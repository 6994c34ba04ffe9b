// Mutual TLS between actor systems: who is let in, as whom, and until when.
#include "actors/transport/transport.hpp"

#include <atomic>

#include "tests/actors/door.hpp"

using namespace leafcutter;
using namespace leafcutter::tests;
using actors::Identity;
using actors::Role;

namespace {

base::Status no_entry(const std::string& why) { return base::Error{base::ErrorCode::bad_input, why}; }

}  // namespace

TEST(Transport, APeerIsWhoItsCertificateSays) {
  const Authority authority;
  Door door(authority);
  Caller berlin(authority.issue(Role::node, "berlin")), ops(authority.issue(Role::client, "ops"));
  ASSERT_TRUE(berlin.dial(door.port));
  ASSERT_TRUE(ops.dial(door.port));
  EXPECT_TRUE(berlin.ask("one"));
  EXPECT_EQ(door.caller(), (Identity{Role::node, "berlin"}));
  EXPECT_TRUE(ops.ask("two"));
  EXPECT_EQ(door.caller(), (Identity{Role::client, "ops"}));
  EXPECT_EQ(door.transport->counters().admitted, 2u);
  EXPECT_FALSE(door.transport->peer_of(caf::node_id{}).has_value());
}

TEST(Transport, ManyMessagesGoThroughWhole) {
  const Authority authority;
  Door door(authority);
  Caller berlin(authority.issue(Role::node, "berlin"));
  ASSERT_TRUE(berlin.dial(door.port));
  for (const std::size_t size : {0u, 1u, 16'383u, 16'385u, 1'000'000u, 7'000'000u})
    EXPECT_TRUE(berlin.ask(std::string(size, 'x'), 20s)) << size;
}

TEST(Transport, WhoGoesIsForgotten) {
  const Authority authority;
  Door door(authority);
  {
    Caller berlin(authority.issue(Role::node, "berlin"));
    ASSERT_TRUE(berlin.dial(door.port));
    ASSERT_TRUE(berlin.ask("one"));
    ASSERT_TRUE(door.caller().has_value());
  }
  await("nobody behind the name of a program that has ended", [&] { return !door.caller().has_value(); });
}

TEST(Transport, TheOneDialledMustBeACoordinator) {
  const Authority authority;
  actors::TransportOptions options;
  options.material = [material = authority.issue(Role::node, "berlin")] { return material; };
  Door impostor(authority, std::move(options));
  Caller paris(authority.issue(Role::node, "paris"));
  EXPECT_FALSE(paris.dial(impostor.port));
  const Authority other;
  Door stranger(other);
  EXPECT_FALSE(paris.dial(stranger.port));
  EXPECT_EQ(stranger.transport->counters().admitted, 0u);
}

TEST(Transport, ARevokedKeyIsOutAtOnceAndOthersStay) {
  const Authority authority;
  const auto revoked = std::make_shared<std::atomic<bool>>(false);
  actors::TransportOptions options;
  options.admit = [revoked](const actors::Peer& peer) {
    return *revoked && peer.identity.name == "berlin" ? no_entry("its key was revoked") : base::ok();
  };
  Door door(authority, std::move(options));
  Caller berlin(authority.issue(Role::node, "berlin")), paris(authority.issue(Role::node, "paris"));
  ASSERT_TRUE(berlin.dial(door.port));
  ASSERT_TRUE(paris.dial(door.port));
  ASSERT_TRUE(berlin.ask("one"));
  berlin.self->monitor(berlin.boss);
  EXPECT_EQ(door.transport->counters().ended, 0u);
  *revoked = true;
  bool down = false;
  berlin.self->receive([&](const caf::down_msg&) { down = true; }, caf::after(10s) >> [] {});
  EXPECT_TRUE(down);
  EXPECT_EQ(door.transport->counters().ended, 1u);
  EXPECT_TRUE(paris.ask("two"));
  EXPECT_FALSE(berlin.dial(door.port));
  EXPECT_EQ(door.transport->counters().turned_away, 1u);
  *revoked = false;
  EXPECT_TRUE(berlin.dial(door.port));
}

TEST(Transport, ASessionEndsWhenItsCertificateDoes) {
  const Authority authority;
  Door door(authority);
  const auto soon = actors::Validity{Authority::now() - 1min, Authority::now() + 3s};
  Caller berlin(authority.issue(Role::node, "berlin", soon)), paris(authority.issue(Role::node, "paris"));
  ASSERT_TRUE(berlin.dial(door.port));
  ASSERT_TRUE(paris.dial(door.port));
  await("the end of a session with an expired certificate", [&] { return door.transport->counters().ended == 1; });
  EXPECT_TRUE(paris.ask("still here"));
  EXPECT_FALSE(berlin.dial(door.port));
}

TEST(Transport, ARotatedKeyIsShownToNewPeersWhileOldOnesStay) {
  const Authority authority;
  std::mutex mutex;
  auto material = authority.issue(Role::coordinator, "base");
  actors::TransportOptions options;
  options.material = [&]() -> base::Expected<actors::TlsMaterial> {
    const std::lock_guard lock(mutex);
    return material;
  };
  Door door(authority, std::move(options));
  const auto key_shown = [&] {
    const TlsPeer peer(door.port, authority.issue(Role::client, "looks"));
    return peer.established() ? peer.other().key : std::string();
  };
  Caller berlin(authority.issue(Role::node, "berlin"));
  ASSERT_TRUE(berlin.dial(door.port));
  const auto before = key_shown();
  ASSERT_NE(before, "");
  {
    const std::lock_guard lock(mutex);
    material = authority.issue(Role::coordinator, "base");
  }
  await("another key", [&] { return key_shown() != before; });
  {
    const std::lock_guard lock(mutex);
    material.key = "half a file";
  }
  const auto until = std::chrono::steady_clock::now() + 1500ms;
  while (std::chrono::steady_clock::now() < until) ASSERT_NE(key_shown(), "") << "a broken file closes the door";
  EXPECT_TRUE(berlin.ask("still here"));
}

TEST(Transport, StartingWithoutAKeyFails) {
  actors::SystemConfig config(true);
  caf::actor_system system{config};
  const Authority authority;
  auto material = authority.issue(Role::coordinator, "base");
  material.key = authority.issue(Role::coordinator, "base").key;
  actors::TransportOptions options;
  options.admit = [](const actors::Peer&) { return base::ok(); };
  options.material = [&]() -> base::Expected<actors::TlsMaterial> { return material; };
  const auto mixed = actors::Transport::start(system, options);
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.error().code, base::ErrorCode::bad_input);
}
