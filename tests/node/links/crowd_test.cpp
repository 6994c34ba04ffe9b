// Many connections at once, and callers that send rubbish.
#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"
#include "rig.hpp"
#include "scenarios/event_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace events = scenarios::events;

TEST(Crowd, TwoHundredConnectionsAtOnceAreKeptApart) {
  HttpCallee callee([](const std::string& request) { return ok_response(request.substr(0, request.find(" HTTP"))); });
  Rig rig(callee.port(), {});
  constexpr int crowd = 200, each = 5;
  std::vector<Peer> callers;
  for (int i = 0; i < crowd; ++i) callers.push_back(rig.dial());
  for (int turn = 0; turn < each; ++turn) {
    for (int i = 0; i < crowd; ++i)
      callers[static_cast<std::size_t>(i)].send(get("/c" + std::to_string(i) + "/t" + std::to_string(turn)));
    for (int i = 0; i < crowd; ++i)
      ASSERT_EQ(callers[static_cast<std::size_t>(i)].receive_message(),
                ok_response("GET /c" + std::to_string(i) + "/t" + std::to_string(turn)));
  }
  callers.clear();
  rig.await_events(events::close, crowd);
  const auto requests = rig.await_events(events::request, crowd * each);
  EXPECT_EQ(requests.size(), static_cast<std::size_t>(crowd * each));
  std::map<std::string, int> outcomes;
  for (const auto& request : requests) ++outcomes[request.attrs["outcome"].get<std::string>()];
  EXPECT_EQ(outcomes, (std::map<std::string, int>{{"replied", crowd * each}}));
  EXPECT_EQ(rig.sites->visit({"shop -> broker", "request", "GET /c#/t#"}).occurrence, crowd * each + 1u);
  // The lane numbers its events without a gap.
  std::uint64_t last = 0;
  for (const auto& event : rig.all_events()) {
    if (event.lane != "shop -> broker") continue;
    EXPECT_EQ(event.seq, ++last);
  }
  EXPECT_TRUE(eventually([&] { return rig.activity.busy().empty(); }));
}

TEST(Crowd, RubbishIsCarriedAndHurtsNobody) {
  Callee callee([](Peer& peer) {
    for (;;) {
      const auto byte = peer.receive(1);
      if (byte.empty() || !peer.try_send(byte)) return;
    }
  });
  Rig rig(callee.port(), {});
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    base::Stream draws(seed, "rubbish", 0);
    std::string bytes = seed % 3 == 0 ? "POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\n" : seed % 3 == 1 ? "GET /" : "";
    for (std::uint64_t i = draws.below(3000) + 1; i > 0; --i) bytes += static_cast<char>(draws.below(256));
    auto caller = rig.dial();
    caller.send(bytes);
    caller.finish_sending();
    ASSERT_TRUE(caller.receive_all() == bytes) << "seed " << seed;
  }
  rig.await_events(events::close, 60);
  EXPECT_TRUE(eventually([&] { return rig.activity.busy().empty(); }));
}

TEST(Crowd, CallersThatComeAndGoLeaveNothingBehind) {
  HttpCallee callee;
  Rig rig(callee.port(), {});
  for (int i = 0; i < 300; ++i) {
    auto caller = rig.dial();
    if (i % 3 == 0) caller.send("GET /half");
    if (i % 3 == 1) caller.send(get("/whole"));
    if (i % 2 == 0) caller.close_with_reset();
  }
  rig.await_events(events::close, 300);
  EXPECT_TRUE(eventually([&] { return rig.activity.busy().empty(); }));
}

}  // namespace
}  // namespace leafcutter::node
