// Names that proxies listen on: asked about elsewhere, known or not when the time is over, and said at their place.
#include "node/runs/listen_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <condition_variable>
#include <set>

namespace leafcutter::node::runs {
namespace {

using proxy::HostPort;
using proxy::SocketAddress;

/// Name servers that know "near" and "far", deny "none", and say nothing about other names until told.
class NameServers {
 public:
  proxy::Resolver::Lookup lookup() {
    return [this](const HostPort& host) -> proxy::Resolver::Addresses {
      std::unique_lock lock(mutex_);
      ++asked_;
      if (host.host != "near" && host.host != "far" && host.host != "none")
        changed_.wait(lock, [&] { return told_.contains(host.host); });
      if (host.host == "none") return base::Error{base::ErrorCode::io, "cannot resolve \"none\": unknown", {}};
      return proxy::literal_address({host.host == "far" ? "127.0.0.9" : "127.0.0.8", host.port});
    };
  }
  void speak(const std::string& name = "slow") {
    const std::lock_guard lock(mutex_);
    told_.insert(name);
    changed_.notify_all();
  }
  int asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> told_;
  int asked_ = 0;
};

Run listening_on(const std::vector<std::string>& listens) {
  Run run;
  for (const auto& listen : listens) {
    ProxySpec spec;
    spec.name = "p" + std::to_string(run.proxies.size());
    spec.listen = listen;
    spec.listen_at = {"run.yaml", static_cast<int>(run.proxies.size()) + 1, 5};
    run.proxies.push_back(spec);
  }
  return run;
}

bool readable(const ListenNames& names, int within_ms = 20'000) {
  pollfd item{names.fd(), POLLIN, 0};
  return ::poll(&item, 1, within_ms) == 1;
}

TEST(ListenNames, ThatAreAddressesAreKnownAtOnceAndLeftAlone) {
  NameServers servers;
  ListenNames names(servers.lookup());
  auto run = listening_on({"127.0.0.1:7", "[::1]:8", "nonsense"});
  names.ask(run);
  EXPECT_TRUE(names.known());
  EXPECT_TRUE(readable(names, 0));
  EXPECT_TRUE(names.settle(run).ok());
  for (const auto& spec : run.proxies) EXPECT_EQ(spec.listen_address, "");
  EXPECT_EQ(servers.asked(), 0);
}

TEST(ListenNames, GetTheirAddressesWithTheirPorts) {
  NameServers servers;
  ListenNames names(servers.lookup());
  auto run = listening_on({"near:7", "far:8", "near:9"});
  names.ask(run);
  ASSERT_TRUE(readable(names));
  ASSERT_TRUE(names.settle(run).ok());
  EXPECT_EQ(run.proxies[0].listen_address, "127.0.0.8:7");
  EXPECT_EQ(run.proxies[1].listen_address, "127.0.0.9:8");
  EXPECT_EQ(run.proxies[2].listen_address, "127.0.0.8:9");
  EXPECT_EQ(servers.asked(), 2) << "each name once";
}

TEST(ListenNames, WithoutAnAddressAreSaidAtTheirPlace) {
  NameServers servers;
  ListenNames names(servers.lookup());
  auto run = listening_on({"near:7", "none:8"});
  names.ask(run);
  ASSERT_TRUE(readable(names));
  const auto settled = names.settle(run);
  ASSERT_FALSE(settled.ok());
  EXPECT_EQ(settled.error().code, base::ErrorCode::bad_input);
  EXPECT_EQ(settled.error().text(), "run.yaml:2:5: proxy \"p1\" cannot listen: cannot resolve \"none\": unknown");
}

TEST(ListenNames, WithoutAnAnswerAreNotKnownAndNobodyWaits) {
  NameServers servers;
  ListenNames names(servers.lookup());
  auto run = listening_on({"slow:7"});
  names.ask(run);
  EXPECT_FALSE(names.known());
  EXPECT_FALSE(readable(names, 0));
  const auto settled = names.settle(run);
  ASSERT_FALSE(settled.ok());
  EXPECT_THAT(settled.error().text(), testing::HasSubstr("no name server has answered within 10 s"));
  servers.speak();
  ASSERT_TRUE(readable(names));
  EXPECT_TRUE(names.settle(run).ok());
}

TEST(ListenNames, OfAnEarlierQuestionAnswerNoLaterOne) {
  NameServers servers;
  ListenNames names(servers.lookup());
  auto before = listening_on({"slow:7"}), now = listening_on({"later:9"});
  names.ask(before);
  names.ask(now);
  servers.speak("slow");
  EXPECT_FALSE(readable(names, 300)) << "nobody asks about that any more";
  EXPECT_FALSE(names.known());
  servers.speak("later");
  ASSERT_TRUE(readable(names));
  ASSERT_TRUE(names.settle(now).ok());
  EXPECT_EQ(now.proxies[0].listen_address, "127.0.0.8:9");
  names.ask(listening_on({"127.0.0.1:1"}));
  EXPECT_TRUE(names.known());
  EXPECT_FALSE(names.settle(now).ok()) << "what was asked before is forgotten";
}

}  // namespace
}  // namespace leafcutter::node::runs
