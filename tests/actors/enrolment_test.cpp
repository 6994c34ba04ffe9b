// Key folders on a disk, and hosts that join over loopback: each token once, nobody else, and nothing slow.
#include "actors/trust/enrolment.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "actors/trust/enrolment_message.hpp"
#include "base/digest.hpp"
#include "base/text.hpp"
#include "tests/actors/authority.hpp"
#include "tests/support/folder.hpp"

using namespace leafcutter;
using namespace leafcutter::tests;
using actors::EnrolmentServer;
using actors::Identity;
using actors::KeyFolder;
using actors::Role;

namespace {

namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

std::int64_t now_seconds() { return actors::seconds_of(Authority::now()); }

/// An authority that answers.
class Office {
 public:
  explicit Office(EnrolmentServer::Options options = {})
      : keys(std::move(*KeyFolder::init(folder / "fleet", "base", Authority::now()))) {
    auto started = EnrolmentServer::start(keys, std::move(options));
    EXPECT_TRUE(started.ok()) << started.error().message;
    server = std::move(*started);
  }
  actors::EnrolmentDoor door() const { return {"127.0.0.1", server->port()}; }
  actors::JoinToken token(const Identity& identity, std::int64_t since = now_seconds()) const {
    const auto authority = std::move(*keys.authority_key());
    auto token = *actors::new_join_token(identity, actors::fingerprint(*authority));
    EXPECT_TRUE(
        keys.change_roll([&](actors::Roll& roll) { return add_ticket(roll, identity, token.hash(), since); }).ok());
    return token;
  }
  /// Whether the roll admits what is in a key folder.
  bool admits(const KeyFolder& peer) const {
    const auto certificate = std::move(*actors::certificate_from_pem(peer.material()->certificate));
    return actors::admit(*keys.roll(), *peer.identity(), actors::key_fingerprint(*certificate), now_seconds()).ok();
  }

  Folder folder;
  KeyFolder keys;
  std::unique_ptr<EnrolmentServer> server;
};

bool counted(const EnrolmentServer& server, std::uint64_t actors::EnrolmentCounters::*what, std::uint64_t number) {
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (server.counters().*what != number) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

}  // namespace

TEST(KeyFolder, KeepsSecretsToItself) {
  const Folder folder;
  const auto keys = KeyFolder::init(folder / "fleet", "base", Authority::now());
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_EQ(mode_of(folder / "fleet"), 0700u);
  for (const auto& entry : fs::directory_iterator(folder / "fleet")) EXPECT_EQ(mode_of(entry.path()), 0600u);
  EXPECT_EQ(*keys->identity(), (Identity{Role::coordinator, "base"}));
  EXPECT_TRUE(keys->is_authority());
  EXPECT_TRUE(KeyFolder::open(folder / "fleet").ok());
  EXPECT_FALSE(KeyFolder::open(folder / "nowhere").ok());
  ::chmod((folder / "fleet/identity.pem").c_str(), 0640);
  const auto readable = KeyFolder::open(folder / "fleet");
  ASSERT_FALSE(readable.ok());
  EXPECT_NE(readable.error().message.find("chmod 600"), std::string::npos) << readable.error().message;
}

TEST(KeyFolder, NeverOverwritesAndNeverSharesItsFolder) {
  const Folder folder;
  ASSERT_TRUE(KeyFolder::init(folder / "fleet", "base", Authority::now()).ok());
  const auto before = *KeyFolder::open(folder / "fleet")->material();
  const auto again = KeyFolder::init(folder / "fleet", "base", Authority::now());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, base::ErrorCode::bad_input);
  EXPECT_EQ(KeyFolder::open(folder / "fleet")->material()->key, before.key);
  for (const mode_t mode : {0770, 0707, 0777, 01777}) {
    const auto shared = folder / ("shared" + std::to_string(mode));
    fs::create_directory(shared);
    ::chmod(shared.c_str(), mode);
    EXPECT_FALSE(KeyFolder::init(shared, "base", Authority::now()).ok()) << mode;
    EXPECT_TRUE(fs::is_empty(shared));
  }
  fs::create_directory(folder / "own");
  ::chmod((folder / "own").c_str(), 0755);
  EXPECT_TRUE(KeyFolder::init(folder / "own", "base", Authority::now()).ok()) << "others may look at the folder";
  EXPECT_FALSE(KeyFolder::init(folder / "bad-name", "no name", Authority::now()).ok());
  ::chmod((folder / "own").c_str(), 0775);
  EXPECT_FALSE(KeyFolder::open(folder / "own").ok());
}

TEST(KeyFolder, AKeyBehindALinkIsNotRead) {
  const Folder folder;
  ASSERT_TRUE(KeyFolder::init(folder / "fleet", "base", Authority::now()).ok());
  fs::rename(folder / "fleet/identity.pem", folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", folder / "fleet/identity.pem");
  EXPECT_FALSE(KeyFolder::open(folder / "fleet").ok());
}

TEST(KeyFolder, ChangesOfTheRollByManyAreAllKept) {
  const Folder folder;
  const auto keys = *KeyFolder::init(folder / "fleet", "base", Authority::now());
  std::vector<std::thread> clerks;
  for (int clerk = 0; clerk < 4; ++clerk) {
    clerks.emplace_back([&, clerk] {
      for (int i = 0; i < 10; ++i) {
        const auto name = "n" + std::to_string(10 * clerk + i);
        EXPECT_TRUE(keys.change_roll([&](actors::Roll& roll) {
                          return add_ticket(roll, {Role::node, name}, base::sha256(name), now_seconds());
                        })
                        .ok());
      }
    });
  }
  for (auto& clerk : clerks) clerk.join();
  EXPECT_EQ(keys.roll()->tickets.size(), 40u);
}

TEST(Gate, SeesARevokedKeyAndFailsClosed) {
  const Folder folder;
  const auto keys = *KeyFolder::init(folder / "fleet", "base", Authority::now());
  const auto certificate = std::move(*actors::certificate_from_pem(keys.material()->certificate));
  const actors::Peer self{*keys.identity(), actors::key_fingerprint(*certificate), actors::expiry_of(*certificate)};
  const auto admits = [&](actors::Gate& gate) { return gate.admit(self).ok(); };
  const auto soon = [&](actors::Gate& gate, bool wanted) {
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (admits(gate) != wanted && std::chrono::steady_clock::now() < until) ::poll(nullptr, 0, 5);
    return admits(gate) == wanted;
  };
  actors::Gate gate(keys);
  EXPECT_TRUE(admits(gate));
  const auto text = *base::read_file(folder / "fleet/roll.json");
  std::ofstream(folder / "fleet/roll.json") << text.substr(0, text.size() / 2);
  EXPECT_TRUE(soon(gate, false)) << "half a roll";
  std::ofstream(folder / "fleet/roll.json") << text;
  EXPECT_TRUE(soon(gate, true));
  EXPECT_TRUE(keys.change_roll([&](actors::Roll& roll) -> base::Status {
                    const auto revoked = revoke(roll, "base", now_seconds());
                    return revoked ? base::ok() : base::Status(revoked.error());
                  })
                  .ok());
  EXPECT_TRUE(soon(gate, false));
}

TEST(Enrolment, AHostJoinsOnceWithItsToken) {
  const Office office;
  const auto token = office.token(berlin);
  const auto joined = actors::join(office.door(), token, office.folder / "berlin");
  ASSERT_TRUE(joined.ok()) << joined.error().message;
  EXPECT_EQ(*joined->identity(), berlin);
  EXPECT_TRUE(office.admits(*joined));
  EXPECT_FALSE(joined->is_authority());
  EXPECT_EQ(*joined->campaign_public_pem(), *office.keys.campaign_public_pem());
  EXPECT_EQ(mode_of(office.folder / "berlin/identity.pem"), 0600u);
  const auto again = actors::join(office.door(), token, office.folder / "again");
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().message.find("used up"), std::string::npos) << again.error().message;
  EXPECT_EQ(office.keys.roll()->keys.size(), 2u);
  EXPECT_FALSE(fs::exists(office.folder / "again/identity.pem"));
  // No secret is on the authority's disk.
  for (const auto& entry : fs::directory_iterator(office.folder / "fleet"))
    EXPECT_EQ(base::read_file(entry.path())->find(token.secret), std::string::npos) << entry.path();
}

TEST(Enrolment, ATokenThatIsLateWrongOrForAFullFolderIsRefused) {
  const Office office;
  const auto late = office.token(berlin, now_seconds() - 901);
  EXPECT_FALSE(actors::join(office.door(), late, office.folder / "late").ok());
  auto wrong = office.token(berlin);
  auto good = wrong;
  wrong.secret.front() = wrong.secret.front() == '0' ? '1' : '0';
  EXPECT_FALSE(actors::join(office.door(), wrong, office.folder / "wrong").ok());
  EXPECT_FALSE(actors::join(office.door(), good, office.folder / "fleet").ok()) << "keys are there";
  EXPECT_TRUE(actors::join(office.door(), good, office.folder / "good").ok()) << "what was refused did not use it up";
}

TEST(Enrolment, ATokenIsShownToItsOwnAuthorityOnly) {
  const Office office, impostor;
  const auto token = office.token(berlin);
  const auto refused = actors::join(impostor.door(), token, office.folder / "berlin");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::protocol) << refused.error().message;
  EXPECT_EQ(impostor.server->counters().refused, 0u) << "the secret was told";
  // Nor to a host of the right authority that is no coordinator.
  const auto joined = *actors::join(office.door(), token, office.folder / "berlin");
  EXPECT_FALSE(EnrolmentServer::start(joined, {}).ok()) << "a host's folder is no authority's";
}

TEST(Enrolment, AKeyIsReplacedWhileTheOldOneStays) {
  const Office office;
  const auto joined = *actors::join(office.door(), office.token(berlin), office.folder / "berlin");
  const auto old = *joined.material();
  const auto rotated = actors::rotate_identity(office.door(), joined, 1h);
  ASSERT_TRUE(rotated.ok()) << rotated.error().message;
  EXPECT_NE(joined.material()->key, old.key);
  EXPECT_TRUE(office.admits(joined));
  EXPECT_EQ(*joined.identity(), berlin);
  const auto before = std::move(*actors::certificate_from_pem(old.certificate));
  EXPECT_TRUE(actors::admit(*office.keys.roll(), berlin, actors::key_fingerprint(*before), now_seconds()).ok());
  ASSERT_TRUE(actors::rotate_own(office.keys, 0s, Authority::now()).ok());
  EXPECT_TRUE(office.admits(office.keys));
  EXPECT_TRUE(actors::rotate_identity(office.door(), joined, 1h).ok()) << "the authority is believed with its new key";
}

TEST(Enrolment, ARevokedKeyIsNotReplaced) {
  const Office office;
  const auto joined = *actors::join(office.door(), office.token(berlin), office.folder / "berlin");
  ASSERT_TRUE(office.keys
                  .change_roll([](actors::Roll& roll) -> base::Status {
                    const auto revoked = revoke(roll, "berlin", now_seconds());
                    return revoked ? base::ok() : base::Status(revoked.error());
                  })
                  .ok());
  const auto key = joined.material()->key;
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (actors::rotate_identity(office.door(), joined, 1h).ok() && std::chrono::steady_clock::now() < until) {
  }
  EXPECT_FALSE(actors::rotate_identity(office.door(), joined, 1h).ok());
}

TEST(Enrolment, WhoeverTalksOfOtherThingsIsClosedAndOthersAreServed) {
  EnrolmentServer::Options options;
  options.within = 1s;
  options.visitors_at_most = 8;
  const Office office(std::move(options));
  const auto port = office.server->port();
  {
    const RawPeer garbage(port);
    garbage.send("GET / HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(garbage.closed());
    EXPECT_TRUE(counted(*office.server, &actors::EnrolmentCounters::broken, 1));
  }
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<RawPeer>(port));
  const auto joined = actors::join(office.door(), office.token(berlin), office.folder / "berlin");
  EXPECT_TRUE(joined.ok()) << joined.error().message;
  for (const auto& peer : silent) EXPECT_TRUE(peer->closed());
  EXPECT_TRUE(counted(*office.server, &actors::EnrolmentCounters::broken, 21));
  // Under TLS, with a good key: too long, no map, nothing at all.
  for (const auto& bytes : {std::string("\xff\xff\xff\xff", 4), actors::framed("nonsense"), std::string()}) {
    TlsPeer peer(port, *joined->material());
    ASSERT_TRUE(peer.established());
    EXPECT_TRUE(bytes.empty() || peer.send(bytes));
    EXPECT_TRUE(peer.closed());
  }
  EXPECT_TRUE(counted(*office.server, &actors::EnrolmentCounters::broken, 24));
  EXPECT_EQ(office.server->counters().enrolled, 1u);
  // Anonymous and without a secret.
  TlsPeer known(port, *joined->material());
  EXPECT_TRUE(known.send(actors::framed(encode(actors::EnrolmentRequest{"", "no request", 0}))));
  EXPECT_NE(known.receive(), "");
  EXPECT_EQ(office.server->counters().refused, 1u);
}
