// Connections whose two ends have gone while a fault kept it from either: they end, and are counted. Those whose ends
// only have no more to send do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "loopback.hpp"

namespace leafcutter::node::proxy {
namespace {

/// The kernel forgets the socket of a process that has gone a second after its FIN, not a minute.
void forget_soon(int fd) {
  const int second = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_LINGER2, &second, sizeof second);
}

/// Takes connections, and keeps them until told to close or to end its half.
class Holder {
 public:
  Holder()
      : upstream_([this](Peer& peer) {
          forget_soon(peer.fd());
          ++open_;
          EXPECT_TRUE(eventually([&] { return closing_ || finishing_; }, 60s));
          if (finishing_) {
            peer.finish_sending();
            EXPECT_EQ(peer.ending(), "end") << "the client's end, when the fault has gone";
          }
        }) {}
  const std::string& address() const { return upstream_.address(); }
  bool open() const { return open_ > 0; }
  void close() { closing_ = true; }
  void finish() { finishing_ = true; }

 private:
  std::atomic<int> open_{0};
  std::atomic<bool> closing_{false}, finishing_{false};
  Upstream upstream_;
};

/// A connection through a link, with a blackhole in force on it.
struct DarkLine {
  DarkLine(Rig& all, const std::string& name, Blackhole::Mode mode) : rig(all), link(name) {
    client = Peer::dial(rig.link(name, holder.address()));
    forget_soon(client.fd());
    EXPECT_TRUE(eventually([&] { return holder.open(); }));
    Blackhole hole;
    hole.mode = mode;
    rig.set(name, {fault(hole)});
  }
  Rig& rig;
  std::string link;
  Holder holder;
  Peer client;
};

TEST(GonePeers, ABlackholeKeepsNoConnectionForEverWhoseEndsAreGone) {
  Rig rig;
  DarkLine dropping(rig, "dropping", Blackhole::Mode::drop), stalling(rig, "stalling", Blackhole::Mode::stall),
      waiting(rig, "waiting", Blackhole::Mode::drop);
  for (auto* line : {&dropping, &stalling}) {
    line->client.send("lost");
    line->client.close();
    line->holder.close();
  }
  // The twin: both have ended their halves and wait for the other's.
  waiting.client.finish_sending();
  waiting.holder.finish();
  const auto closed = rig.await(EventKind::closed, 2);
  for (const auto& one : closed) EXPECT_NE(one.link, "waiting");
  for (const auto* link : {"dropping", "stalling"}) {
    EXPECT_EQ(rig.stats(link).active, 0u) << link;
    EXPECT_EQ(rig.stats(link).closed, 1u) << link;
  }
  // It has been asked as often as the others.
  EXPECT_TRUE(waiting.client.quiet_for(1s)) << "nobody told it anything";
  EXPECT_EQ(rig.stats("waiting").active, 1u);
  rig.set("waiting", {});
  EXPECT_EQ(waiting.client.ending(), "end");
  EXPECT_EQ(rig.await(EventKind::closed, 3)[2].cause, Cause::finished);
}

}  // namespace
}  // namespace leafcutter::node::proxy
