// Whoever is not wanted at the door: refused, counted, bounded, and nobody else notices. The reference for what CAF's
// own TLS falls to: garbage, and a connection that says nothing.
#include <sys/resource.h>

#include <caf/binary_serializer.hpp>
#include <caf/io/middleman.hpp>

#include "tests/actors/basp_bytes.hpp"
#include "tests/actors/door.hpp"

using namespace leafcutter;
using namespace leafcutter::tests;
using actors::Role;
using actors::TransportCounters;

namespace {

/// A door with a healthy node behind it, which is asked again after every attempt.
class Besieged : public testing::Test {
 protected:
  explicit Besieged(std::chrono::milliseconds handshake_within = 5s)
      : door(authority, options(handshake_within)), healthy(authority.issue(Role::node, "healthy")) {
    EXPECT_TRUE(healthy.dial(door.port));
    EXPECT_TRUE(healthy.ask("before"));
  }
  void TearDown() override {
    EXPECT_TRUE(healthy.ask("after")) << "the healthy node has noticed";
    EXPECT_EQ(door.transport->counters().admitted, 1 + admitted);
  }
  static actors::TransportOptions options(std::chrono::milliseconds handshake_within) {
    actors::TransportOptions options;
    options.handshake_within = handshake_within;
    return options;
  }
  /// One more of this kind has been counted, and nothing else was.
  void expect_one_more(std::uint64_t TransportCounters::*kind) {
    await("it counted", [&] { return door.transport->counters().*kind == before_.*kind + 1; });
    const auto now = door.transport->counters();
    for (const auto each : {&TransportCounters::no_handshake, &TransportCounters::turned_away,
                            &TransportCounters::too_slow, &TransportCounters::crowded_out, &TransportCounters::offences,
                            &TransportCounters::overrun, &TransportCounters::ended}) {
      EXPECT_EQ(now.*each, before_.*each + (each == kind ? 1 : 0));
    }
    before_ = now;
    EXPECT_TRUE(healthy.ask("meanwhile")) << "the healthy node has noticed";
  }

  const Authority authority;
  Door door;
  Caller healthy;
  std::uint64_t admitted = 0;

 private:
  TransportCounters before_;
};

class BesiegedBriefly : public Besieged {
 protected:
  BesiegedBriefly() : Besieged(1s) {}
};

std::chrono::microseconds cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/// A TLS record: handshake, of the type and length that are claimed, with these bytes of it.
std::string handshake_record(char type, std::uint32_t claimed, const std::string& bytes) {
  const auto body = std::string(1, type) + big_endian_bytes(claimed, 3) + bytes;
  return std::string("\x16\x03\x01", 3) + big_endian_bytes(body.size(), 2) + body;
}

/// The name that an actor system gives itself to its peers.
std::string name_among_systems(caf::actor_system& system) {
  std::vector<char> bytes;
  caf::binary_serializer sink{system, bytes};
  auto node = system.node();
  EXPECT_FALSE(sink(node));
  return {bytes.begin(), bytes.end()};
}

/// Of the same form, and nobody's: systems of one process differ in the last byte alone.
std::string unused_name(std::string name, int number) {
  name[name.size() - 2] = static_cast<char>(name[name.size() - 2] ^ 1);
  name.back() = static_cast<char>(number);
  return name;
}

std::string greeting(const std::string& name) {
  return BaspHeader{1, 0, static_cast<std::uint32_t>(name.size())}.bytes() + name;
}

}  // namespace

TEST_F(Besieged, Garbage) {
  for (const std::string text : {"GET / HTTP/1.0\r\n\r\n", "\r\n", "SSH-2.0-x\r\n"}) {
    const RawPeer peer(door.port);
    peer.send(text + std::string(64, '\0'));
    EXPECT_TRUE(peer.closed()) << text;
    expect_one_more(&TransportCounters::no_handshake);
  }
}

TEST_F(Besieged, PlainActors) {
  actors::SystemConfig config(true);
  caf::actor_system system{config};
  const auto plain = system.middleman().remote_actor<actors::coordinator_actor>("127.0.0.1", door.port);
  EXPECT_FALSE(plain);
  expect_one_more(&TransportCounters::no_handshake);
  const RawPeer peer(door.port);
  peer.send(greeting("somebody"));
  EXPECT_TRUE(peer.closed());
  expect_one_more(&TransportCounters::no_handshake);
}

TEST_F(Besieged, AnotherAuthority) {
  const Authority other;
  auto material = other.issue(Role::node, "healthy");
  material.authority = authority.pem();  // so that it believes us
  const TlsPeer peer(door.port, material);
  EXPECT_TRUE(peer.closed());
  expect_one_more(&TransportCounters::no_handshake);
}

TEST_F(Besieged, AnExpiredCertificateAndOneOfTomorrow) {
  for (const auto hours : {-2h, 24h}) {
    const actors::Validity validity{Authority::now() + hours, Authority::now() + hours + 1h};
    const TlsPeer peer(door.port, authority.issue(Role::node, "berlin", validity));
    EXPECT_TRUE(peer.closed());
    expect_one_more(&TransportCounters::no_handshake);
  }
}

TEST_F(Besieged, NoCertificate) {
  const RawPeer raw(door.port);
  const actors::TlsContextPtr context(SSL_CTX_new(TLS_method()));
  actors::TlsSession session(*context, raw.fd(), false, [](const actors::Peer&) { return base::ok(); });
  while (session.handshake() == actors::TlsSession::Progress::again) {
  }
  EXPECT_TRUE(raw.closed());
  expect_one_more(&TransportCounters::no_handshake);
}

TEST_F(Besieged, OlderThanTls13) {
  const RawPeer raw(door.port);
  const actors::TlsContextPtr context(SSL_CTX_new(TLS_method()));
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  actors::TlsSession session(*context, raw.fd(), false, [](const actors::Peer&) { return base::ok(); });
  while (session.handshake() == actors::TlsSession::Progress::again) {
  }
  EXPECT_FALSE(session.established());
  expect_one_more(&TransportCounters::no_handshake);
}

TEST_F(Besieged, AnOversizedHandshake) {
  const RawPeer peer(door.port);
  peer.send(handshake_record(1, 0xffffff, std::string(16000, 'x')));
  EXPECT_TRUE(peer.closed());
  expect_one_more(&TransportCounters::no_handshake);
}

TEST_F(BesiegedBriefly, ASilentConnection) {
  const RawPeer peer(door.port);
  EXPECT_TRUE(peer.closed());
  expect_one_more(&TransportCounters::too_slow);
}

TEST_F(BesiegedBriefly, AByteNowAndThen) {
  const RawPeer peer(door.port);
  const auto record = handshake_record(1, 15000, std::string(15000, '\3'));
  const auto begin = std::chrono::steady_clock::now();
  // 50 ms between two bytes: closed() looks so long.
  std::size_t sent = 0;
  while (sent < record.size() && peer.send(record.substr(sent, 1)) && !peer.closed(50ms)) ++sent;
  EXPECT_LT(sent, record.size());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  expect_one_more(&TransportCounters::too_slow);
}

TEST_F(BesiegedBriefly, AdmittedAndThenSilent) {
  ++admitted;
  const TlsPeer peer(door.port, authority.issue(Role::node, "berlin"));
  ASSERT_TRUE(peer.established());
  EXPECT_TRUE(peer.closed());
  expect_one_more(&TransportCounters::too_slow);
}

TEST_F(Besieged, TwoHundredSilentConnections) {
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 200; ++i) peers.push_back(std::make_unique<RawPeer>(door.port));
  await("all but 64 closed", [&] { return door.transport->counters().crowded_out == 200 - 64; });
  const auto begin = std::chrono::steady_clock::now();
  const auto cpu = cpu_time();
  EXPECT_TRUE(healthy.ask("in the crowd"));
  await(
      "the others closed", [&] { return door.transport->counters().too_slow == 64; }, 15s);
  const auto wall = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(wall, 1s);
  // CAF's own TLS burns a core for each of them.
  EXPECT_LT(cpu_time() - cpu, wall / 4);
  for (const auto& peer : peers) EXPECT_TRUE(peer->closed());
}

// --- peers with a good certificate and ill will

TEST_F(Besieged, AnAdmittedPeerReachesTheFrontDoorAlone) {
  const auto name = name_among_systems(healthy.system);  // for its form
  const auto text = basp_message("@<>+@exit");
  const auto to = [&](std::uint64_t actor, std::uint8_t flags) {
    return BaspHeader{2, flags, static_cast<std::uint32_t>(text.size()), 0, 1, actor}.bytes() + text;
  };
  const auto own = unused_name(name, 1);
  // An exit message to whoever is not published is not passed on either; what follows is read as it should be.
  const auto unheard = to(door.boss_id() + 1, 0) + to(1, 0) + to(door.boss_id(), 1);
  for (const auto& bytes :
       {BaspHeader{3, 0, 64, 0, 1, door.boss_id()}.bytes() + std::string(64, 'x'),
        BaspHeader{2, 0, 0xffffffff, 0, 1, door.boss_id()}.bytes(),
        BaspHeader{5, 0, static_cast<std::uint32_t>(2 * name.size()), 0, 1, 0}.bytes() + name + name,
        std::string(32, '\xff'), greeting(name)}) {
    ++admitted;
    const auto before = door.transport->counters().unheard;
    TlsPeer peer(door.port, authority.issue(Role::node, "berlin"));
    ASSERT_TRUE(peer.established());
    EXPECT_TRUE(peer.send(greeting(own) + unheard + bytes));
    EXPECT_TRUE(peer.closed());
    expect_one_more(&TransportCounters::offences);
    EXPECT_GE(door.transport->counters().unheard, before + 6);
  }
}

TEST_F(Besieged, TheNameOfAnotherProgramIsNotGiven) {
  ++admitted;
  TlsPeer peer(door.port, authority.issue(Role::node, "berlin"));
  ASSERT_TRUE(peer.established());
  EXPECT_TRUE(peer.send(greeting(name_among_systems(healthy.system))));
  EXPECT_TRUE(peer.closed());
  expect_one_more(&TransportCounters::offences);
  EXPECT_TRUE(healthy.ask("who am I"));
  EXPECT_EQ(door.caller(), (actors::Identity{Role::node, "healthy"}));
}

TEST_F(Besieged, AnExitMessageDoesNotEndWhoeverItIsSentTo) {
  ++admitted;
  Caller rogue(authority.issue(Role::node, "rogue"));
  ASSERT_TRUE(rogue.dial(door.port));
  ASSERT_TRUE(rogue.ask("me, too"));
  rogue.self->monitor(rogue.boss);
  rogue.self->send_exit(rogue.boss, caf::exit_reason::user_shutdown);
  bool down = false;
  rogue.self->receive([&](const caf::down_msg&) { down = true; }, caf::after(10s) >> [] {});
  EXPECT_TRUE(down) << "disconnected";
  expect_one_more(&TransportCounters::offences);
}

TEST_F(Besieged, ALinkDoesNotEndWhoeverItIsTiedTo) {
  ++admitted;
  Caller rogue(authority.issue(Role::node, "rogue"));
  ASSERT_TRUE(rogue.dial(door.port));
  rogue.self->link_to(rogue.boss);
  expect_one_more(&TransportCounters::offences);
}

TEST_F(Besieged, AMessageThatIsTooLarge) {
  ++admitted;
  Caller rogue(authority.issue(Role::node, "rogue"));
  ASSERT_TRUE(rogue.dial(door.port));
  EXPECT_FALSE(rogue.ask(std::string(9 << 20, 'x'), 2s));
  expect_one_more(&TransportCounters::offences);
  ++admitted;
  EXPECT_TRUE(rogue.dial(door.port)) << "it may come again";
  EXPECT_TRUE(rogue.ask("and behave"));
}

TEST_F(Besieged, ManyPeersStayWhileOthersAreTurnedAway) {
  std::vector<std::unique_ptr<TlsPeer>> peers;
  const auto name = name_among_systems(healthy.system);
  for (int i = 0; i < 100; ++i) {
    ++admitted;
    peers.push_back(std::make_unique<TlsPeer>(door.port, authority.issue(Role::node, "n" + std::to_string(i))));
    ASSERT_TRUE(peers.back()->established());
    ASSERT_TRUE(peers.back()->send(greeting(unused_name(name, i))));
  }
  for (int i = 0; i < 100; ++i) {
    const RawPeer peer(door.port);
    peer.send("GET / HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(peer.closed());
    EXPECT_TRUE(peers[static_cast<std::size_t>(i)]->send(BaspHeader{6}.bytes()));
  }
  await("a hundred refused", [&] { return door.transport->counters().no_handshake == 100; });
  // The coordinator's own heartbeats still come to each of them.
  for (const auto& peer : peers) EXPECT_NE(peer->receive(), "");
  EXPECT_EQ(door.transport->counters().offences, 0u);
}
