#include "coordinator/actors/intake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "tests/actors/stream_peers.hpp"

using namespace leafcutter;
using namespace leafcutter::coordinator;
using namespace std::chrono_literals;
using testing::HasSubstr;
using tests::LeafEnd;
using tests::some_events;

namespace {

/// An intake on a free port and what it handed on.
struct Rig {
  Rig() {
    auto started = Intake::start("tcp://127.0.0.1:*", [this](FinishedTrace trace) {
      const std::lock_guard lock(mutex);
      finished.push_back(std::move(trace));
    });
    EXPECT_TRUE(started.ok()) << started.error().message;
    intake = std::move(*started);
  }
  std::mutex mutex;
  std::vector<FinishedTrace> finished;
  std::unique_ptr<Intake> intake;
};

}  // namespace

TEST(Intake, HandsAFinishedTraceOn) {
  Rig rig;
  rig.intake->expect("x");
  LeafEnd node(rig.intake->bound_endpoint());
  ASSERT_TRUE(node.run("x", 25, 4));
  const std::lock_guard lock(rig.mutex);
  ASSERT_EQ(rig.finished.size(), 1u) << "before the last acknowledgement";
  EXPECT_EQ(rig.finished[0].execution, "x");
  EXPECT_EQ(rig.finished[0].events, 25u);
  EXPECT_TRUE(rig.finished[0].complete);
  EXPECT_EQ(*protocols::decode_chunks(rig.finished[0].chunks), some_events(0, 25));
}

TEST(Intake, HandsItOnOnceHoweverOftenItComes) {
  Rig rig;
  rig.intake->expect("x");
  LeafEnd node(rig.intake->bound_endpoint());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(node.run("x", 5, 2));
  const std::lock_guard lock(rig.mutex);
  EXPECT_EQ(rig.finished.size(), 1u);
}

TEST(Intake, NobodysExecutionIsAcknowledgedAndDropped) {
  Rig rig;
  LeafEnd node(rig.intake->bound_endpoint());
  node.send({"old", 7, 3, false}, protocols::encode_chunk(some_events(7, 3)));
  const auto ack = node.ack();
  EXPECT_EQ(ack.execution, "old");
  EXPECT_TRUE(ack.complete);
  EXPECT_TRUE(rig.finished.empty());
}

TEST(Intake, AGapIsAnsweredWithWhatIsThere) {
  Rig rig;
  rig.intake->expect("x");
  LeafEnd node(rig.intake->bound_endpoint());
  node.send({"x", 2, 2, false}, protocols::encode_chunk(some_events(2, 2)));
  const auto ack = node.ack();
  EXPECT_EQ(ack.execution, "x");
  EXPECT_EQ(ack.next, 0u);
  EXPECT_FALSE(ack.complete);
  EXPECT_TRUE(node.run("x", 4, 2));
}

TEST(Intake, WhatItCannotReadChangesNothing) {
  Rig rig;
  rig.intake->expect("x");
  zmq::context_t context;
  zmq::socket_t stranger(context, zmq::socket_type::dealer);
  stranger.set(zmq::sockopt::linger, 1000);
  stranger.connect(rig.intake->bound_endpoint());
  stranger.send(zmq::str_buffer("hello"), zmq::send_flags::none);
  stranger.send(zmq::str_buffer("not"), zmq::send_flags::sndmore);
  stranger.send(zmq::str_buffer("msgpack"), zmq::send_flags::none);
  LeafEnd node(rig.intake->bound_endpoint());
  EXPECT_TRUE(node.run("x", 2, 1));
}

TEST(Intake, ListensOnLoopbackOnly) {
  for (const char* endpoint :
       {"tcp://0.0.0.0:*", "tcp://*:4731", "tcp://10.0.0.1:4731", "udp://127.0.0.1:1", "nonsense"}) {
    const auto refused = Intake::start(endpoint, [](FinishedTrace) {});
    ASSERT_FALSE(refused.ok()) << endpoint;
    EXPECT_EQ(refused.error().code, base::ErrorCode::bad_input) << endpoint;
  }
  EXPECT_TRUE(Intake::start("tcp://[::1]:*", [](FinishedTrace) {}).ok() ||
              Intake::start("tcp://127.0.0.1:*", [](FinishedTrace) {}).ok());
}

TEST(Intake, AnAddressInUseIsNamed) {
  Rig rig;
  const auto refused = Intake::start(rig.intake->bound_endpoint(), [](FinishedTrace) {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr(rig.intake->bound_endpoint()));
}
