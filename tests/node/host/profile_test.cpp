#include "node/host/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "base/text.hpp"
#include "node/host/profile_vocabulary.hpp"
#include "tests/support/checkout.hpp"
#include "tests/support/kept.hpp"

namespace leafcutter::node::host {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

std::string harness_text() { return *base::read_file(tests::checkout() + "/tests/node/host/data/harness.yaml"); }

const Profile& harness() {
  static const auto profile = [] {
    auto loaded = load_profile_text(harness_text(), "harness.yaml");
    for (const auto& error : loaded.errors) ADD_FAILURE() << error.text();
    return *loaded.profile;
  }();
  return profile;
}

Decision of_vector(std::vector<std::string> argv) { return decide(harness(), {"command", {}, std::move(argv), {}}); }
Decision of_action(const std::string& action, std::map<std::string, std::string> parameters, seconds duration = {},
                   const Situation& situation = {}) {
  return decide(harness(), {action, std::move(parameters), {}, duration}, situation);
}

constexpr auto chaos = "/usr/local/bin/chaos.sh";
constexpr auto curl = "/usr/bin/curl";
constexpr auto systemctl = "/usr/bin/systemctl";

struct Variation {
  const char* name;
  std::vector<std::string> argv;
  const char* named;  ///< the element that the reason names
};

/// What a harness must refuse although it comes close to what is allowed.
const std::vector<Variation>& refused_variations() {
  static const std::vector<Variation> all = {
      {"a verb outside the set", {chaos, "reboot", "10", "1"}, "\"reboot\""},
      {"longer than allowed", {chaos, "cpu", "9999", "4"}, "argument 2 \"9999\" is not a whole number from 1 to 300"},
      {"a signal outside the set", {chaos, "kill", "INT", "/run/shop.pid"}, "argument 2 \"INT\""},
      {"somebody else's pid file", {chaos, "kill", "KILL", "/run/sshd.pid"}, "argument 3 \"/run/sshd.pid\""},
      {"a host that is not pinned",
       {curl, "-s", "--max-time", "5", "http://evil.example/"},
       "argument 4 \"http://evil"},
      {"the same over https", {curl, "-s", "--max-time", "5", "https://evil.example/"}, "argument 4 \"https://evil"},
      {"an output file", {curl, "-s", "-o", "/etc/passwd", "http://localhost/"}, "argument 2 \"-o\""},
      {"a scan of ports", {"/usr/bin/nc", "-z", "-w", "1", "10.0.0.5", "22"}, "argument 4 \"10.0.0.5\""},
      {"restarting another service", {systemctl, "restart", "sshd"}, "argument 2 \"sshd\""},
      {"stopping another service", {systemctl, "stop", "sshd"}, "argument 2 \"sshd\""},
      {"a path for a name", {"/usr/local/bin/apply-config.sh", "../../etc/shadow"}, "argument 1 \"../../etc/shadow\""},
      {"a command line for a word", {chaos, "status; rm -rf /"}, "argument 1 \"status; rm -rf /\""},
      {"one argument more", {systemctl, "restart", "shop", "extra"}, "argument 3 \"extra\" is one too many"},
      {"a shell", {"/bin/bash", "-c", "whoami"}, "program \"/bin/bash\""},
      {"the recovery as a runner", {"/usr/local/bin/recover-shop", "-c", "/etc/evil.conf"}, "argument 1 \"-c\""},
      {"another client", {"/usr/bin/wget", "-q", "-O", "-", "-T", "5", "http://evil.example/"}, "argument 6"},
      // What a joined string or a pattern for numbers would let through:
      {"elements that are one when joined", {chaos, "cpu 20 1"}, "argument 1 \"cpu 20 1\""},
      {"elements divided elsewhere", {chaos, "cpu", "20 1"}, "argument 2 \"20 1\""},
      {"three digits over the limit", {chaos, "cpu", "301", "1"}, "argument 2 \"301\""},
      {"nothing", {chaos, "cpu", "0", "1"}, "argument 2 \"0\""},
      {"a leading zero", {chaos, "cpu", "020", "1"}, "argument 2 \"020\""},
      {"a sign", {chaos, "cpu", "+20", "1"}, "argument 2 \"+20\""},
      {"a number in another base", {chaos, "cpu", "0x10", "1"}, "argument 2 \"0x10\""},
      {"a number beyond 64 bits", {chaos, "cpu", "18446744073709551636", "1"}, "argument 2"},
      {"white space", {chaos, "cpu", "20\n", "1"}, "argument 2"},
      {"one argument less", {chaos, "cpu", "20"}, "argument 3 is missing, a whole number from 1 to 64"},
      {"an empty argument", {systemctl, "restart", "shop", ""}, "argument 3 \"\" is one too many"},
      {"a pinned host as a prefix", {curl, "-s", "--max-time", "5", "http://localhost.evil.example/"}, "argument 4"},
      {"a pinned host as a user", {curl, "-s", "--max-time", "5", "http://localhost@evil/"}, "argument 4"},
      {"a match within a line",
       {curl, "-s", "--max-time", "5", "http://localhost/\nhttp://evil.example/"},
       "argument 4"},
      {"a program by its name alone", {"curl", "-s"}, "program \"curl\""},
      {"a program by another path", {"/usr/bin/../bin/curl", "-s"}, "program \"/usr/bin/../bin/curl\""},
      {"another case", {chaos, "CPU", "20", "1"}, "argument 1 \"CPU\""},
  };
  return all;
}

TEST(HostProfile, DangerousVariationsAreDeniedByTheElement) {
  ASSERT_GE(refused_variations().size(), 16U);
  for (const auto& variation : refused_variations()) {
    const auto decision = of_vector(variation.argv);
    EXPECT_FALSE(decision.allowed) << variation.name;
    EXPECT_THAT(decision.reason, HasSubstr(variation.named)) << variation.name;
  }
}

TEST(HostProfile, DocumentedCallsAreAllowed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> calls = {
      {{chaos, "cpu", "20", "1"}, "pressure"},
      {{chaos, "cpu", "300", "64"}, "pressure"},
      {{chaos, "mem", "30", "512"}, "hold-memory"},
      {{chaos, "latency", "30", "200", "eth0"}, "late"},
      {{chaos, "loss", "30", "0", "lo"}, "lossy"},
      {{chaos, "kill", "TERM", "/run/shop.pid"}, "kill-shop"},
      {{chaos, "kill", "HUP", "/run/shop.pid"}, "kill-shop"},
      {{chaos, "status"}, "pressure-status"},
      {{curl, "-s", "--max-time", "5", "http://localhost:8080/healthz"}, "look"},
      {{curl, "-s", "--max-time", "30", "http://127.0.0.1/"}, "look"},
      {{"/usr/bin/wget", "-q", "-O", "-", "-T", "5", "http://localhost:8080/healthz"}, "look-too"},
      {{"/usr/bin/nc", "-z", "-w", "3", "myservice.internal", "6379"}, "reach"},
      {{"/usr/bin/dig", "+short", "myservice.internal"}, "name"},
      {{systemctl, "restart", "shop"}, "restart-shop"},
      {{systemctl, "stop", "shop"}, "stop-shop"},
      {{systemctl, "is-active", "shop"}, "shop-is-active"},
      {{"/usr/local/bin/recover-shop"}, "recover-shop"},
      {{"/usr/local/bin/apply-config.sh", "low-memory"}, "settings"}};
  for (const auto& [argv, entry] : calls) {
    const auto decision = of_vector(argv);
    EXPECT_TRUE(decision.allowed) << decision.reason;
    EXPECT_EQ(decision.command, entry);
    EXPECT_EQ(decision.resource, "command " + entry);
  }
}

/// Whatever is done to one element of an allowed vector, unless the entry leaves it open: denied.
TEST(HostProfile, NoChangeOfAFixedElementIsAllowed) {
  const std::vector<std::string> good = {chaos, "kill", "TERM", "/run/shop.pid"};
  ASSERT_TRUE(of_vector(good).allowed);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    base::Stream random(7, "profile", i);
    auto argv = good;
    auto& element = argv[random.below(argv.size())];
    switch (random.below(4)) {
      case 0: element.insert(random.below(element.size() + 1), 1, static_cast<char>(random.below(256))); break;
      case 1: element.erase(random.below(element.size()), 1); break;
      case 2: element[random.below(element.size())] ^= static_cast<char>(1 + random.below(255)); break;
      default: argv.insert(argv.begin() + static_cast<std::ptrdiff_t>(random.below(5)), " "); break;
    }
    EXPECT_FALSE(of_vector(argv).allowed) << testing::PrintToString(argv);
  }
}

TEST(HostProfile, ActionsHaveTheirLimits) {
  EXPECT_TRUE(of_action("cpu", {{"workers", "64"}}, seconds(300)).allowed);
  EXPECT_THAT(of_action("cpu", {{"workers", "65"}}, seconds(1)).reason, HasSubstr("workers \"65\""));
  EXPECT_THAT(of_action("cpu", {{"workers", "1"}}, seconds(301)).reason, HasSubstr("duration 301s is longer than 5m"));
  EXPECT_THAT(of_action("cpu", {{"workers", "1"}}).reason, HasSubstr("not said for how long"));
  EXPECT_THAT(of_action("cpu", {{"worker", "1"}}, seconds(1)).reason, HasSubstr("did you mean \"workers\"?"));
  EXPECT_THAT(of_action("cpu", {}, seconds(1)).reason, HasSubstr("\"workers\" is missing"));
  EXPECT_TRUE(of_action("disk", {{"megabytes", "1"}, {"folder", "/var/tmp"}}, seconds(1)).allowed);
  EXPECT_THAT(of_action("disk", {{"megabytes", "1"}, {"folder", "/etc"}}, seconds(1)).reason, HasSubstr("\"/etc\""));
  EXPECT_TRUE(of_action("network", {{"interface", "lo"}, {"delay", "500ms"}}, seconds(1)).allowed);
  EXPECT_FALSE(of_action("network", {{"interface", "lo"}, {"delay", "501ms"}}, seconds(1)).allowed);
  EXPECT_THAT(of_action("network", {{"interface", "wlan0"}, {"loss", "1"}}, seconds(1)).reason, HasSubstr("\"wlan0\""));
  EXPECT_THAT(of_action("network", {{"interface", "lo"}, {"rate", "100"}}, seconds(1)).reason, HasSubstr("rate"));
  EXPECT_FALSE(of_action("network", {{"interface", "lo"}}, seconds(1)).allowed);
  EXPECT_TRUE(of_action("probe", {{"name", "shop"}}).allowed);
  EXPECT_THAT(of_action("probe", {{"name", "evil.example"}}).reason, HasSubstr("\"evil.example\""));
  EXPECT_TRUE(of_action("configure", {{"name", "shop"}, {"variant", "low-memory"}}, seconds(1)).allowed);
  EXPECT_THAT(of_action("configure", {{"name", "shop"}, {"variant", "../../etc/shadow"}}, seconds(1)).reason,
              HasSubstr("variant \"../../etc/shadow\""));
  EXPECT_THAT(of_action("signal", {{"target", "sshd"}, {"signal", "HUP"}}).reason, HasSubstr("target \"sshd\""));
  EXPECT_THAT(of_action("signal", {{"target", "cache"}, {"signal", "KILL"}}).reason, HasSubstr("signal \"KILL\""));
  EXPECT_TRUE(of_action("signal", {{"target", "cache"}, {"signal", "HUP"}}).allowed);
  EXPECT_THAT(of_action("reboot", {}).reason, HasSubstr("action \"reboot\" does not exist"));
}

TEST(HostProfile, WhatIsNotWrittenIsDenied) {
  const auto loaded = load_profile_text("profile: 1\nname: none\n", "none.yaml");
  ASSERT_TRUE(loaded.profile);
  for (const auto& action : action_names()) {
    Request request{action, {}, {}, seconds(1)};
    if (action == "command") request = {action, {}, {"/bin/true"}, {}};
    EXPECT_FALSE(decide(*loaded.profile, request).allowed) << action;
  }
  EXPECT_THAT(decide_use(*loaded.profile, "feature", "network").reason, HasSubstr("\"network\""));
  EXPECT_TRUE(decide_use(harness(), "feature", "network").allowed);
  EXPECT_FALSE(decide_use(harness(), "feature", "syscalls").allowed);
  EXPECT_FALSE(decide_use(harness(), "tier", "machine").allowed);
  EXPECT_TRUE(decide_use(harness(), "pool", "nightly").allowed);
  EXPECT_FALSE(decide_use(harness(), "pool", "weekly").allowed);
}

TEST(HostProfile, DestructiveActionsWaitForARecoveryThatWorked) {
  const Situation recovered{{}, {"shop"}}, other{{}, {"cache"}};
  EXPECT_THAT(of_action("restart", {{"service", "shop"}}).reason, HasSubstr("recovery has not worked"));
  EXPECT_FALSE(of_action("restart", {{"service", "shop"}}, {}, other).allowed);
  EXPECT_TRUE(of_action("restart", {{"service", "shop"}}, {}, recovered).allowed);
  EXPECT_FALSE(of_action("signal", {{"target", "shop"}, {"signal", "KILL"}}).allowed);
  EXPECT_TRUE(of_action("signal", {{"target", "shop"}, {"signal", "KILL"}}, {}, recovered).allowed);
  EXPECT_TRUE(of_action("signal", {{"target", "shop"}, {"signal", "HUP"}}).allowed);
  EXPECT_TRUE(of_action("recover", {{"service", "shop"}}).allowed);
}

TEST(HostProfile, WhatIsHeldIsNotClobbered) {
  const Situation shaped{{{"network", "network lo"}}, {}};
  EXPECT_THAT(of_action("network", {{"interface", "lo"}, {"loss", "1"}}, seconds(1), shaped).reason,
              HasSubstr("network lo is held"));
  EXPECT_TRUE(of_action("network", {{"interface", "eth0"}, {"loss", "1"}}, seconds(1), shaped).allowed);
  const Situation busy{{{"cpu", "cpu"}, {"memory", "memory"}, {"network", "network lo"}}, {"shop"}};
  EXPECT_THAT(of_action("probe", {{"name", "shop"}}, {}, busy).reason, HasSubstr("at-once: 3 actions"));
  EXPECT_TRUE(of_action("recover", {{"service", "shop"}}, {}, busy).allowed) << "recovery is possible in any state";
  const Request pressure{"command", {}, {chaos, "cpu", "20", "1"}, {}};
  EXPECT_TRUE(decide(harness(), pressure, {{{"command", "command pressure"}}, {}}).allowed);
  EXPECT_FALSE(
      decide(harness(), pressure, {{{"command", "command pressure"}, {"command", "command pressure"}}, {}}).allowed);
}

TEST(HostProfile, ReferencePageIsCurrent) { tests::expect_page("host-profile-reference.md", profile_reference_page()); }

TEST(HostProfile, MistakesAreSaidWithTheirPlaces) {
  tests::expect_messages("tests/node/host/data/bad_profiles.txt", [](const tests::BadDocument& bad) {
    std::string said;
    for (const auto& error : load_profile_text(bad.document, bad.name + ".yaml").errors) said += error.text() + "\n";
    return said;
  });
}

TEST(HostProfile, NamesAreUnique) {
  std::set<std::string> names;
  for (const auto& entry : harness().commands) EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
  EXPECT_EQ(names.size(), 15U);
}

}  // namespace
}  // namespace leafcutter::node::host
