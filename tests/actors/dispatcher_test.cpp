// The dispatcher actor alone: nodes and campaigns only note what it tells them.
#include "coordinator/actors/dispatcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/office.hpp"

using namespace leafcutter;
using namespace leafcutter::tests;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

class Dispatching : public testing::Test {
 protected:
  Dispatching() {
    parent = spawn_parent(sim, [this](caf::local_actor& self) {
      auto bridge = std::make_shared<coordinator::TraceBridge>();
      auto intake = stream.intake([bridge](coordinator::FinishedTrace trace) { bridge->deliver(std::move(trace)); });
      dispatcher = coordinator::spawn_dispatcher(self, {std::move(intake), bridge, 20s});
    });
    handle = client.spawn(sim);
    enlist(1);
  }
  ~Dispatching() override {
    sim.kill(parent);
    sim.kill(handle);
    for (auto& node : nodes) sim.kill(node);
  }

  void enlist(std::uint64_t run) {
    sim.self->send(dispatcher, coordinator::enlist_atom::value,
                   std::make_shared<const coordinator::Enlistment>(
                       coordinator::Enlistment{"toy", run, {"identity", "/toy.yaml", "text", ""}, handle}));
    sim.run();
  }
  std::uint64_t join(NoteNode& node, const std::string& name, std::uint32_t slots) {
    nodes.push_back(node.spawn(sim));
    actors::NodeInfo info;
    info.name = name;
    info.slots = slots;
    std::uint64_t session = 0;
    auto hello = sim.self->request(dispatcher, caf::infinite, actors::hello_atom_v, info, nodes.back());
    sim.run();
    hello.receive([&](const actors::Welcome& welcome) { session = welcome.session; }, [](caf::error&) { FAIL(); });
    want(session, slots);
    return session;
  }
  void want(std::uint64_t session, std::uint32_t free) {
    sim.self->send(dispatcher, actors::want_atom_v, session, free);
    sim.run();
  }
  void order(int count) {
    coordinator::Orders orders{"toy", {}, {}};
    for (int i = 0; i < count; ++i) {
      actors::LeafOrder one;
      one.address = "toy/0/" + std::to_string(i);
      one.execution = one.address + "#0";
      one.purpose = "explore";
      one.timeout = 10s;
      orders.orders.push_back(one);
    }
    sim.self->send(dispatcher, coordinator::order_atom::value, std::make_shared<const coordinator::Orders>(orders));
    sim.run();
  }
  void report(const actors::Lease& lease, std::size_t index = 0) {
    actors::LeafReport report;
    report.session = lease.session;
    report.fence = lease.fence;
    report.execution = lease.orders.at(index).execution;
    report.events = 1;
    report.clean = true;
    sim.self->send(dispatcher, actors::done_atom_v, report);
    sim.run();
  }
  void trace(const actors::Lease& lease, std::size_t index = 0) {
    stream.arrive({lease.orders.at(index).execution, 1, true, "chunks"});
    sim.run();
  }
  void gone(const actors::node_actor& node) {
    sim.self->send(dispatcher, coordinator::gone_atom::value, node.address());
    sim.run();
  }

  Sim sim;
  ToyStream stream;
  NoteCampaign client;
  coordinator::campaign_actor handle;
  caf::actor parent;
  coordinator::dispatcher_actor dispatcher;
  std::vector<actors::node_actor> nodes;
};

TEST_F(Dispatching, TeachesLeasesAndJoinsReportAndTraceInEitherOrder) {
  NoteNode node;
  join(node, "a", 2);
  order(2);
  ASSERT_EQ(node.leases.size(), 2u);
  EXPECT_THAT(node.learnt, ElementsAre("identity")) << "once";
  EXPECT_EQ(stream.expected(), 2u);
  report(node.leases[0]);
  EXPECT_THAT(client.done, IsEmpty()) << "its trace is not there";
  trace(node.leases[0]);
  ASSERT_EQ(client.done.size(), 1u);
  trace(node.leases[1]);
  EXPECT_EQ(client.done.size(), 1u) << "its report is not there";
  report(node.leases[1]);
  ASSERT_EQ(client.done.size(), 2u);
  const auto& execution = *client.done[0];
  EXPECT_EQ(execution.order.execution, "toy/0/0#0") << "as it was ordered, not as it was leased";
  EXPECT_EQ(execution.run, 1u);
  EXPECT_FALSE(execution.duplicate);
  EXPECT_TRUE(execution.report.clean);
  EXPECT_EQ(execution.trace->chunks, "chunks");
}

TEST_F(Dispatching, ALostNodesOrdersAreLeasedAgainAndItsLateWordIsNotObeyed) {
  NoteNode a, b;
  join(a, "a", 1);
  order(1);
  ASSERT_EQ(a.leases.size(), 1u);
  join(b, "b", 1);
  EXPECT_THAT(b.leases, IsEmpty());
  gone(nodes[0]);
  ASSERT_EQ(b.leases.size(), 1u) << "at once";
  EXPECT_GT(b.leases[0].fence, a.leases[0].fence);
  report(a.leases[0]);
  trace(a.leases[0]);
  EXPECT_THAT(client.done, IsEmpty());
  report(b.leases[0]);
  trace(b.leases[0]);
  EXPECT_EQ(client.done.size(), 1u);
}

TEST_F(Dispatching, WhatASilentNodeHoldsIsLeasedAgainWhenTheLeaseIsOver) {
  NoteNode silent, live;
  join(silent, "silent", 1);
  order(1);
  const auto session = join(live, "live", 1);
  const auto renew = [&] { sim.self->send(dispatcher, actors::renew_atom_v, session); };
  for (int second = 0; second < 19; ++second) renew(), sim.advance(1s);
  EXPECT_THAT(live.leases, IsEmpty());
  for (int second = 0; second < 6; ++second) renew(), sim.advance(1s);
  ASSERT_EQ(live.leases.size(), 1u);
  report(live.leases[0]);
  trace(live.leases[0]);
  ASSERT_EQ(client.done.size(), 1u);
  EXPECT_FALSE(client.done[0]->duplicate);
}

TEST_F(Dispatching, AnOrderThatEveryNodeLosesIsGivenUp) {
  order(1);
  for (int life = 0; life < 5; ++life) {
    EXPECT_THAT(client.lost, IsEmpty()) << life;
    NoteNode node;
    join(node, "a", 1);
    ASSERT_EQ(node.leases.size(), 1u) << life;
    gone(nodes.back());
    sim.kill(nodes.back());
    nodes.pop_back();
  }
  ASSERT_EQ(client.lost.size(), 1u);
  EXPECT_EQ(client.lost[0]->order.execution, "toy/0/0#0");
  EXPECT_EQ(client.lost[0]->run, 1u);
  EXPECT_EQ(stream.expected(), 0u);
}

TEST_F(Dispatching, AClosedCampaignsLeavesAreStopped) {
  NoteNode node;
  join(node, "a", 1);
  order(2);
  const auto leases = node.leases;
  ASSERT_FALSE(leases.empty());
  sim.self->send(dispatcher, coordinator::close_atom::value, std::string("toy"));
  sim.run();
  std::vector<std::uint64_t> fences;
  for (const auto& lease : leases) fences.push_back(lease.fence);
  EXPECT_EQ(node.cancelled, fences);
  EXPECT_EQ(stream.expected(), 0u);
  order(2);
  EXPECT_EQ(node.leases.size(), leases.size()) << "orders of a campaign that it does not know";
}

TEST_F(Dispatching, ALaterSubmissionTakesThePlaceOfTheEarlierOne) {
  NoteNode node;
  const auto session = join(node, "a", 1);
  order(1);
  const auto earlier = node.leases.at(0);
  enlist(2);
  EXPECT_THAT(node.cancelled, ElementsAre(earlier.fence));
  order(1);
  want(session, 1);
  ASSERT_EQ(node.leases.size(), 2u);
  report(earlier);
  trace(earlier);
  EXPECT_THAT(client.done, IsEmpty());
  report(node.leases[1]);
  trace(node.leases[1]);
  ASSERT_EQ(client.done.size(), 1u);
  EXPECT_EQ(client.done[0]->run, 2u);
}

TEST_F(Dispatching, ANodeOfTheSameNameTakesTheEarlierOnesPlace) {
  NoteNode older, newer;
  join(older, "a", 1);
  order(1);
  join(newer, "a", 1);
  EXPECT_TRUE(older.drained);
  EXPECT_EQ(newer.leases.size(), 1u);
}

TEST_F(Dispatching, EndsWithItsParentAndLetsGoOfTheIntake) {
  order(1);
  NoteNode node;
  join(node, "a", 1);
  sim.self->monitor(dispatcher);
  sim.kill(parent);
  bool ended = false;
  sim.self->receive([&](const caf::down_msg&) { ended = true; }, caf::after(0ms) >> [] {});
  EXPECT_TRUE(ended);
  EXPECT_FALSE(stream.delivers());
}

}  // namespace
