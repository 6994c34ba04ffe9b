// Names on their way to addresses: a lookup may take as long as name servers are silent, and nobody else waits for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "loopback.hpp"
#include "node/proxy/resolver.hpp"

namespace leafcutter::node::proxy {
namespace {

using testing::HasSubstr;

/// Name servers: whose names begin with "slow" they are silent about until told to answer.
class SlowNames {
 public:
  Resolver::Lookup lookup() {
    return [this](const HostPort& host) -> Resolver::Addresses {
      ++asked;
      if (host.host.starts_with("slow")) {
        told_.wait();
        ++answered;
      }
      if (host.host == "none") return base::Error{base::ErrorCode::io, "no such name"};
      return literal_address({"127.0.0.1", host.port});
    };
  }
  void answer() { tell_.set_value(); }

  std::atomic<int> asked{0}, answered{0};

 private:
  std::promise<void> tell_;
  std::shared_future<void> told_{tell_.get_future()};
};

TEST(Resolving, ASlowNameKeepsNoOtherWaiting) {
  SlowNames names;
  Resolver resolver(names.lookup());
  std::atomic<bool> slow{false}, quick{false};
  std::string none;
  resolver.resolve({"slow", 1}, [&](const auto&) { slow = true; });
  resolver.resolve({"none", 1}, [&](const Resolver::Addresses& addresses) {
    none = addresses ? "" : addresses.error().message;
    quick = true;
  });
  EXPECT_TRUE(eventually([&] { return quick.load(); }));
  EXPECT_EQ(none, "no such name");
  EXPECT_FALSE(slow);
  names.answer();
  EXPECT_TRUE(eventually([&] { return slow.load(); }));
}

TEST(Resolving, ANameIsLookedUpOnceForAllWhoAsk) {
  SlowNames names;
  Resolver resolver(names.lookup());
  std::atomic<int> told{0};
  for (int i = 0; i < 100; ++i) resolver.resolve({"slow", 1}, [&](const auto&) { ++told; });
  resolver.resolve({"slow", 2}, [&](const auto&) { ++told; });
  EXPECT_TRUE(eventually([&] { return names.asked == 2; }));
  names.answer();
  EXPECT_TRUE(eventually([&] { return told == 101; }));
  resolver.resolve({"slow", 1}, [&](const auto&) { ++told; });
  EXPECT_EQ(told, 102) << "answers are kept for a while";
  EXPECT_EQ(names.asked, 2);
}

// The bound: as many slow names as there may be lookups at a time, and the next waits for one of them.
TEST(Resolving, SoManyLookupsAtATimeAndNoMore) {
  SlowNames names;
  Resolver resolver(names.lookup());
  std::atomic<std::size_t> told{0};
  for (std::size_t i = 0; i <= Resolver::most_lookups; ++i)
    resolver.resolve({"slow" + std::to_string(i), 1}, [&](const auto&) { ++told; });
  EXPECT_TRUE(eventually([&] { return names.asked == static_cast<int>(Resolver::most_lookups); }));
  names.answer();
  EXPECT_TRUE(eventually([&] { return told == Resolver::most_lookups + 1; }));
}

TEST(Resolving, TheEndWaitsForNoLookupAndCallsNobodyAfterwards) {
  const auto names = std::make_shared<SlowNames>();
  std::atomic<bool> told{false};
  const auto begin = Clock::now();
  {
    Resolver resolver([names, look = names->lookup()](const HostPort& host) { return look(host); });
    resolver.resolve({"slow", 1}, [&](const auto&) { told = true; });
    EXPECT_TRUE(eventually([&] { return names->asked == 1; }));
  }
  EXPECT_LT(Clock::now() - begin, 5s);
  EXPECT_EQ(names->answered, 0);
  names->answer();
  EXPECT_TRUE(eventually([&] { return names->answered == 1; }));
  EXPECT_TRUE(eventually([&] { return names.use_count() == 1; })) << "its thread has ended";
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace leafcutter::node::proxy
